use core::time::Duration;

use anabranch_types::Bitrate;

use super::*;
use crate::endpoint::testing::parallel;
use crate::engine::{AgentId, Engine, Topology};
use crate::link::LinkConfig;
use crate::traffic::Traffic;

/// A flow over parallel links, each with a clean reverse link.
fn flow(links: &[&str], profile: &str, traffic: Traffic) -> (Engine, AgentId, AgentId) {
    let config = CoreConfig::new(Profile::named(profile).unwrap());
    let sender = CoreSender::new(&config, traffic, 1, "flow");
    parallel(links, Box::new(sender), Box::new(CoreReceiver::new(&config, 1, "flow")))
}

fn ends(engine: &Engine, sender: AgentId, receiver: AgentId) -> (&CoreSender, &CoreReceiver) {
    let sender: &CoreSender = engine.agent_as(sender).unwrap();
    let receiver: &CoreReceiver = engine.agent_as(receiver).unwrap();
    assert_eq!((sender.failure(0), receiver.failure()), (None, None));
    (sender, receiver)
}

#[test]
fn a_bulk_flow_fills_its_paths() {
    let links = ["rate=8mbit,delay=20ms,loss=2%", "rate=4mbit,delay=35ms"];
    let (mut engine, sender, receiver) = flow(&links, "anabranch", Traffic::Bulk);
    engine.run_until(Time::from_secs(10));
    let (sender, receiver) = ends(&engine, sender, receiver);
    assert_eq!(sender.started(), Some(Time::from_millis(10)));
    assert!(sender.written(0) >= receiver.delivered());
    let share = receiver.delivered() as f64 * 8.0 / 10.0 / 12e6;
    assert!((0.6..1.0).contains(&share), "{share}");
    assert!(receiver.longest_gap() < Duration::from_secs(1));
}

#[test]
fn transfers_one_after_the_other_are_complete_once_each() {
    let traffic = Traffic::Transfers { size: 100_000, repeat: 5 };
    let (mut engine, sender, receiver) =
        flow(&["rate=8mbit,delay=20ms,loss=5%"], "anabranch", traffic);
    engine.run_until(Time::from_secs(20));
    let (sender, receiver) = ends(&engine, sender, receiver);
    assert_eq!((sender.transfers(0).len(), receiver.finished().count()), (5, 5));
    assert_eq!((sender.written(0), receiver.delivered()), (500_000, 500_000));
    assert!(sender.finished(0).is_some_and(|end| end >= receiver.finished().last().unwrap().1));
    for ((stream, transfer), (finished, end)) in sender.transfers(0).iter().zip(receiver.finished())
    {
        assert_eq!(stream, finished);
        assert!(*end > transfer.opened);
    }
}

#[test]
fn short_flows_come_and_go_by_the_hundred() {
    let traffic = Traffic::Poisson { size: 5_000, interval: Duration::from_millis(50) };
    let (mut engine, sender, receiver) = flow(&["rate=8mbit,delay=5ms"], "anabranch", traffic);
    engine.run_until(Time::from_secs(20));
    let (sender, receiver) = ends(&engine, sender, receiver);
    let opened = sender.transfers(0).len();
    assert!((300..500).contains(&opened), "{opened}");
    assert!(receiver.finished().count() + 3 >= opened, "{}", receiver.finished().count());
}

#[test]
fn an_on_off_application_keeps_to_its_rate() {
    let rate = Some(Bitrate::from_mbps(1.0));
    let (on, off) = (Duration::from_millis(200), Duration::from_millis(200));
    let traffic = Traffic::OnOff { on, off, rate };
    let (mut engine, sender, receiver) = flow(&["rate=8mbit,delay=5ms"], "uncoded", traffic);
    engine.run_until(Time::from_secs(60));
    let (_, receiver) = ends(&engine, sender, receiver);
    let mbps = receiver.delivered() as f64 * 8.0 / 60e6;
    assert!((0.4..0.6).contains(&mbps), "{mbps}");
}

#[test]
fn the_overhead_of_a_packet_can_be_chosen() {
    let bytes = |overhead: i32| {
        let mut topology = Topology::new();
        let (left, right) = (topology.add_node("left"), topology.add_node("right"));
        let link = LinkConfig::new(Bitrate::from_mbps(8.0), Duration::from_millis(5));
        let there = topology.add_link(left, right, &link, "there").unwrap();
        topology.add_link(right, left, &link, "back").unwrap();
        let forward = topology.route(left, right).unwrap();
        let backward = topology.route(right, left).unwrap();
        let mut engine = Engine::new(topology, 1).unwrap();
        let mut config = CoreConfig::new(Profile::named("uncoded").unwrap());
        config.overhead = overhead;
        let traffic = Traffic::Transfers { size: 1_000, repeat: 1 };
        let sender = CoreSender::new(&config, traffic, 1, "flow");
        let sender = engine.add_agent(Box::new(sender), Time::ZERO);
        let receiver = CoreReceiver::new(&config, 1, "flow");
        let receiver = engine.add_agent(Box::new(receiver), Time::ZERO);
        engine.connect(sender, receiver, forward, backward).unwrap();
        engine.run_until(Time::from_secs(2));
        let counters = engine.link(there).unwrap().counters();
        assert!(engine.agent_as::<CoreSender>(sender).unwrap().finished(0).is_some());
        (counters.bytes_in as i64, counters.packets_in as i64)
    };
    let (with, packets) = bytes(28);
    let (without, same) = bytes(-12);
    assert_eq!(packets, same);
    assert_eq!(with - without, 40 * packets);
}
