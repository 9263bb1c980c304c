//! A network for the tests of endpoints.

use anabranch_types::Time;

use crate::engine::{Agent, AgentId, Engine, Topology};
use crate::link::LinkConfig;

/// An engine with a sender, which starts at 10 ms, and a receiver over parallel links, each with a
/// clean reverse link.
pub(super) fn parallel(
    links: &[&str],
    sender: Box<dyn Agent>,
    receiver: Box<dyn Agent>,
) -> (Engine, AgentId, AgentId) {
    let mut topology = Topology::new();
    let (left, right) = (topology.add_node("left"), topology.add_node("right"));
    let mut routes = Vec::new();
    for (at, text) in links.iter().enumerate() {
        let link: LinkConfig = text.parse().unwrap();
        let there = topology.add_link(left, right, &link, format!("l{at}")).unwrap();
        let back = link.clean_reverse();
        let back = topology.add_link(right, left, &back, format!("l{at}.reverse")).unwrap();
        routes.push([there, back].map(|link| topology.route_via(&[link]).unwrap()));
    }
    let mut engine = Engine::new(topology, 1).unwrap();
    let sender = engine.add_agent(sender, Time::from_millis(10));
    let receiver = engine.add_agent(receiver, Time::ZERO);
    for [there, back] in routes {
        engine.connect(sender, receiver, there, back).unwrap();
    }
    (engine, sender, receiver)
}
