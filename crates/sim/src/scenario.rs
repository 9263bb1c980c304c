//! Scenarios: experiments as TOML files.
//!
//! A file describes the network, the flows and loads over it, what is recorded, which keys take
//! several values, and what the results must show. `docs/scenarios.md` explains the format by
//! example and lists every key.

mod builder;
mod claims;
mod correlation;
mod cost;
mod error;
mod events;
mod expression;
mod figures;
mod flows;
mod formula;
mod graph;
mod hash;
mod keys;
mod mesh;
mod network;
mod outcome;
mod parts;
mod plan;
mod policies;
mod portable;
mod probes;
mod profiles;
mod reader;
mod reference;
mod results;
mod run;
mod schema;
mod sources;
mod spec;
mod striping;
mod sweep;
mod tcp;
mod topology;
mod tree;
mod variant;

#[cfg(test)]
mod tests;

use core::cell::RefCell;
use core::time::Duration;
use std::collections::BTreeMap;

pub use crate::link::ReadFile;
pub use claims::{Claim, Finding};
pub use error::ScenarioError;
pub use figures::{Drawing, DrawnCurve};
pub use keys::SCENARIO as KEYS;
pub use network::NetworkPlan;
pub use outcome::Needed;
pub use plan::{
    EventPlan, FlowPlan, LinkPlan, LoadPlan, MeshPlan, Movement, PathPlan, Plan, ProbePlan,
};
pub use policies::OwnPolicies;
pub use portable::ScenarioSource;
pub use profiles::{Protocol, all as profiles};
pub use results::Published;
pub use run::{DecisionObservers, RunError, RunOptions};
pub use spec::{KeySpec, Kind};
pub use sweep::Point;

use error::{Flaw, Place};
use expression::Bindings;
use reader::{Context, Files, Section};
use sources::{Reading, Sources};
use tree::{Node, Table, Value};

/// An experiment that was read and has no mistakes at any point of its sweep.
#[derive(Clone, Debug)]
pub struct Scenario {
    sources: Sources,
    root: Table,
    policies: OwnPolicies,
    assignments: Vec<String>,
    is_quick: bool,
    /// Contents of the files that the scenario names, by path.
    attached: BTreeMap<String, String>,
    header: Header,
    points: Vec<Point>,
    /// Estimated CPU time of a run at each point, s.
    costs: Vec<f64>,
    grid: claims::Grid,
    /// Titles of the variants, by name.
    titles: BTreeMap<String, String>,
    claims: Vec<Claim>,
    figures: Vec<figures::Figure>,
    /// Subjects and metrics that claims and figures need measured.
    wanted: Vec<(String, &'static str)>,
}

/// Parts of a scenario that are the same at every point.
#[derive(Clone, Debug, Default)]
struct Header {
    name: String,
    title: String,
    description: String,
    item: Option<String>,
    results: Vec<Published>,
    seeds: Vec<u64>,
}

impl Scenario {
    /// The entry of [`settings`](Self::settings) for a scenario shortened by its `[quick]`.
    pub const QUICK: &str = "--quick";

    /// Reads a scenario that names no other files.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file.
    pub fn parse(text: &str, file_name: &str) -> Result<Scenario, Vec<ScenarioError>> {
        let mut none = |_: &str| Err("no files can be read here".to_owned());
        Scenario::load(text, file_name, &[], &mut none)
    }

    /// Reads a scenario and applies `KEY=VALUE` assignments to it. `read` reads the files that the
    /// scenario names.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file; mistakes in assignments come last.
    pub fn load(
        text: &str,
        file_name: &str,
        assignments: &[String],
        read: &mut ReadFile<'_>,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::load_with(text, file_name, assignments, OwnPolicies::default(), read)
    }

    /// This scenario shortened by its `[quick]`.
    ///
    /// # Errors
    /// Every mistake of the shortened scenario.
    pub fn quick(&self) -> Result<Scenario, Vec<ScenarioError>> {
        self.again(&self.assignments, true)
    }

    /// This scenario with one more assignment, such as `flow.bulk.count=3` or `duration=5s`. Elements of
    /// lists are addressed by name, by number from 0, or by `*` for all.
    ///
    /// # Errors
    /// Every mistake that the assignment causes. The scenario is then unchanged.
    pub fn set(&mut self, assignment: &str) -> Result<(), Vec<ScenarioError>> {
        let mut assignments = self.assignments.clone();
        assignments.push(assignment.to_owned());
        *self = self.again(&assignments, self.is_quick)?;
        Ok(())
    }

    /// Reads the scenario again from the same file contents, with these settings.
    fn again(
        &self,
        assignments: &[String],
        is_quick: bool,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        let mut read = |path: &str| self.attached.read(path);
        let sources = Sources::new(self.sources.name(), self.sources.text());
        Scenario::read(sources, assignments, is_quick, self.policies.clone(), &mut read)
    }

    fn read(
        mut sources: Sources,
        assignments: &[String],
        is_quick: bool,
        policies: OwnPolicies,
        read: &mut ReadFile<'_>,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        let reading = Reading { attached: RefCell::default(), read: RefCell::new(read) };
        let (root, mut flaws) = sources.assigned(assignments, is_quick, &reading)?;
        let mut scenario = Scenario {
            sources,
            root,
            policies,
            assignments: assignments.to_vec(),
            is_quick,
            attached: BTreeMap::new(),
            header: Header::default(),
            points: Vec::new(),
            costs: Vec::new(),
            grid: claims::Grid::default(),
            titles: BTreeMap::new(),
            claims: Vec::new(),
            figures: Vec::new(),
            wanted: Vec::new(),
        };
        flaws.extend(scenario.check(&reading));
        scenario.attached = reading.attached.take();
        if flaws.is_empty() {
            Ok(scenario)
        } else {
            Err(scenario.sources.locate(flaws, assignments))
        }
    }

    /// The scenario's name in results.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// The scenario's title, one line.
    pub fn title(&self) -> &str {
        &self.header.title
    }

    /// Description of what the scenario shows and why; may be empty.
    pub fn description(&self) -> &str {
        &self.header.description
    }

    /// Identifier of the published result that claims are about by default, if any.
    pub fn item(&self) -> Option<&str> {
        self.header.item.as_deref()
    }

    /// The published results that the scenario is about.
    pub fn results(&self) -> &[Published] {
        &self.header.results
    }

    /// Whether the scenario is shortened by its `[quick]`.
    pub fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// The seeds that the scenario asks for, at least one.
    pub fn seeds(&self) -> &[u64] {
        &self.header.seeds
    }

    /// The text of the scenario file.
    pub fn source(&self) -> &str {
        self.sources.text()
    }

    /// The assignments that were applied to the text.
    pub fn assignments(&self) -> &[String] {
        &self.assignments
    }

    /// All changes that were applied to the text: `--quick` if the scenario is shortened, and the
    /// assignments.
    pub fn settings(&self) -> Vec<String> {
        let quick = self.is_quick.then(|| Self::QUICK.to_owned());
        quick.into_iter().chain(self.assignments.iter().cloned()).collect()
    }

    /// The contents of the files that the scenario names, by path.
    pub fn attached(&self) -> &BTreeMap<String, String> {
        &self.attached
    }

    /// All points of the sweep: every combination of its values, at least one point.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// CPU time that a run at `point` may take, s. It is estimated from rates and sizes, to tell
    /// long runs from short ones before any has run.
    pub fn cost(&self, point: &Point) -> f64 {
        self.costs.get(point.index).copied().unwrap_or_default()
    }

    /// The plan of the runs at `point`.
    ///
    /// # Errors
    /// When the point is not one of this scenario's.
    pub fn plan(&self, point: &Point) -> Result<Plan, Vec<ScenarioError>> {
        let flaws = RefCell::new(Vec::new());
        let mut root = self.root.without(ACROSS_POINTS);
        if let Err(flaw) = point.apply(&mut root) {
            flaws.borrow_mut().push(flaw);
        }
        let bindings = variables(&root, point, &flaws);
        let file = open(&root, bindings, self.policies.context(&flaws, &self.attached));
        let plan = read_plan(&file);
        let flaws = flaws.into_inner();
        match plan {
            Some((plan, _)) if flaws.is_empty() => Ok(plan),
            _ => Err(self.sources.locate(flaws, &self.assignments)),
        }
    }

    /// The format as a JSON schema (draft 2020-12), for editors.
    pub fn json_schema() -> String {
        schema::json_schema()
    }

    /// Tables of all keys and all metrics in Markdown, for the documentation.
    pub fn reference() -> String {
        reference::markdown()
    }

    /// Reads the header, every point and the claims. Returns the mistakes.
    fn check(&mut self, reading: &Reading<'_, '_>) -> Vec<Flaw> {
        let flaws = RefCell::new(Vec::new());
        let (root, policies) = (self.root.clone(), self.policies.clone());
        let bindings = variables(&root, &Point::default(), &flaws);
        let file = open(&root, bindings, policies.context(&flaws, reading));
        self.header = header(&file);
        let axes = sweep::axes(&file);
        self.points = sweep::points(&file, &axes);
        flaws.borrow_mut().extend(sweep::unseen(&self.points, &self.assignments));
        let mut known = claims::Known::default();
        let common = self.root.without(ACROSS_POINTS);
        for point in &self.points {
            let mut root = common.clone();
            if let Err(flaw) = point.apply(&mut root) {
                flaws.borrow_mut().push(flaw);
                continue;
            }
            let at_point = RefCell::new(Vec::new());
            let bindings = variables(&root, point, &at_point);
            let file = open(&root, bindings, policies.context(&at_point, reading));
            let plan = read_plan(&file);
            let at_point = at_point.into_inner();
            let broken = !at_point.is_empty();
            flaws.borrow_mut().extend(at_point);
            if let Some((plan, found)) = plan {
                self.costs.push(cost::seconds(&plan));
                known.add(&plan, found);
            }
            if broken {
                // Other points probably have the same mistakes.
                break;
            }
        }
        self.grid = claims::Grid::new(&axes, &self.points);
        self.titles =
            variant::read(&file).into_iter().map(|variant| (variant.name, variant.title)).collect();
        let whole = self.assignments.is_empty() && !self.is_quick;
        let item = self.header.item.as_deref();
        let (grid, titles) = (&self.grid, &self.titles);
        let context = claims::Context { known: &known, grid, titles, whole, item };
        self.claims = claims::read(&file, &context);
        self.figures = figures::read(&file, &known, &self.grid, whole, item);
        self.wanted = self.wanted();
        flaws.into_inner()
    }
}

/// Keys that do not change the plan of a single point.
const ACROSS_POINTS: &[&str] =
    &["sweep", "result", "claim", "expect", "measure", "figure", "seeds", "description"];

fn open<'a>(root: &'a Table, bindings: Bindings, context: Context<'a>) -> Section<'a> {
    Section::open(root, keys::SCENARIO, Place::default(), String::new(), bindings, context)
}

/// Reads `[vars]`, the values that replace `{NAME}` everywhere.
fn variables(root: &Table, point: &Point, flaws: &RefCell<Vec<Flaw>>) -> Bindings {
    let mut bindings = Bindings::default();
    if let Some(name) = point.label(variant::AXIS) {
        bindings.word(variant::AXIS, name);
    }
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
    let results = results::read(file);
    let first = results.first().map(|result| result.item.clone());
    Header {
        title: file.text("title").unwrap_or_else(|| name.clone()),
        description: file.text("description").unwrap_or_default().trim().to_owned(),
        item: file.text("item").or(first),
        results,
        seeds: seeds(file),
        name,
    }
}

/// Maximum number of seeds.
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

/// Reads the plan of one point, and the subjects of its results.
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
    let mesh = mesh::read(file);
    let broken = mesh.is_none() && file.has("mesh");
    // Flows between stations cannot be checked without the stations.
    let (mut flows, mut loads) = (Vec::new(), Vec::new());
    if !broken {
        flows = flows::flows(file, &network, mesh.as_ref());
        loads = flows::loads(file, (&network, mesh.as_ref()), &flows);
    }
    if flows.is_empty() && loads.is_empty() && !file.has("flow") && !file.has("load") {
        file.complain(
            "flow",
            "neither flows nor loads: nothing would happen",
            "[[flow]] or [[load]]",
        );
    }
    let events = events::read(file, &network, &flows);
    let subjects = probes::Subjects::new(&flows, &loads, &network.links, mesh.is_some());
    let probes = probes::read(file, &subjects);
    let plan = Plan {
        duration: duration.filter(|duration| *duration > Duration::ZERO)?,
        warm_up,
        stop_when_done: (file.word("stop") == Some("done")).then_some(Duration::MAX),
        links: network.links,
        paths: network.paths,
        mesh,
        flows,
        loads,
        events,
        probes,
    };
    Some((plan, subjects.all()))
}
