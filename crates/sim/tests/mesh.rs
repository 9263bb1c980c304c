//! TCP over DSR over 802.11: on the ring of the reference data, against ns-2.

use anabranch_sim::wireless::mesh::{Mesh, MeshConfig, MeshCounters, MeshFlow};
use anabranch_sim::wireless::{AirConfig, Fixed, FrameLoss, MacConfig, Radio};
use anabranch_types::{Probability, Time};

/// 14 stations, 200 m from one to the next; TCP from 0 to 7 from 1 s on, seven hops either way; RTS and CTS
/// always, 11 Mb/s, ns-2's MAC.
fn ring(above: f64) -> MeshConfig {
    let above = Probability::new(above).expect("a probability");
    let loss = FrameLoss { above, below: Probability::ZERO };
    let mac = MacConfig { rts_threshold: 0, ..MacConfig::ns2() };
    let air = AirConfig { mac, loss, radio: Radio::default() };
    let flow = MeshFlow { start: Time::from_secs(1), ..MeshFlow::tcp(0, 7) };
    MeshConfig { air, flows: vec![flow], ..MeshConfig::default() }
}

/// Segments acknowledged in 100 s, and what routing did.
fn run(above: f64, seed: u64) -> (u64, MeshCounters) {
    let motion = Box::new(Fixed::circle(14, 449.4));
    let mut mesh = Mesh::new(&ring(above), motion, seed).expect("a mesh");
    mesh.run_until(Time::from_secs(101));
    (mesh.acknowledged(0) / 500, mesh.counters())
}

#[test]
fn tcp_over_seven_hops_is_as_fast_as_in_ns2() {
    let runs: Vec<u64> = (1..=4).map(|seed| run(0.0, seed).0).collect();
    let mean = runs.iter().sum::<u64>() as f64 / runs.len() as f64;
    // ns-2: 8404, 8272, 7934, 8233, 7911.
    assert!((7000.0..9000.0).contains(&mean), "{runs:?}");
}

#[test]
fn loss_that_nothing_repeats_stops_tcp() {
    let runs: Vec<u64> = (1..=4).map(|seed| run(0.05, seed).0).collect();
    // ns-2: 22, 97, 6, 7, 22.
    assert!(runs.iter().all(|segments| *segments < 300), "{runs:?}");
    assert!(runs.iter().any(|segments| *segments > 0), "{runs:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let first = run(0.01, 5);
    assert_eq!(run(0.01, 5), first);
    assert_ne!(run(0.01, 6), first);
}
