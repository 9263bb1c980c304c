//! The rates of the last hop in MPLOT's figure 10 are those of Bianchi's model.

use anabranch_repro::experiments;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::wireless::bianchi::{Access, Channel, Preamble};
use std::collections::BTreeSet;

fn scenario(name: &str) -> Scenario {
    let found = experiments::all().iter().find(|experiment| experiment.name == name);
    found.expect(name).scenario(false).expect("no mistakes")
}

/// Compares every last-hop rate of the scenario with the model's `rate` divided by the number of
/// stations.
fn compare(scenario: &Scenario, rate: impl Fn(Access, u32) -> f64) {
    let paths: BTreeSet<_> = scenario.points().iter().map(|point| point.label("M")).collect();
    assert_eq!(paths.len(), 9);
    for point in scenario.points() {
        let number = |name: &str| -> f64 {
            point.label(name).and_then(|label| label.parse().ok()).expect("a number")
        };
        let stations = number("M");
        for (name, access) in
            [("BASIC", Access::Basic), ("RTS", Access::RtsCts), ("TDMA", Access::Tdma)]
        {
            let expected = rate(access, stations as u32) / stations;
            assert!((number(name) - expected).abs() < 0.0002, "{name} {point:?}: {expected}");
        }
    }
}

#[test]
fn rates_of_the_last_hop_are_those_of_the_model() {
    let channel = Channel::fhss();
    // The payload is Bianchi's: 8184 bits.
    compare(&scenario("mplot/fig10"), |access, n| 11.0 * channel.share(access, n, 1023));
    let channel = Channel::dsss_11b(Preamble::Long);
    compare(&scenario("mplot/fig10-11b"), |access, n| channel.throughput(access, n, 750).as_mbps());
}
