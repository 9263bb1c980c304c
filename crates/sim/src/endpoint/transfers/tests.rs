use core::time::Duration;

use anabranch_types::Bitrate;

use super::*;
use crate::engine::{AgentId, Engine, Topology};
use crate::link::LinkConfig;

fn run(link: &str, traffic: Traffic, seconds: u64) -> (Engine, AgentId, AgentId) {
    let mut topology = Topology::new();
    let (left, right) = (topology.add_node("left"), topology.add_node("right"));
    let link: LinkConfig = link.parse().unwrap();
    topology.add_link(left, right, &link, "there").unwrap();
    topology.add_link(right, left, &link.clean_reverse(), "back").unwrap();
    let there = topology.route(left, right).unwrap();
    let back = topology.route(right, left).unwrap();
    let mut engine = Engine::new(topology, 1).unwrap();
    let (config, control) = (Config::default(), "reno".parse().unwrap());
    let sender = TcpTransfers::new(&config, &control, traffic, 1, "web").unwrap();
    let sender = engine.add_agent(Box::new(sender), Time::from_millis(10));
    let receiver = engine.add_agent(Box::new(TcpTransfersReceiver::new(&config)), Time::ZERO);
    engine.connect(sender, receiver, there, back).unwrap();
    engine.run_until(Time::from_secs(seconds));
    (engine, sender, receiver)
}

fn ends(
    (engine, sender, receiver): &(Engine, AgentId, AgentId),
) -> (&TcpTransfers, &TcpTransfersReceiver) {
    (engine.agent_as(*sender).unwrap(), engine.agent_as(*receiver).unwrap())
}

#[test]
fn transfers_follow_each_other_in_one_slot() {
    let traffic = Traffic::Transfers { size: 50_000, repeat: 20 };
    let run = run("rate=8mbit,delay=10ms,loss=3%", traffic, 60);
    let (sender, receiver) = ends(&run);
    assert!(sender.is_done());
    assert_eq!((sender.completed(), sender.acknowledged()), (20, 1_000_000));
    assert_eq!((receiver.finished().len(), receiver.delivered()), (20, 1_000_000));
    assert_eq!(sender.slots.len(), 1);
    assert!(sender.statistics().retransmissions > 10);
    for ((stream, transfer), (finished, end)) in sender.transfers().iter().zip(receiver.finished())
    {
        assert_eq!(stream, finished);
        // A handshake, and slow start over 35 segments: at least four round trips of 20 ms.
        assert!(end.since(transfer.opened) > Duration::from_millis(70));
    }
}

#[test]
fn short_flows_overlap_and_their_state_is_used_again() {
    let traffic = Traffic::Poisson { size: 20_000, interval: Duration::from_millis(40) };
    let run = run("rate=8mbit,delay=10ms,loss=1%", traffic, 100);
    let (sender, receiver) = ends(&run);
    let opened = sender.transfers().len();
    assert!((2250..2750).contains(&opened), "{opened}");
    assert!(receiver.finished().len() + 20 > opened, "{}", receiver.finished().len());
    assert!((2..200).contains(&sender.slots.len()), "{}", sender.slots.len());
    let numbers: std::collections::BTreeSet<u32> =
        receiver.finished().iter().map(|(stream, _)| *stream).collect();
    assert_eq!(numbers.len(), receiver.finished().len());
}

#[test]
fn an_on_off_application_keeps_to_its_rate_or_to_its_bursts() {
    let (on, off) = (Duration::from_millis(300), Duration::from_millis(300));
    for (rate, expected) in [(Some(Bitrate::from_mbps(1.0)), 0.5), (None, 4.0)] {
        let run = run("rate=8mbit,delay=2ms,buffer=20p", Traffic::OnOff { on, off, rate }, 200);
        let mbps = ends(&run).1.delivered() as f64 * 8.0 / 200e6;
        // The queue empties after each burst: some 10 ms and more of 300.
        assert!((0.8 * expected..1.2 * expected).contains(&mbps), "{mbps} of {expected}");
    }
}
