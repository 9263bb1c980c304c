//! Coupled congestion controls on simulated MPTCP: how much each takes at a shared bottleneck, on
//! two paths, and from other users in two published topologies. The scenarios are those of
//! `scenarios/coupled`, in short runs.

use std::fs;
use std::path::Path;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::stats::Verdict;

/// Runs a scenario with `assignments` and three seeds, and checks that no claim fails.
fn check(name: &str, assignments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/coupled");
    let text = fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a scenario");
    let mut read = |name: &str| fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    let assignments: Vec<String> = assignments.iter().map(|text| (*text).to_owned()).collect();
    let scenario = Scenario::load(&text, name, &assignments, &mut read)
        .unwrap_or_else(|errors| panic!("{name} {assignments:?}: {errors:#?}"));
    let run = |point| {
        let run = |seed| scenario.run(point, seed).unwrap_or_else(|error| panic!("{error}"));
        (1..=3).map(run).collect()
    };
    let runs: Vec<Vec<_>> = scenario.points().iter().map(run).collect();
    let judged: Vec<_> =
        scenario.judge(&runs).into_iter().filter(|found| found.verdict.is_some()).collect();
    assert!(!judged.is_empty(), "{name} claims nothing at {assignments:?}");
    for found in judged {
        assert_ne!(found.verdict, Some(Verdict::Fails), "{name}: {found:?}");
    }
}

#[test]
fn at_a_shared_bottleneck_they_take_what_one_tcp_takes() {
    check("shared", &["variants=red", "duration=45s", "warm-up=10s"]);
}

#[test]
fn they_get_as_much_as_on_the_better_path_and_leave_the_congested_one() {
    let only =
        ["sweep.rivals_a.values=[2]", "sweep.rivals_b.values=[8]", "sweep.delay_b.values=[40]"];
    check("two", &[&only[..], &["duration=45s", "warm-up=10s"]].concat());
}

#[test]
fn olia_and_balia_leave_single_path_users_more_than_lia() {
    let only = ["sweep.N.values=[30]", "sweep.C.values=[1]", "duration=25s", "warm-up=8s"];
    let controls = r#"sweep.control.values=["lia","olia","balia"]"#;
    for name in ["scenario-c", "scenario-a"] {
        check(name, &[&only[..], &[controls]].concat());
    }
}
