//! Scenarios: experiments as TOML files.
//!
//! A file says what the network is, who sends what over it, what is recorded, which keys take several
//! values, and what the results must keep to. `docs/scenarios.md` explains the format by example and
//! lists every key.

mod builder;
mod correlation;
mod error;
mod events;
mod expect;
mod expression;
mod flows;
mod graph;
mod keys;
mod parts;
mod plan;
mod probes;
mod profiles;
mod reader;
mod reference;
mod run;
mod schema;
mod spec;
mod sweep;
mod tcp;
mod topology;
mod tree;

#[cfg(test)]
mod tests;

use core::cell::RefCell;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

pub use error::ScenarioError;
pub use expect::{Expectation, Verdict};
pub use keys::SCENARIO as KEYS;
pub use plan::{EventPlan, FlowPlan, LinkPlan, LoadPlan, PathPlan, Plan, ProbePlan};
pub use profiles::{Protocol, all as profiles};
pub use run::{DecisionObservers, RunError, RunOptions};
pub use spec::{KeySpec, Kind};
pub use sweep::Point;

use error::{Flaw, Place};
use expression::Bindings;
use reader::{Files, Section};
use tree::{Node, Table, Value};

/// Reads a file that a scenario names, given its path relative to the scenario. An error is one line.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// An experiment, read and found free of mistakes at every point of its sweep.
#[derive(Clone, Debug)]
pub struct Scenario {
    text: String,
    file: String,
    root: Table,
    assignments: Vec<String>,
    /// Contents of the files it names.
    attached: BTreeMap<String, String>,
    header: Header,
    points: Vec<Point>,
    expectations: Vec<Expectation>,
}

/// What holds for every point.
#[derive(Clone, Debug, Default)]
struct Header {
    name: String,
    title: String,
    description: String,
    item: Option<String>,
    seeds: Vec<u64>,
}

impl Scenario {
    /// Reads a scenario that names no other files.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file.
    pub fn parse(text: &str, file_name: &str) -> Result<Scenario, Vec<ScenarioError>> {
        let mut none = |_: &str| Err("no files can be read here".to_owned());
        Scenario::load(text, file_name, &[], &mut none)
    }

    /// Reads a scenario, with `KEY=VALUE` assignments on top of it; `read` reads the files it names.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file, those of assignments behind.
    pub fn load(
        text: &str,
        file_name: &str,
        assignments: &[String],
        read: &mut ReadFile<'_>,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        let locate = |flaws: Vec<Flaw>| locate_all(flaws, file_name, text, assignments);
        let (mut root, mut flaws) = Table::parse(text);
        if !flaws.is_empty() {
            // Half a file would only give misleading mistakes.
            return Err(locate(flaws));
        }
        for (index, assignment) in assignments.iter().enumerate() {
            if let Err(flaw) = assign(&mut root, index, assignment) {
                flaws.push(flaw);
            }
        }
        let mut scenario = Scenario {
            text: text.to_owned(),
            file: file_name.to_owned(),
            root,
            assignments: assignments.to_vec(),
            attached: BTreeMap::new(),
            header: Header::default(),
            points: Vec::new(),
            expectations: Vec::new(),
        };
        flaws.extend(scenario.check(read));
        if flaws.is_empty() { Ok(scenario) } else { Err(locate(flaws)) }
    }

    /// This scenario with one more assignment, such as `flow.bulk.count=3` or `duration=5s`. Elements of
    /// lists are addressed by name, by number from 0, or by `*` for all.
    ///
    /// # Errors
    /// The mistakes that follow; the scenario stays as it was.
    pub fn set(&mut self, assignment: &str) -> Result<(), Vec<ScenarioError>> {
        let mut assignments = self.assignments.clone();
        assignments.push(assignment.to_owned());
        let attached = self.attached.clone();
        let mut read = |path: &str| {
            let known = attached.get(path).cloned();
            known.ok_or_else(|| "it was not read with the scenario".to_owned())
        };
        *self = Scenario::load(&self.text, &self.file, &assignments, &mut read)?;
        Ok(())
    }

    /// What results call it.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// One line on it.
    pub fn title(&self) -> &str {
        &self.header.title
    }

    /// What it shows and why; may be empty.
    pub fn description(&self) -> &str {
        &self.header.description
    }

    /// The published result that it reproduces, if it does.
    pub fn item(&self) -> Option<&str> {
        self.header.item.as_deref()
    }

    /// The seeds it asks for, at least one.
    pub fn seeds(&self) -> &[u64] {
        &self.header.seeds
    }

    /// The text it was read from.
    pub fn source(&self) -> &str {
        &self.text
    }

    /// The assignments on top of the text.
    pub fn assignments(&self) -> &[String] {
        &self.assignments
    }

    /// The contents of the files it names, by path.
    pub fn attached(&self) -> &BTreeMap<String, String> {
        &self.attached
    }

    /// Sixteen hexadecimal digits that differ, in all likelihood, between scenarios whose text,
    /// assignments or attached files differ. The seeds are part of the text; those given otherwise are
    /// not.
    pub fn hash(&self) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |part: &str| {
            for byte in part.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        add(&self.text);
        self.assignments.iter().for_each(|assignment| add(assignment));
        for (path, content) in &self.attached {
            add(path);
            add(content);
        }
        format!("{hash:016x}")
    }

    /// Every combination of the sweeps' values, at least one point.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The bounds that its results must keep.
    pub fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }

    /// Everything that runs at `point`.
    ///
    /// # Errors
    /// When the point is not one of this scenario's.
    pub fn plan(&self, point: &Point) -> Result<Plan, Vec<ScenarioError>> {
        let flaws = RefCell::new(Vec::new());
        let mut root = self.root.clone();
        if let Err(flaw) = point.apply(&mut root) {
            flaws.borrow_mut().push(flaw);
        }
        let bindings = variables(&root, &flaws);
        let file = open(&root, bindings, (&flaws, &self.attached));
        let plan = read_plan(&file);
        let flaws = flaws.into_inner();
        match plan {
            Some((plan, _)) if flaws.is_empty() => Ok(plan),
            _ => Err(locate_all(flaws, &self.file, &self.text, &self.assignments)),
        }
    }

    /// The format as a JSON schema (draft 2020-12), for editors.
    pub fn json_schema() -> String {
        schema::json_schema()
    }

    /// Tables of every key and every figure, in Markdown, as the documentation shows them.
    pub fn reference() -> String {
        reference::markdown()
    }

    /// Reads the header and every point; returns the mistakes.
    fn check(&mut self, read: &mut ReadFile<'_>) -> Vec<Flaw> {
        let flaws = RefCell::new(Vec::new());
        let root = self.root.clone();
        let reading = Reading { attached: RefCell::default(), read: RefCell::new(read) };
        let file = open(&root, variables(&root, &flaws), (&flaws, &reading));
        self.header = header(&file);
        let axes = sweep::axes(&file);
        self.points = sweep::points(&file, &axes);
        let mut subjects = BTreeSet::new();
        for point in &self.points {
            let mut root = self.root.clone();
            if let Err(flaw) = point.apply(&mut root) {
                flaws.borrow_mut().push(flaw);
                continue;
            }
            let at_point = RefCell::new(Vec::new());
            let file = open(&root, variables(&root, &at_point), (&at_point, &reading));
            let plan = read_plan(&file);
            let at_point = at_point.into_inner();
            let broken = !at_point.is_empty();
            flaws.borrow_mut().extend(at_point);
            if let Some((_, found)) = plan {
                subjects.extend(found);
            }
            if broken {
                // Other points have the same mistakes or ones like them.
                break;
            }
        }
        self.expectations =
            expect::read(&file, &subjects, &self.points, !self.assignments.is_empty());
        self.attached = reading.attached.take();
        flaws.into_inner()
    }
}

fn locate_all(
    mut flaws: Vec<Flaw>,
    file: &str,
    text: &str,
    assignments: &[String],
) -> Vec<ScenarioError> {
    flaws.sort();
    flaws.dedup();
    flaws.into_iter().map(|flaw| flaw.locate(file, text, assignments)).collect()
}

/// Reads files once, and keeps them.
struct Reading<'a, 'b> {
    attached: RefCell<BTreeMap<String, String>>,
    read: RefCell<&'a mut ReadFile<'b>>,
}

impl Files for Reading<'_, '_> {
    fn read(&self, path: &str) -> Result<String, String> {
        if let Some(content) = self.attached.borrow().get(path) {
            return Ok(content.clone());
        }
        let content = (self.read.borrow_mut())(path)?;
        self.attached.borrow_mut().insert(path.to_owned(), content.clone());
        Ok(content)
    }
}

impl Files for BTreeMap<String, String> {
    fn read(&self, path: &str) -> Result<String, String> {
        self.get(path).cloned().ok_or_else(|| "it was not read with the scenario".to_owned())
    }
}

fn assign(root: &mut Table, index: usize, assignment: &str) -> Result<(), Flaw> {
    let place = Place { assignment: index + 1, offset: 0 };
    let Some((key, value)) = assignment.split_once('=') else {
        return Err(Flaw::value(place, "", assignment, "KEY=VALUE, such as flow.bulk.count=3"));
    };
    root.set(key.trim(), &Node::from_assignment(value.trim(), place))
}

fn open<'a>(
    root: &'a Table,
    bindings: Bindings,
    context: (&'a RefCell<Vec<Flaw>>, &'a dyn Files),
) -> Section<'a> {
    Section::open(root, keys::SCENARIO, Place::default(), String::new(), bindings, context)
}

/// `[vars]`: what `{NAME}` stands for everywhere.
fn variables(root: &Table, flaws: &RefCell<Vec<Flaw>>) -> Bindings {
    let mut bindings = Bindings::default();
    let Some(Value::Table(table)) = root.find("vars").map(|entry| &entry.node.value) else {
        return bindings;
    };
    for entry in &table.entries {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !entry.key.chars().all(plain) || entry.key.starts_with(|c: char| c.is_ascii_digit()) {
            let path = format!("vars.{}", entry.key);
            let given = format!("'{}' is no name for a variable", entry.key);
            let allowed = "letters, digits and '_', a letter first";
            flaws.borrow_mut().push(Flaw::other(entry.key_place, path, given, allowed));
        }
        match entry.node.value {
            Value::Whole(number) => bindings.number(&entry.key, number as f64),
            Value::Real(number) => bindings.number(&entry.key, number),
            _ => bindings.text(&entry.key, &entry.node.show()),
        }
    }
    bindings
}

fn header(file: &Section<'_>) -> Header {
    let name = topology::name(file, false).unwrap_or_default();
    Header {
        title: file.text("title").unwrap_or_else(|| name.clone()),
        description: file.text("description").unwrap_or_default().trim().to_owned(),
        item: file.text("item"),
        seeds: seeds(file),
        name,
    }
}

/// Most seeds that can be asked for.
const MAX_SEEDS: u64 = 10_000;

fn seeds(file: &Section<'_>) -> Vec<u64> {
    let Some(node) = file.node("seeds") else { return vec![1] };
    let seeds: Option<Vec<u64>> = match &node.value {
        Value::Whole(count) => {
            let count = u64::try_from(*count).ok().filter(|n| (1..=MAX_SEEDS).contains(n));
            count.map(|count| (1..=count).collect())
        }
        Value::List(items) => {
            let seed = |item: &Node| match item.value {
                Value::Whole(seed) => u64::try_from(seed).ok(),
                _ => None,
            };
            let seeds: Option<Vec<u64>> = items.iter().map(seed).collect();
            seeds.filter(|seeds| !seeds.is_empty())
        }
        _ => None,
    };
    seeds.unwrap_or_else(|| {
        let given = format!("'{}' is not accepted", node.show());
        file.refuse("seeds", node.place, &given);
        Vec::new()
    })
}

/// Everything at one point, and the subjects its results can be about.
fn read_plan(file: &Section<'_>) -> Option<(Plan, Vec<String>)> {
    let duration = file.time("duration");
    if duration.is_some_and(|duration| duration.is_zero()) {
        let given = file.text("duration").unwrap_or_default();
        file.refuse_value("duration", &given, "a duration above zero");
    }
    let warm_up = file.time("warm-up").unwrap_or_default();
    if duration.is_some_and(|duration| !duration.is_zero() && warm_up >= duration) {
        let given = file.text("warm-up").unwrap_or_default();
        file.refuse_value("warm-up", &given, "less than the duration");
    }
    let mut network = topology::Network::read(file);
    correlation::apply(file, &mut network);
    let flows = flows::flows(file, &network);
    let loads = flows::loads(file, &network, &flows);
    if flows.is_empty() && loads.is_empty() && !file.has("flow") && !file.has("load") {
        file.complain(
            "flow",
            "neither flows nor loads: nothing would happen",
            "[[flow]] or [[load]]",
        );
    }
    let events = events::read(file, &network, &flows);
    let subjects = probes::Subjects::new(&flows, &loads, &network.links);
    let probes = probes::read(file, &subjects);
    let plan = Plan {
        duration: duration.filter(|duration| *duration > Duration::ZERO)?,
        warm_up,
        stop_when_done: (file.word("stop") == Some("done")).then_some(Duration::MAX),
        links: network.links,
        paths: network.paths,
        flows,
        loads,
        events,
        probes,
    };
    Some((plan, subjects.all()))
}
