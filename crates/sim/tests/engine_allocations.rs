//! In steady state a packet costs the engine no allocation, and a sleeping flow takes little
//! memory.

#[path = "../../core/tests/allocator/mod.rs"]
mod allocator;

use allocator::{COUNT, LIVE};
use anabranch_sim::endpoint::{Sink, TcpProtocol, TcpReceiver, TcpSender, Udp, UdpConfig};
use anabranch_sim::engine::{Dumbbell, Engine};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::traffic::Traffic;
use anabranch_sim::wireless::mesh::{Mesh, MeshConfig, MeshFlow};
use anabranch_sim::wireless::{Cell, Fixed, MacConfig};
use anabranch_tcp::Config;
use anabranch_types::{Bitrate, Time};

/// A dumbbell with `flows` flows, alternately TCP and UDP, or only TCP if `tcp`.
fn dumbbell(flows: u32, bottleneck: &str, tcp: bool) -> Engine {
    let link = |text: &str| text.parse::<LinkConfig>().unwrap();
    let bottleneck = link(bottleneck);
    let back = bottleneck.clean_reverse();
    let access = link("rate=100mbit,delay=1ms");
    let (topology, routes) = Dumbbell { flows, access, bottleneck, back }.build().unwrap();
    let mut engine = Engine::new(topology, 1).unwrap();
    let config = Config { ecn: true, ..Config::ns2_sack1(true) };
    let protocol = TcpProtocol::new(config, "reno:initial=2".parse().unwrap()).into();
    for (at, (there, back)) in routes.into_iter().enumerate() {
        let start = Time::from_millis(at as u64 % 1000);
        let (sender, receiver) = if tcp || at % 2 == 0 {
            let sender = TcpSender::new(&protocol, Traffic::Bulk, 1, "bulk").unwrap();
            let sender = engine.add_agent(Box::new(sender), start);
            (sender, engine.add_agent(Box::new(TcpReceiver::new(&protocol)), Time::ZERO))
        } else {
            let load = UdpConfig::constant(Bitrate::from_mbps(1.0), 800);
            let source = Udp::new(load, 1, &format!("load.{at}"));
            let sender = engine.add_agent(Box::new(source), start);
            (sender, engine.add_agent(Box::new(Sink::default()), Time::ZERO))
        };
        engine.connect(sender, receiver, there, back).unwrap();
    }
    engine
}

#[test]
fn packets_allocate_nothing_in_steady_state() {
    for bottleneck in [
        "rate=10mbit,delay=10ms,buffer=50p",
        "rate=10mbit,delay=10ms,buffer=50p,loss=2%",
        "rate=10mbit,delay=10ms,buffer=60p,ecn",
        "rate=10mbit,delay=10ms,codel,jitter=1ms,loss=markov:0%/5%@200ms",
    ] {
        let mut engine = dumbbell(6, bottleneck, false);
        engine.run_until(Time::from_secs(20));
        let (before, hops) = (COUNT.get(), engine.packet_hops());
        engine.run_until(Time::from_secs(60));
        let (count, hops) = (COUNT.get() - before, engine.packet_hops() - hops);
        assert!(hops > 200_000, "{hops}");
        // Rings of reordered segments may still double their size occasionally.
        assert!(count < 20, "{bottleneck}: {count} allocations for {hops} packet-hops");
    }
}

#[test]
fn frames_on_the_air_allocate_nothing_in_steady_state() {
    for rts_threshold in [0, u32::MAX] {
        let mac = MacConfig { rts_threshold, ..MacConfig::default() };
        let mut cell = Cell::new(&mac, 20, 1000, 1).unwrap();
        cell.run_until(Time::from_secs(1));
        let (before, frames) = (COUNT.get(), cell.air().counters().frames);
        cell.run_until(Time::from_secs(10));
        let (count, frames) = (COUNT.get() - before, cell.air().counters().frames - frames);
        assert!(frames > 10_000, "{frames}");
        assert_eq!(count, 0, "allocations for {frames} frames");
    }
}

#[test]
fn a_packet_over_several_hops_allocates_once() {
    let mut mesh = Mesh::new(
        &MeshConfig { flows: vec![MeshFlow::tcp(0, 7)], ..MeshConfig::default() },
        Box::new(Fixed::circle(14, 449.4)),
        1,
    )
    .unwrap();
    mesh.run_until(Time::from_secs(20));
    let (before, counters) = (COUNT.get(), mesh.counters());
    mesh.run_until(Time::from_secs(60));
    let count = COUNT.get() - before;
    let hops = mesh.counters().data_transmissions - counters.data_transmissions;
    let packets = mesh.counters().originated - counters.originated;
    assert!(hops > 50_000, "{hops}");
    // The stations on the route share the content of a packet.
    assert!(count <= packets + packets / 50, "{count} allocations, {packets} packets, {hops} hops");
}

#[test]
fn a_flow_that_sleeps_takes_little_memory() {
    let before = LIVE.get();
    let flows = 2000;
    let engine = dumbbell(flows, "rate=10gbit,delay=10ms", true);
    let bytes = (LIVE.get() - before) / i64::from(flows);
    println!("{bytes} bytes per idle flow: four links, two nodes, two routes, TCP's two ends");
    assert!(bytes < 6000, "{bytes}");
    drop(engine);
}
