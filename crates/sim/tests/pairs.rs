//! The pairs of links of `scenarios/pairs`: each is valid, and every scheduler completes a transfer over it.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_sim::scenario::Scenario;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/pairs")
}

fn load(pair: &str, settings: &[&str]) -> Scenario {
    let text = fs::read_to_string(folder().join(format!("{pair}.toml"))).expect("a pair");
    let mut read = |name: &str| fs::read_to_string(folder().join(name)).map_err(|e| e.to_string());
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    Scenario::load(&text, pair, &settings, &mut read).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Completion times by the sweep's points.
fn times(scenario: &Scenario) -> Vec<f64> {
    let time = |point| {
        let report = scenario.run(point, 1).unwrap_or_else(|error| panic!("{point:?}: {error}"));
        let name = scenario.name();
        assert_eq!(report.scalar("all", "transfers"), Some(1.0), "{name}: {:?}", report.point);
        assert_eq!(report.scalar("all", "failed"), Some(0.0), "{name}: {:?}", report.point);
        report.scalar("all", "fct_mean_s").expect("measured")
    };
    scenario.points().iter().map(time).collect()
}

#[test]
fn every_scheduler_completes_a_transfer_over_every_pair() {
    let mut pairs = Vec::new();
    for entry in fs::read_dir(folder()).expect("scenarios/pairs") {
        let path = entry.expect("an entry").path();
        let pair = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if pair == "base" {
            continue;
        }
        let scenario = load(&pair, &["sweep.size.values=[\"25kB\"]"]);
        assert_eq!(scenario.name(), pair);
        assert_eq!(times(&scenario).len(), 3 * 14, "three transports, fourteen schedulers");
        pairs.push(pair);
    }
    assert_eq!(pairs.len(), 10, "{pairs:?}");
}

/// Over two equal links LATE's forecast has nothing to gain. What it queues ahead of a window that is full has to wait for
/// a round trip, and cost a fifth of the time when half of what was in flight counted as room.
#[test]
fn late_costs_nothing_over_equal_links() {
    let settings = ["variants=[\"uncoded\", \"anabranch\"]", "sweep.size.values=[\"100kB\"]"];
    let schedulers =
        "sweep.scheduler.values=[\"min-rtt\", \"late:window=clocked\", \"late:window=at-once\"]";
    let times = times(&load("equal", &[settings[0], settings[1], schedulers]));
    let [a, b, c, d, e, f] = times[..] else { panic!("{times:?}") };
    for [least, late, half] in [[a, c, e], [b, d, f]] {
        assert!(late < 1.02 * least && half > 1.01 * late, "{times:?}");
    }
}
