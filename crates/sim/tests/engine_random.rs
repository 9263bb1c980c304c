//! Random networks with random loads: packets are conserved, time never goes back, and neither
//! observing a run nor running it in pieces changes it.

use core::time::Duration;
use std::collections::BTreeSet;

use anabranch_sim::endpoint::{Sink, TcpProtocol, TcpReceiver, TcpSender, Udp, UdpConfig};
use anabranch_sim::engine::{
    Agent, Engine, LinkId, NodeId, PacketEvent, PacketEventKind, Topology,
};
use anabranch_sim::link::{DropCause, LinkConfig};
use anabranch_sim::traffic::Traffic;
use anabranch_tcp::Config;
use anabranch_types::{Bitrate, Rng, Time};
use proptest::prelude::*;

const LINKS: [&str; 8] = [
    "rate=10mbit,delay=3ms",
    "rate=1gbit,delay=0ms",
    "rate=2mbit,delay=10ms,buffer=3p",
    "rate=7mbit,delay=1ms,loss=10%",
    "rate=8mbit,delay=2ms,ecn,buffer=12p",
    "rate=6mbit,delay=2ms,codel",
    "rate=9mbit,delay=4ms,jitter=6ms,reorder,loss=markov:1%/40%@30ms",
    "rate=5mbit/1mbit@200ms,delay=1ms,blackout=300ms-400ms",
];

/// The network made from `seed`, and its number of flows.
fn network(seed: u64) -> (Engine, usize) {
    let mut random = Rng::substream(seed, "test.network");
    let mut pick = |bound: usize| random.below(bound as u64) as usize;
    let mut topology = Topology::new();
    let nodes: Vec<NodeId> = (0..2 + pick(6)).map(|at| topology.add_node(at.to_string())).collect();
    let mut arrows = BTreeSet::new();
    for at in 0..nodes.len() + pick(3 * nodes.len()) {
        let (from, to) = (nodes[pick(nodes.len())], nodes[pick(nodes.len())]);
        let config: LinkConfig = LINKS[pick(LINKS.len())].parse().unwrap();
        topology.add_link(from, to, &config, format!("l{at}")).unwrap();
        arrows.insert((from, to));
    }
    let mut flows = Vec::new();
    for _ in 0..6 {
        let (from, to) = (nodes[pick(nodes.len())], nodes[pick(nodes.len())]);
        let (there, back) = (topology.route(from, to), topology.route(to, from));
        assert_eq!(there.is_ok(), from != to && reaches(&arrows, from, to));
        if let (Ok(there), Ok(back)) = (there, back) {
            flows.push((there, back, pick(3)));
        }
    }
    let mut engine = Engine::new(topology, seed).unwrap();
    for (at, (there, back, kind)) in flows.iter().enumerate() {
        let (sender, receiver) = ends(*kind, seed, at);
        let sender = engine.add_agent(sender, Time::from_millis(10 * at as u64));
        let receiver = engine.add_agent(receiver, Time::ZERO);
        engine.connect(sender, receiver, *there, *back).unwrap();
    }
    (engine, flows.len())
}

fn ends(kind: usize, seed: u64, at: usize) -> (Box<dyn Agent>, Box<dyn Agent>) {
    let rate = Bitrate::from_mbps(4.0);
    let config = Config { ecn: true, ..Config::default() };
    let load = match kind {
        0 => UdpConfig::constant(rate, 500),
        1 => UdpConfig::on_off(rate, 900, Duration::from_millis(20), Duration::from_millis(30)),
        _ => {
            let protocol = TcpProtocol::new(config, "reno".parse().unwrap()).into();
            let sender = TcpSender::new(&protocol, Traffic::Bulk, seed, &at.to_string()).unwrap();
            return (Box::new(sender), Box::new(TcpReceiver::new(&protocol)));
        }
    };
    (Box::new(Udp::new(load, seed, &at.to_string())), Box::new(Sink::default()))
}

fn reaches(arrows: &BTreeSet<(NodeId, NodeId)>, from: NodeId, to: NodeId) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for (_, next) in arrows.iter().filter(|(start, _)| *start == node) {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen.contains(&to)
}

const END: Time = Time::from_millis(800);

/// Checks that all packets of a run are accounted for: those that left, were lost, were dropped, or
/// are still inside.
fn check_books(engine: &Engine, left: u64, lost: u64, dropped: u64) {
    let links = (0..engine.topology().links() as u32).filter_map(|at| engine.link(LinkId(at)));
    let (mut offered, mut inside) = (0, 0);
    for link in links {
        offered += link.counters().packets_in;
        inside += link.packets_inside();
        assert!(link.packets_waiting() <= link.packets_inside());
    }
    assert_eq!(offered, left + lost + dropped + inside);
    assert_eq!(left, engine.packet_hops());
    assert_eq!(inside, engine.packets_in_flight() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_and_runs_repeat(seed in any::<u64>()) {
        let (mut whole, flows) = network(seed);
        whole.run_until(END);
        prop_assert!(flows == 0 || whole.events() > 0);

        let (mut watched, _) = network(seed);
        let (mut left, mut lost, mut dropped, mut last) = (0, 0, 0, Time::ZERO);
        let mut observer = |event: &PacketEvent<'_>| {
            assert!(event.time >= last);
            last = event.time;
            match event.kind {
                PacketEventKind::Delivered => left += 1,
                PacketEventKind::Dropped(DropCause::Random) => lost += 1,
                PacketEventKind::Dropped(_) => dropped += 1,
                PacketEventKind::Entered | PacketEventKind::Marked => {}
            }
        };
        watched.run_until_with(END, &mut observer);
        check_books(&watched, left, lost, dropped);
        prop_assert_eq!(whole.digest(), watched.digest());

        let (mut cut, _) = network(seed);
        let mut random = Rng::substream(seed, "test.cuts");
        let mut until = Time::ZERO;
        while until < END {
            until = (until + Duration::from_nanos(random.below(9_000_000))).min(END);
            cut.run_until(until);
            prop_assert_eq!(cut.now(), until);
        }
        prop_assert_eq!((whole.digest(), whole.events()), (cut.digest(), cut.events()));
    }
}
