//! TCP over DSR over 802.11 on the ring of the reference data, compared with ns-2.

use anabranch_sim::endpoint::UdpConfig;
use anabranch_sim::wireless::mesh::{
    Mesh, MeshConfig, MeshCounters, MeshFlow, MeshTraffic, Renewal, RoutingConfig,
};
use anabranch_sim::wireless::{
    AirConfig, Fixed, FrameLoss, MacConfig, Motion, Position, Radio, RandomWaypoint, Waypoints,
};
use anabranch_types::{Bitrate, Probability, Time};

/// A ring of 14 stations, 200 m from one to the next. TCP runs from station 0 to station 7 from 1 s
/// on, seven hops either way round. The MAC is ns-2's with 11 Mb/s and always uses RTS and CTS.
fn ring(above: f64) -> MeshConfig {
    let above = Probability::new(above).expect("a probability");
    let loss = FrameLoss { above, below: Probability::ZERO };
    let mac = MacConfig { rts_threshold: 0, ..MacConfig::ns2() };
    let air = AirConfig { mac, loss, radio: Radio::default() };
    let flow = MeshFlow { start: Time::from_secs(1), ..MeshFlow::tcp(0, 7) };
    MeshConfig { air, flows: vec![flow], ..MeshConfig::default() }
}

/// Segments acknowledged in 100 s, and the counters of the mesh.
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
    // Five runs of ns-2 acknowledge 8404, 8272, 7934, 8233 and 7911 segments.
    assert!((7000.0..9000.0).contains(&mean), "{runs:?}");
}

#[test]
fn loss_that_nothing_repeats_stops_tcp() {
    let runs: Vec<u64> = (1..=4).map(|seed| run(0.05, seed).0).collect();
    // Five runs of ns-2 acknowledge 22, 97, 6, 7 and 22 segments.
    assert!(runs.iter().all(|segments| *segments < 300), "{runs:?}");
    assert!(runs.iter().any(|segments| *segments > 0), "{runs:?}");
}

/// The ring with 5 % loss, which spares routing packets. `routing` searches again while only one
/// route is usable.
fn spared(routing: RoutingConfig) -> MeshConfig {
    let routing = RoutingConfig { renewal: Renewal::OneRoute, ..routing };
    MeshConfig { routing, loss_spares_routing: true, ..ring(0.05) }
}

#[test]
fn copies_keep_tcp_alive_where_a_third_of_the_packets_is_lost() {
    let run = |routing, seed| {
        let motion = Box::new(Fixed::circle(14, 449.4));
        let mut mesh = Mesh::new(&spared(routing), motion, seed).expect("a mesh");
        mesh.run_until(Time::from_secs(101));
        (mesh.acknowledged(0) / 500, mesh.statistics(0))
    };
    let sum =
        |routing: fn() -> RoutingConfig| (1..=3).map(|seed| run(routing(), seed).0).sum::<u64>();
    let (plain, copied) = (sum(RoutingConfig::dsr), sum(RoutingConfig::mtcp));
    // The paper's factor is 5, from a single run.
    assert!(copied > 5 * plain, "{plain} segments by DSR, {copied} by M-TCP");
    // With copies, more losses are repaired after duplicate acknowledgements.
    let recoveries = |routing| run(routing, 1).1.recoveries;
    assert!(recoveries(RoutingConfig::mtcp()) > recoveries(RoutingConfig::dsr()));
}

#[test]
fn of_two_copies_of_a_datagram_one_arrives_more_often() {
    // 40 packets a second; a route of seven hops delivers .95^7 = .698 of them, two deliver 1 − .302² = .909.
    let udp = UdpConfig::constant(Bitrate::from_bps(160_000), 500);
    let share = |routing: RoutingConfig| {
        let routing = RoutingConfig { drop_copies: true, arp: false, ..routing };
        let traffic = MeshTraffic::Udp(udp.clone());
        let flows = vec![MeshFlow { traffic, ..MeshFlow::tcp(0, 7) }];
        let config = MeshConfig { flows, ..spared(routing) };
        let motion = Box::new(Fixed::circle(14, 449.4));
        let mut mesh = Mesh::new(&config, motion, 3).expect("a mesh");
        mesh.run_until(Time::from_secs(20));
        let (counters, before) = (mesh.counters(), mesh.delivered(0));
        assert!(counters.link_failures < 5, "{counters:?}");
        mesh.run_until(Time::from_secs(120));
        (mesh.delivered(0) - before) as f64 / 500.0 / 4000.0
    };
    let (one, two) = (share(RoutingConfig::dsr()), share(RoutingConfig::mtcp()));
    assert!((one - 0.698).abs() < 0.03, "{one}");
    assert!((two - 0.909).abs() < 0.03, "{two}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let first = run(0.01, 5);
    assert_eq!(run(0.01, 5), first);
    assert_ne!(run(0.01, 6), first);
}

/// Movement with an unknown top speed.
#[derive(Debug)]
struct Unlimited(Waypoints);

impl Motion for Unlimited {
    fn stations(&self) -> usize {
        self.0.stations()
    }

    fn position(&self, station: usize, now: Time) -> Position {
        self.0.position(station, now)
    }

    fn steady_until(&self, now: Time) -> Time {
        self.0.steady_until(now)
    }
}

/// A mesh of moving stations with M-TCP's routing and loss above the MAC.
fn moving(motion: Box<dyn Motion>) -> Mesh {
    let routing = RoutingConfig { renewal: Renewal::OneRoute, ..RoutingConfig::mtcp() };
    let config = MeshConfig { routing, ..ring(0.01) };
    Mesh::new(&config, motion, 1).expect("a mesh")
}

#[test]
fn who_is_near_is_found_whether_or_not_speeds_are_known() {
    let model = RandomWaypoint { max_speed: 40.0, ..RandomWaypoint::default() };
    let drawn = model.draw(3).expect("movements");
    let (known, unknown) = (drawn.top_speed(), Unlimited(drawn.clone()));
    assert!(known <= 40.0 + 1e-9 && known > 30.0 && unknown.top_speed().is_infinite());
    let mut meshes = [moving(Box::new(drawn)), moving(Box::new(unknown))];
    meshes.iter_mut().for_each(|mesh| mesh.run_until(Time::from_secs(30)));
    let frames = |mesh: &Mesh| mesh.air().map(|air| air.counters());
    assert_eq!(meshes[0].counters(), meshes[1].counters());
    assert_eq!(frames(&meshes[0]), frames(&meshes[1]));
    assert!(frames(&meshes[0]).is_some_and(|air| air.frames > 5000));
}

/// A line for every 2 s: bytes acknowledged, frames on the air, routing packets, requests, copies,
/// failed links.
#[test]
fn mesh_traces_are_golden() {
    let model = RandomWaypoint { stations: 30, width: 1500.0, ..RandomWaypoint::default() };
    let mut mesh = moving(Box::new(model.draw(1).expect("movements")));
    let mut actual = String::new();
    for second in (2..=40).step_by(2) {
        mesh.run_until(Time::from_secs(second));
        let MeshCounters { routing_transmissions, requests, copies, link_failures, .. } =
            mesh.counters();
        let frames = mesh.air().map_or(0, |air| air.counters().frames);
        actual.push_str(&format!(
            "{} {frames} {routing_transmissions} {requests} {copies} {link_failures}\n",
            mesh.acknowledged(0)
        ));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mesh.txt");
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &actual).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file can be read");
    assert_eq!(actual, golden, "if this change is meant: cargo xtask bless");
}
