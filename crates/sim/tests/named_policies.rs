//! A scenario names a program's own policies in the same way as built-in ones, for flows of every
//! protocol and for single paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_policy::registry::{Entry, Options, option};
use anabranch_policy::scheduler::{Pick, Pull, SchedulerAction, SchedulerEvent};
use anabranch_policy::view::SchedulerView;
use anabranch_policy::{
    Axis, CongestionController, PolicyError, PolicySpec, Registry, Scheduler, congestion,
};
use anabranch_sim::scenario::{OwnPolicies, Scenario};
use anabranch_types::{PathId, Time};

const TURNS: Entry =
    Entry { name: "turns", summary: "one after the other", source: "", options: &[] };
const STEADY: Entry = Entry {
    name: "steady",
    summary: "Reno that begins with a window of its own",
    source: "",
    options: &[option("packets", "first window, packets", "10")],
};

/// A scheduler that decides as round-robin does and counts how often it is asked.
#[derive(Debug)]
struct Turns(Box<dyn Scheduler>, Arc<AtomicU64>);

impl Scheduler for Turns {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        self.0.on_event(event, view, actions);
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.pull(path, view, picks)
    }

    fn wakeup(&self) -> Option<Time> {
        self.0.wakeup()
    }
}

fn steady(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let packets = options.integer("packets", 1..=100)?.to_string();
    congestion::build(&PolicySpec::new("reno").with("initial", &packets), options.packet_size())
}

/// Both policies, and the count of the scheduler's pulls.
fn brought(version: &str) -> (OwnPolicies, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    let mut registry = Registry::new();
    registry.register(&STEADY, steady).expect("a new name");
    let turns = move |_: &Options<'_>| {
        let inner = Registry::new().build(&PolicySpec::new("round-robin"))?;
        Ok(Box::new(Turns(inner, Arc::clone(&counter))) as Box<dyn Scheduler>)
    };
    registry.register(&TURNS, turns).expect("a new name");
    (OwnPolicies::new(registry, version), asked)
}

/// The text of a scenario with a flow over two paths, the first of which loses packets. The flow
/// has the profile `profile`, and its section ends with `policies`. `second` is the second path's
/// own congestion control.
fn text(profile: &str, policies: &str, second: &str) -> String {
    format!(
        "name = \"own\"\nduration = \"10s\"\n[quick]\nduration = \"2s\"\n\
         [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"10ms\"\nloss = \"1%\"\n\
         [[path]]\nname = \"b\"\nrate = \"4mbit\"\ndelay = \"30ms\"\ncongestion = \"{second}\"\n\
         [[flow]]\nname = \"f\"\nprofile = \"{profile}\"\n{policies}\n"
    )
}

fn load(text: &str, policies: OwnPolicies) -> Result<Scenario, String> {
    let mut none = |_: &str| Err("no files here".to_owned());
    let scenario = Scenario::load_with(text, "own.toml", &[], policies, &mut none);
    scenario.map_err(|errors| errors.iter().map(|error| format!("{error}\n")).collect())
}

#[test]
fn a_policy_of_the_program_runs_under_every_protocol() {
    for (profile, table) in [
        ("anabranch", "policy"),
        ("uncoded", "policy"),
        ("tcp:mptcp", "tcp"),
        ("tcp:parallel", "tcp"),
    ] {
        let policies = |scheduler: &str, congestion: &str| {
            format!("{table} = {{ scheduler = \"{scheduler}\", congestion = \"{congestion}\" }}")
        };
        let built_in = text(profile, &policies("round-robin", "reno:initial=4"), "reno:initial=10");
        let built_in = load(&built_in, OwnPolicies::default()).expect("well formed");
        let (own, asked) = brought("1");
        let own = load(&text(profile, &policies("turns", "steady:packets=4"), "steady"), own);
        let own = own.unwrap_or_else(|errors| panic!("{profile}: {errors}"));
        let digest =
            |scenario: &Scenario| scenario.run(&scenario.points()[0], 5).expect("it runs").digest;
        assert_eq!(digest(&own), digest(&built_in), "{profile}");
        let once = asked.load(Ordering::Relaxed);
        assert!(once > 1000, "{profile}: asked {once} times");
        let mut shorter = own.quick().expect("well formed");
        shorter.set("flow.f.start=100ms").expect("the policies are still there");
        digest(&shorter);
        assert!(asked.load(Ordering::Relaxed) > once, "{profile}");
    }
}

#[test]
fn a_connection_of_one_path_and_striped_ones_have_the_programs_control() {
    for (profile, extra) in [("tcp:linux", "paths = \"a\""), ("tcp:unaware", "")] {
        let tcp = |control: &str| format!("{extra}\ntcp = {{ congestion = \"{control}\" }}");
        let built_in = load(&text(profile, &tcp("reno:initial=3"), "reno"), OwnPolicies::default());
        let own = load(&text(profile, &tcp("steady:packets=3"), "steady"), brought("1").0);
        let [own, built_in] = [own, built_in].map(|scenario| {
            let scenario = scenario.unwrap_or_else(|errors| panic!("{profile}: {errors}"));
            scenario.run(&scenario.points()[0], 5).expect("it runs").digest
        });
        assert_eq!(own, built_in, "{profile}");
    }
}

#[test]
fn runs_of_other_policies_belong_to_another_scenario() {
    let text = text("anabranch", "policy = { scheduler = \"min-rtt\" }", "reno");
    let hash = |policies: OwnPolicies| load(&text, policies).expect("well formed").hash();
    let without = Scenario::parse(&text, "own.toml").expect("well formed").hash();
    assert_eq!(hash(OwnPolicies::default()), without);
    assert_eq!(hash(OwnPolicies::new(Registry::new(), "7")), without, "nothing was brought");
    let (first, second) = (hash(brought("1").0), hash(brought("2").0));
    assert!(first != second && first != without && second != without);
    assert_eq!(hash(brought("1").0), first);
    let mut fewer = Registry::new();
    fewer.register(&STEADY, steady).expect("a new name");
    assert_ne!(hash(OwnPolicies::new(fewer, "1")), first);
}

#[test]
fn mistakes_list_what_was_brought() {
    for (policies, table) in [("policy", "anabranch"), ("tcp", "tcp:mptcp")] {
        let with = |choice: &str| text(table, &format!("{policies} = {{ {choice} }}"), "reno");
        let refused = |choice: &str| load(&with(choice), brought("1").0).expect_err("a mistake");
        let error = refused("scheduler = \"turn\"");
        assert!(error.contains("no scheduler policy 'turn'; known: earliest, "), "{error}");
        assert!(error.contains("blind, turns"), "{error}");
        let error = refused("congestion = \"steady:packets=0\"");
        assert!(error.contains("packets=0 is not a whole number from 1 to 100"), "{error}");
        let error = refused("congestion = \"steady:size=9\"");
        assert!(error.contains("'steady' has no option 'size'; it takes packets"), "{error}");
    }
    let error = load(&text("anabranch", "", "stead"), brought("1").0).expect_err("a mistake");
    assert!(error.contains("path.b.congestion") && error.contains("mveno, steady"), "{error}");
}

/// Without policies from a program, a scenario can name only built-in ones, so that its text runs
/// in the same way everywhere.
#[test]
fn a_scenario_by_itself_names_built_in_policies_only() {
    for axis in Axis::ALL {
        let policy = format!("policy = {{ {axis} = \"watched\" }}");
        let errors = Scenario::parse(&text("anabranch", &policy, "reno"), "own.toml");
        let errors = errors.expect_err("nobody brings it");
        let error = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let expected = format!("there is no {axis} policy 'watched'; known: ");
        assert!(error.contains(&expected), "{error}");
    }
}
