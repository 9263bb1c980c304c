//! The example files in docs/howto/add-an-item.md are valid and short, and give verdicts.

use anabranch_repro::catalogue;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::stats::Verdict;

const PAGE: &str = include_str!("../../../docs/howto/add-an-item.md");

/// The TOML blocks of the page.
fn blocks() -> Vec<&'static str> {
    let blocks = PAGE.split("```toml\n").skip(1);
    blocks.filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect()
}

fn load(text: &str) -> Scenario {
    let mut beside = |path: &str| match path {
        "fig2-loss.toml" => Ok(blocks()[0].to_owned()),
        _ => Err("no such file".to_owned()),
    };
    Scenario::load(text, "howto.toml", &[], &mut beside)
        .unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn the_example_is_short_and_about_an_item() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 2);
    let lines = blocks[0].lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 20, "{lines} lines");
    for block in blocks {
        for item in Scenario::items(block) {
            catalogue::find(&item).expect("an item of the catalogue");
        }
        assert!(load(block).quick().is_ok());
    }
}

#[test]
fn the_example_runs_and_is_judged() {
    let mut scenario = load(blocks()[0]).quick().expect("right");
    scenario.set("duration=20s").expect("right");
    let run = |point| {
        let run = |seed: &u64| scenario.run(point, *seed).unwrap_or_else(|error| panic!("{error}"));
        scenario.seeds().iter().map(run).collect()
    };
    let runs: Vec<Vec<_>> = scenario.points().iter().map(run).collect();
    let findings = scenario.judge(&runs);
    assert_eq!(findings.len(), 1);
    let lost = findings[0].estimate.expect("measured");
    assert_eq!(lost.n, 3);
    assert!(lost.mean > 0.0 && lost.mean < 1.0, "{lost:?}");
    let verdict = Verdict::of(Some(&lost), Some(0.5), Some(0.8));
    assert_eq!(findings[0].verdict, Some(verdict));
}
