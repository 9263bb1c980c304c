//! Canonical runs as integers: any change of behaviour shows as a difference of `golden/traces.txt`.
//!
//! A line is a run: its name, the digest of every datagram sent, the bytes delivered, the datagrams
//! sent, and the microseconds it took. `BLESS=1` (or `cargo xtask bless`) writes the file again.

use anabranch_core::profiles::Profile;
use anabranch_sim::harness::{Flow, Goal, Mangle, PathChange, PathEvent, Probes, Spec, run};
use anabranch_types::Time;
use core::time::Duration;
use std::fmt::Write as _;
use std::path::Path;

/// A bulk transfer of half a megabyte over links given as text.
fn bulk(profile: &str, links: &[&str]) -> Spec {
    let links = links.iter().map(|text| text.parse().expect("the description is valid")).collect();
    let profile = Profile::named(profile).expect("the profile is built in");
    Spec::new(links, profile, Goal::Bytes(500_000), 1)
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
fn scenarios() -> Vec<(&'static str, Spec)> {
    let mut all = vec![
        ("one-clean-link", bulk("uncoded", &["rate=10mbit,delay=20ms"])),
        ("twins-anabranch", bulk("anabranch", &TWINS)),
        ("twins-mplot", bulk("mplot", &MARKING)),
        ("twins-uncoded", bulk("uncoded", &TWINS)),
        ("demo", bulk("anabranch", &DEMO)),
    ];
    let mut failover = bulk("anabranch", &["rate=8mbit,delay=20ms", "rate=8mbit,delay=15ms"]);
    failover.links[1] =
        "rate=8mbit,delay=15ms,blackout=150ms-900ms".parse().expect("the description is valid");
    failover.flows[0].goal = Goal::Bytes(1_000_000);
    all.push(("failover", failover));
    let mut rebinding = bulk("mplot", &MARKING);
    rebinding.events.push(PathEvent {
        at: Time::from_millis(200),
        link: 0,
        change: PathChange::Rebind,
    });
    all.push(("rebinding", rebinding));
    let mut probes = bulk("anabranch", &DEMO);
    probes.flows[0].probes =
        Some(Probes { interval: Duration::from_millis(20), size: 100, most: u64::MAX });
    probes.flows[0].goal = Goal::Time(Duration::from_millis(500));
    all.push(("probes", probes));
    let mut rivals = bulk("anabranch", &["rate=10mbit,delay=20ms,loss=1%"]);
    let rival = Profile::named("uncoded").expect("the profile is built in");
    rivals.flows.push(Flow { profile: rival, ..rivals.flows[0].clone() });
    all.push(("two-flows", rivals));
    let mut mangled = bulk("anabranch", &TWINS);
    mangled.transport.receive_symbols = 200;
    mangled.mangle = Some(Mangle {
        flip: 0.02,
        truncate: 0.02,
        duplicate: 0.05,
        replay: 0.05,
        inject: 0.05,
        hold: 0.05,
    });
    all.push(("mangled", mangled));
    all
}

#[test]
fn traces_are_golden() {
    let mut actual = String::new();
    for (name, spec) in scenarios() {
        let report = run(&spec, &mut |_| None).unwrap_or_else(|e| panic!("{name}: {e}"));
        writeln!(
            actual,
            "{name} {:016x} {} {} {}",
            report.digest,
            report.bytes(),
            report.datagrams,
            report.elapsed.as_micros()
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
