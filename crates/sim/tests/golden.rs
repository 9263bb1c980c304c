//! Golden digests of canonical transfers: any change of behaviour shows as a difference from
//! `golden/traces.txt`.
//!
//! Each line is a run: its name, the digest of every packet on every link, the bytes delivered, the
//! packets sent, and the duration in microseconds. `BLESS=1` (or `cargo xtask bless`) writes the
//! file again.

mod support;

use anabranch_policy::view::TrafficClass;
use anabranch_sim::endpoint::PathChange;
use anabranch_sim::link::FaultConfig;
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_sim::traffic::Messages;
use core::time::Duration;
use std::fmt::Write as _;
use std::path::Path;

use support::{bytes, flow, go, links, profile};

/// A bulk transfer of half a megabyte over links given as text.
fn bulk(profile: &str, texts: &[&str]) -> Plan {
    Plan::parallel(links(texts)).flow(bytes(profile, 500_000))
}

const TWINS: [&str; 2] = ["rate=10mbit,delay=20ms,loss=10%", "rate=10mbit,delay=20ms,loss=10%"];
const MARKING: [&str; 2] =
    ["rate=10mbit,delay=20ms,loss=10%,ecn", "rate=10mbit,delay=20ms,loss=10%,ecn"];
const DEMO: [&str; 3] = [
    "rate=20mbit,delay=30ms,loss=2%",
    "rate=12mbit,delay=40ms,loss=5%",
    "rate=30mbit,delay=5ms,loss=markov:5%/35%@250ms",
];

/// Every run with its name.
fn scenarios() -> Vec<(&'static str, Plan)> {
    let failover = ["rate=8mbit,delay=20ms", "rate=8mbit,delay=15ms,blackout=150ms-900ms"];
    let half = Duration::from_millis(500);
    let (interval, class) = (Duration::from_millis(20), TrafficClass::Interactive);
    let messages = Messages { interval, size: 100, count: u64::MAX, class };
    let talk = FlowPlan::core(profile("anabranch")).until(half);
    let talk = FlowPlan { messages: Some(messages), ..talk };
    let mut mangled = bulk("anabranch", &TWINS);
    flow(&mut mangled).transport.receive_symbols = 200;
    for link in &mut mangled.links {
        link.config.faults = FaultConfig {
            flip: 0.02,
            truncate: 0.02,
            duplicate: 0.05,
            replay: 0.05,
            inject: 0.05,
            hold: 0.05,
            thin_acks: 0,
        };
    }
    let shared = bulk("anabranch", &["rate=10mbit,delay=20ms,loss=1%"]);
    let marking = bulk("mplot", &MARKING);
    vec![
        ("one-clean-link", bulk("uncoded", &["rate=10mbit,delay=20ms"])),
        ("twins-anabranch", bulk("anabranch", &TWINS)),
        ("twins-mplot", bulk("mplot", &MARKING)),
        ("twins-uncoded", bulk("uncoded", &TWINS)),
        ("demo", bulk("anabranch", &DEMO)),
        ("failover", Plan::parallel(links(&failover)).flow(bytes("anabranch", 1_000_000))),
        ("rebinding", marking.event(Duration::from_millis(200), 0, PathChange::Rebind)),
        ("probes", Plan::parallel(links(&DEMO)).flow(talk)),
        ("two-flows", shared.flow(bytes("uncoded", 500_000))),
        ("mangled", mangled),
    ]
}

#[test]
fn traces_are_golden() {
    let mut actual = String::new();
    for (name, plan) in scenarios() {
        let report = go(&plan, 1);
        writeln!(
            actual,
            "{name} {:016x} {} {} {}",
            report.digest,
            report.bytes(),
            report.packets(),
            report.elapsed().as_micros()
        )
        .expect("a string takes all");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/traces.txt");
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &actual).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file can be read");
    assert_eq!(actual, golden, "if this change is meant: cargo xtask bless");
}
