//! The links and pairs of `scenarios/roads`: each is valid, and carries a transfer.

use std::fs;
use std::path::Path;

use anabranch_sim::scenario::Scenario;

/// A file of roads, to run for a second and a half.
fn brief(file: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/roads");
    let text = fs::read_to_string(folder.join(format!("{file}.toml"))).expect("a file of roads");
    let mut read = |name: &str| fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    let settings = ["duration=1500ms", "warm-up=100ms"].map(str::to_owned);
    Scenario::load(&text, file, &settings, &mut read).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn every_road_carries_a_transfer() {
    for (file, least) in [("links", 40), ("pairs", 20)] {
        let scenario = brief(file);
        assert!(scenario.points().len() >= least, "{file}: {}", scenario.points().len());
        for point in scenario.points() {
            let report =
                scenario.run(point, 1).unwrap_or_else(|error| panic!("{point:?}: {error}"));
            let bytes = report.scalar("bulk", "delivered_bytes").expect("measured");
            let messages = report.flows.first().map_or(0, |flow| flow.messages.arrived.len());
            assert!(bytes > 0.0 || messages > 0, "{file}: {:?}", point.labels);
        }
    }
}
