use super::*;

fn node(topology: &mut Topology) -> NodeId {
    topology.add_node("node")
}

fn link(topology: &mut Topology, from: NodeId, to: NodeId) -> LinkId {
    let config = LinkConfig::new(Bitrate::from_mbps(1.0), Duration::ZERO);
    let name = format!("link{}", topology.links());
    topology.add_link(from, to, &config, name).unwrap()
}

#[test]
fn the_shortest_route_wins_and_then_the_lowest_link() {
    let mut topology = Topology::new();
    let nodes: Vec<NodeId> = (0..5).map(|_| node(&mut topology)).collect();
    let long: Vec<LinkId> =
        (0..3).map(|at| link(&mut topology, nodes[at], nodes[at + 1])).collect();
    let second = link(&mut topology, nodes[4], nodes[3]);
    let first = link(&mut topology, nodes[0], nodes[4]);
    let twin = link(&mut topology, nodes[0], nodes[4]);
    assert!(twin > first);
    let route = topology.route(nodes[0], nodes[3]).unwrap();
    assert_eq!(topology.links_of(route), [first, second]);
    let explicit = topology.route_via(&long).unwrap();
    assert_eq!(topology.links_of(explicit), long);
    assert_eq!(topology.links_of(RouteId(9)), []);
}

#[test]
fn what_cannot_be_reached_is_an_error() {
    let mut topology = Topology::new();
    let (here, there) = (topology.add_node("here"), topology.add_node("there"));
    let only = link(&mut topology, here, there);
    let unreachable = topology.route(there, here).unwrap_err();
    assert_eq!(unreachable.to_string(), "no route from 'there' to 'here'");
    assert!(topology.route(here, here).is_err());
    assert!(topology.route(here, NodeId(7)).is_err());
    assert_eq!(topology.route_via(&[]), Err(NoRoute::Empty));
    assert_eq!(topology.route_via(&[LinkId(3)]), Err(NoRoute::NoLink(LinkId(3))));
    let gap = topology.route_via(&[only, only]).unwrap_err();
    assert_eq!(gap.to_string(), "link 'link0' does not start where 'link0' ends");
}

#[test]
fn what_cannot_be_is_refused() {
    let mut topology = Topology::new();
    let here = topology.add_node("here");
    let fine = LinkConfig::new(Bitrate::from_mbps(1.0), Duration::ZERO);
    let nowhere = topology.add_link(here, NodeId(1), &fine, "x");
    assert_eq!(nowhere, Err(TopologyError::NoNode(NodeId(1))));
    let slow = LinkConfig::new(Bitrate::from_bps(1), Duration::ZERO);
    assert!(matches!(topology.add_link(here, here, &slow, "x"), Err(TopologyError::Link(_))));
    for _ in 0..2 {
        topology.add_link(here, here, &fine, "twin").unwrap();
    }
    let error = Engine::new(topology, 1).unwrap_err();
    assert_eq!(error.to_string(), "two links are called 'twin'");
}

#[test]
fn agents_and_routes_must_exist_to_be_connected() {
    let (topology, forward, backward) = chain(&["rate=1mbit,delay=1ms"]);
    let mut engine = Engine::new(topology, 1).unwrap();
    let sink = engine.add_agent(Box::new(Sink::default()), Time::ZERO);
    let no_agent = engine.connect(sink, AgentId(1), forward, backward).unwrap_err();
    assert_eq!(no_agent, TopologyError::NoSuch("agent", 1));
    let no_route = engine.connect(sink, sink, forward, RouteId(5)).unwrap_err();
    assert_eq!(no_route, TopologyError::NoSuch("route", 5));
    assert_eq!(engine.connect(sink, sink, forward, backward), Ok((PortId(0), PortId(1))));
    assert_eq!(engine.port(PortId(1)), Some((backward, PortId(0))));
    assert_eq!(engine.port(PortId(2)), None);
}

#[test]
fn packets_follow_long_routes_to_their_end() {
    for hops in 1..14 {
        let (mut engine, _, sink) = {
            let links = vec!["rate=8mbit,delay=1ms"; hops];
            let mut config = UdpConfig::constant(Bitrate::from_mbps(1.0), 1000);
            config.stop = Time::from_millis(5);
            loaded(&links, config, 1)
        };
        engine.run_until(Time::from_secs(1));
        assert_eq!(engine.packet_hops(), hops as u64);
        let sink = engine.agent_as::<Sink>(sink).unwrap();
        assert_eq!(sink.mean_delay(), Duration::from_millis(2 * hops as u64));
    }
}
