//! The gallery: every scenario can be read and run, and some keep their bounds even in short runs.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_sim::scenario::Scenario;
use anabranch_sim::stats::Verdict;

fn gallery() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn load(path: &Path, assignments: &[&str]) -> Scenario {
    let text = fs::read_to_string(path).expect("a scenario");
    let directory = path.parent().expect("a directory").to_owned();
    let mut read =
        |name: &str| fs::read_to_string(directory.join(name)).map_err(|error| error.to_string());
    let assignments: Vec<String> = assignments.iter().map(|text| (*text).to_owned()).collect();
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    Scenario::load(&text, &name, &assignments, &mut read).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// Runs every point with `seeds` seeds. Returns the claims that fail.
fn check(scenario: &Scenario, seeds: u64) -> Vec<String> {
    let run = |point| {
        let run = |seed| scenario.run(point, seed).unwrap_or_else(|error| panic!("{error}"));
        (1..=seeds).map(run).collect()
    };
    let runs: Vec<Vec<_>> = scenario.points().iter().map(run).collect();
    let findings = scenario.judge(&runs);
    assert!(!findings.is_empty());
    let failed = findings.iter().filter(|finding| finding.verdict == Some(Verdict::Fails));
    failed.map(|finding| format!("{finding:?}")).collect()
}

#[test]
fn every_scenario_of_the_gallery_runs() {
    let mut names = Vec::new();
    for entry in fs::read_dir(gallery()).expect("scenarios/") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let whole = load(&path, &[]);
        let stem = path.file_stem().expect("a stem").to_string_lossy().into_owned();
        assert_eq!(whole.name(), stem, "a scenario is called like its file");
        assert!(whole.description().len() > 60, "{stem} says what it shows");
        assert!(!whole.claims().is_empty(), "{stem} says what to expect");
        let brief = load(&path, &["duration=2s", "warm-up=500ms"]);
        let reports: Vec<_> = brief
            .points()
            .iter()
            .map(|point| brief.run(point, 1).unwrap_or_else(|error| panic!("{stem}: {error}")))
            .collect();
        for report in &reports {
            // In so short a time and at such losses, some TCP flows deliver nothing.
            let sent = report.scalar("all", "data_packets").expect("measured");
            assert!(sent > 0.0, "{stem}: {:?} sends nothing", report.point);
            assert_eq!(report.scalar("all", "failed"), Some(0.0), "{stem}: {:?}", report.point);
        }
        names.push(stem);
    }
    assert!(names.len() >= 12, "{names:?}");
}

#[test]
fn short_runs_keep_the_bounds_that_time_does_not_matter_to() {
    for (name, assignments) in [
        ("single-tcp-loss", &["duration=20s"][..]),
        ("codel", &["duration=30s"]),
        ("short-flows", &["duration=40s"]),
        ("failover", &["duration=20s"]),
        ("mahimahi", &["duration=12s"]),
    ] {
        let scenario = load(&gallery().join(format!("{name}.toml")), assignments);
        let broken = check(&scenario, 1);
        assert!(broken.is_empty(), "{name}: {broken:#?}");
    }
}

/// The null test: where core and TCP use the same mechanisms, their speeds agree within a tenth.
#[test]
fn the_uncoded_core_with_reno_is_tcp() {
    let scenario = load(&gallery().join("null-test.toml"), &["duration=100s"]);
    assert_eq!(scenario.points().len(), 12);
    let broken = check(&scenario, 5);
    assert!(broken.is_empty(), "{broken:#?}");
}
