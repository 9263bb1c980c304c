use super::*;
use crate::engine::{AgentId, Engine, Topology};

/// A transfer over a link described by `there`, and a fast way back.
fn transfer(
    there: &str,
    config: &Config,
    bytes: Option<u64>,
    notices: bool,
) -> (Engine, AgentId, AgentId) {
    let mut topology = Topology::new();
    let (a, b) = (topology.add_node("a"), topology.add_node("b"));
    topology.add_link(a, b, &there.parse().unwrap(), "there").unwrap();
    let back = "rate=1000mbit,delay=20ms,buffer=1000p".parse().unwrap();
    topology.add_link(b, a, &back, "back").unwrap();
    let (out, home) = (topology.route(a, b).unwrap(), topology.route(b, a).unwrap());
    let mut engine = Engine::new(topology, 1).unwrap();
    let control = "reno:initial=2".parse().unwrap();
    let mut sender = TcpSender::new(config, &control, bytes).unwrap();
    if notices {
        sender = sender.with_loss_notices();
    }
    let sender = engine.add_agent(Box::new(sender), Time::ZERO);
    let receiver = engine.add_agent(Box::new(TcpReceiver::new(config)), Time::ZERO);
    engine.connect(sender, receiver, out, home).unwrap();
    (engine, sender, receiver)
}

#[test]
fn a_transfer_ends_when_its_last_byte_is_acknowledged() {
    let config = Config::default();
    let (mut engine, sender, receiver) =
        transfer("rate=10mbit,delay=20ms,loss=1%", &config, Some(1_000_000), false);
    engine.run_until(Time::from_secs(60));
    let agent = engine.agent_as::<TcpSender>(sender).unwrap();
    assert_eq!(agent.acknowledged(), 1_000_000);
    assert!(agent.finished().is_some_and(|at| at < Time::from_secs(20)), "{:?}", agent.finished());
    let receiver = engine.agent_as::<TcpReceiver>(receiver).unwrap().receiver();
    assert_eq!(receiver.delivered(), 1_000_000);
    assert_eq!(engine.packets_in_flight(), 0);
    assert_eq!(engine.next_event(), None);
}

#[test]
fn notices_keep_the_window_up_under_loss() {
    let config = Config::default();
    let run = |notices| {
        let (mut engine, sender, _) =
            transfer("rate=10mbit,delay=20ms,loss=2%", &config, None, notices);
        engine.run_until(Time::from_secs(60));
        let agent = engine.agent_as::<TcpSender>(sender).unwrap();
        (agent.acknowledged(), agent.sender().statistics().loss_notices)
    };
    let ((plain, none), (told, notices)) = (run(false), run(true));
    assert_eq!(none, 0);
    assert!(notices > 500, "{notices}");
    assert!(told > 3 * plain, "{told} against {plain}");
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let digest = || {
        let (mut engine, ..) =
            transfer("rate=10mbit,delay=20ms,loss=1%", &Config::default(), None, false);
        engine.run_until(Time::from_secs(5));
        engine.digest()
    };
    assert_eq!(digest(), digest());
}

#[test]
fn a_stream_over_two_links_uses_both() {
    use anabranch_tcp::meta::MetaConfig;
    let mut topology = Topology::new();
    let (a, b) = (topology.add_node("a"), topology.add_node("b"));
    let mut routes = Vec::new();
    for (name, there) in [("fast", "rate=8mbit,delay=10ms"), ("slow", "rate=4mbit,delay=40ms")] {
        let link = topology.add_link(a, b, &there.parse().unwrap(), name).unwrap();
        let back =
            topology.add_link(b, a, &there.parse().unwrap(), format!("{name}.back")).unwrap();
        let out = topology.route_via(&[link]).unwrap();
        routes.push((out, topology.route_via(&[back]).unwrap()));
    }
    let mut engine = Engine::new(topology, 1).unwrap();
    let config = MetaConfig::new(Config::default());
    let control: PolicySpec = "reno:initial=2".parse().unwrap();
    let sender = MetaTcpSender::new(&config, &[control.clone(), control], Some(6_000_000)).unwrap();
    let sender = engine.add_agent(Box::new(sender), Time::ZERO);
    let receiver = engine.add_agent(Box::new(MetaTcpReceiver::new(&config, 2)), Time::ZERO);
    for (out, home) in routes {
        engine.connect(sender, receiver, out, home).unwrap();
    }
    engine.run_until(Time::from_secs(20));
    let agent = engine.agent_as::<MetaTcpSender>(sender).unwrap();
    assert_eq!(agent.acknowledged(), 6_000_000);
    // 48 Mbit over 12 Mb/s; the fast link alone would take 6 s.
    assert!(
        agent.finished().is_some_and(|at| at < Time::from_millis(5500)),
        "{:?}",
        agent.finished()
    );
    let receiver = engine.agent_as::<MetaTcpReceiver>(receiver).unwrap().receiver();
    assert_eq!(receiver.delivered(), 6_000_000);
}
