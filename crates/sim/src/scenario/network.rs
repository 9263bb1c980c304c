//! The network of a scenario without its flows, for programs that use its links.

use core::cell::RefCell;

use super::error::{Flaw, Place, ScenarioError};
use super::plan::{EventPlan, LinkPlan, PathPlan};
use super::reader::{Files, Section};
use super::sources::{Reading, Sources};
use super::sweep::{self, Point};
use super::topology::{self, RECEIVER, SENDER};
use super::tree::{Node, Table};
use super::{OwnPolicies, ReadFile, correlation, events, open, variables};
use crate::link::LinkConfig;

/// Links, the paths over them, and the events that change the paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkPlan {
    /// The directed links.
    pub links: Vec<LinkPlan>,
    /// The named routes. There is at least one if the plan was read from a scenario.
    pub paths: Vec<PathPlan>,
    /// Changes of paths, in the order of time.
    pub events: Vec<EventPlan>,
}

/// Keys that are required in a scenario but not in a network, and the values used if they are
/// missing.
const SPARED: [(&str, &str); 2] = [("name", "network"), ("duration", "1s")];

impl NetworkPlan {
    /// Reads the network of a scenario as [`Scenario::load`](super::Scenario::load) does. Flows,
    /// loads, probes and claims of the scenario are ignored. They, its name and its duration may be
    /// missing. If the network differs between points of a sweep or between variants, assignments
    /// must select one of them.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file; mistakes in assignments come last.
    pub fn load(
        text: &str,
        file_name: &str,
        assignments: &[String],
        read: &mut ReadFile<'_>,
    ) -> Result<NetworkPlan, Vec<ScenarioError>> {
        let mut sources = Sources::new(file_name, text);
        let reading = Reading { attached: RefCell::default(), read: RefCell::new(read) };
        let (mut root, flaws) = sources.assigned(assignments, false, &reading)?;
        let flaws = RefCell::new(flaws);
        for (key, value) in SPARED {
            if root.find(key).is_none() {
                // Setting a top-level key cannot fail.
                let _ = root.set(key, &Node::from_assignment(value, Place::default()));
            }
        }
        let plan = read_network(&root, &flaws, &reading);
        let flaws = flaws.into_inner();
        if flaws.is_empty() { Ok(plan) } else { Err(sources.locate(flaws, assignments)) }
    }

    /// Parallel links, and a path over each. The first link of each pair is the forward link, the
    /// second is the reverse link.
    pub fn parallel(links: impl IntoIterator<Item = (String, [LinkConfig; 2])>) -> NetworkPlan {
        let mut plan = NetworkPlan::default();
        for (name, [there, back]) in links {
            let first = plan.links.len();
            let link = |name: String, [from, to]: [&str; 2], config| LinkPlan {
                name,
                from: from.to_owned(),
                to: to.to_owned(),
                config,
            };
            plan.links.push(link(name.clone(), [SENDER, RECEIVER], there));
            plan.links.push(link(format!("{name}.reverse"), [RECEIVER, SENDER], back));
            plan.paths.push(PathPlan {
                group: name.clone(),
                name,
                forward: vec![first],
                back: vec![first + 1],
                congestion: None,
            });
        }
        plan
    }
}

fn read_network(root: &Table, flaws: &RefCell<Vec<Flaw>>, files: &dyn Files) -> NetworkPlan {
    let built_in = OwnPolicies::default();
    let context = built_in.context(flaws, files);
    let at = |point: &Point| {
        let mut root = root.clone();
        flaws.borrow_mut().extend(point.apply(&mut root).err());
        let file = open(&root, variables(&root, point, flaws), context);
        read_paths(&file)
    };
    let file = open(root, variables(root, &Point::default(), flaws), context);
    let points = sweep::points(&file, &sweep::axes(&file));
    let mut plans = points.iter().map(at);
    let plan = plans.next().unwrap_or_default();
    if file.mistakes() == 0 && plans.any(|other| other != plan) {
        let key = if file.has("sweep") { "sweep" } else { "variant" };
        let given = format!("links differ among {} points", points.len());
        let allowed = "one of them: sweeps of one value, by --set sweep.NAME.values=[VALUE], and one variant, by \
             --set variants=[\"NAME\"]";
        file.complain(key, given, allowed);
    }
    plan
}

fn read_paths(file: &Section<'_>) -> NetworkPlan {
    if file.has("mesh") {
        file.complain("mesh", "stations with radios, which cannot be emulated", "[[path]]");
    }
    let mut network = topology::Network::read(file);
    correlation::apply(file, &mut network);
    let events = events::read(file, &network, &[]);
    if network.paths.is_empty() && !file.has("path") {
        file.complain("path", "no paths: there is nothing to emulate", "[[path]]");
    }
    NetworkPlan { links: network.links, paths: network.paths, events }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, assignments: &[&str]) -> Result<NetworkPlan, String> {
        let assignments: Vec<String> = assignments.iter().map(|&a| a.to_owned()).collect();
        let mut none = |_: &str| Err("no files here".to_owned());
        let plan = NetworkPlan::load(text, "net.toml", &assignments, &mut none);
        plan.map_err(|mistakes| mistakes.iter().map(|m| format!("{m}\n")).collect())
    }

    const TWO: &str = "[[path]]\nname = \"lte\"\nrate = \"9mbit\"\ndelay = \"40ms\"\n\
        [[path]]\nname = \"sat\"\nrate = \"20mbit\"\ndelay = \"30ms\"\nloss = \"2%\"\n\
        [[event]]\nat = \"3s\"\npath = \"sat\"\nwhat = \"down\"\n";

    #[test]
    fn paths_are_enough() {
        let plan = load(TWO, &["path.lte.rate=5mbit"]).expect("a network");
        let names: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["lte", "lte.reverse", "sat", "sat.reverse"]);
        assert_eq!(plan.links[0].config.rate.at(anabranch_types::Time::ZERO).as_mbps(), 5.0);
        assert_eq!((&plan.paths[1].forward, &plan.paths[1].back), (&vec![2], &vec![3]));
        assert_eq!(plan.events.len(), 1);
    }

    #[test]
    fn a_whole_scenario_gives_the_same_as_its_plan() {
        let text = format!(
            "name = \"whole\"\nduration = \"5s\"\n{TWO}[[flow]]\nname = \"bulk\"\nprofile = \"anabranch\"\n"
        );
        let plan = load(&text, &[]).expect("a network");
        let whole = super::super::Scenario::parse(&text, "whole.toml").expect("a scenario");
        let whole = whole.plan(&whole.points()[0]).expect("a plan");
        assert_eq!(format!("{:?}", plan.links), format!("{:?}", whole.links));
        assert_eq!((plan.paths, plan.events), (whole.paths, whole.events));
    }

    #[test]
    fn what_cannot_be_emulated_is_refused() {
        let sweep =
            format!("{TWO}[[sweep]]\nkey = \"path.lte.rate\"\nvalues = [\"1mbit\", \"2mbit\"]\n");
        let error = load(&sweep, &[]).expect_err("two points");
        assert!(error.contains("differ among 2 points") && error.lines().count() == 1, "{error}");
        assert!(load(&sweep, &["sweep.rate.values=[\"2mbit\"]"]).is_ok());
        let same = format!("{TWO}[[sweep]]\nkey = \"duration\"\nvalues = [\"1s\", \"2s\"]\n");
        assert_eq!(load(&same, &[]), load(TWO, &[]));
        let error = load("", &[]).expect_err("nothing");
        assert!(error.contains("nothing to emulate") && error.lines().count() == 1, "{error}");
        let error = load(TWO, &["path.lte.rate=fast"]).expect_err("no rate");
        assert!(error.contains("path.lte.rate=fast") && error.lines().count() == 1, "{error}");
        let error = load("[[path]]\nname = \"a\"\n", &[]).expect_err("no rate");
        assert!(error.contains("rate: missing"), "{error}");
    }
}
