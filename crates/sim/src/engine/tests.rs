mod equivalence;
mod events;
mod routes;
mod thinning;

use anabranch_types::{Bitrate, Ecn, Time};
use core::time::Duration;

use super::*;
use crate::endpoint::{Sink, Udp, UdpConfig};
use crate::link::LinkConfig;

/// A chain of links in one direction, and a single link in the other.
fn chain(links: &[&str]) -> (Topology, RouteId, RouteId) {
    let mut topology = Topology::new();
    let nodes: Vec<NodeId> =
        (0..=links.len()).map(|at| topology.add_node(format!("n{at}"))).collect();
    for (at, text) in links.iter().enumerate() {
        let config: LinkConfig = text.parse().unwrap();
        topology.add_link(nodes[at], nodes[at + 1], &config, format!("l{at}")).unwrap();
    }
    let last = nodes[links.len()];
    let back = LinkConfig::new(Bitrate::from_mbps(1000.0), Duration::from_millis(1));
    topology.add_link(last, nodes[0], &back, "back").unwrap();
    let forward = topology.route(nodes[0], last).unwrap();
    let backward = topology.route(last, nodes[0]).unwrap();
    (topology, forward, backward)
}

/// A UDP source and a sink over a chain of links.
fn loaded(links: &[&str], config: UdpConfig, seed: u64) -> (Engine, AgentId, AgentId) {
    let (topology, forward, backward) = chain(links);
    let mut engine = Engine::new(topology, seed).unwrap();
    let source = engine.add_agent(Box::new(Udp::new(config, seed, "load")), Time::ZERO);
    let sink = engine.add_agent(Box::new(Sink::default()), Time::ZERO);
    engine.connect(source, sink, forward, backward).unwrap();
    (engine, source, sink)
}
