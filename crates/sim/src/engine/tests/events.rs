use super::*;
use crate::engine::{Agent, Arrival, Loss, Outbox};
use crate::link::DropCause;

/// Sends `burst` packets from each port at every timer, and records arrivals, losses and timers.
#[derive(Debug, Default)]
struct Notes {
    ports: Vec<PortId>,
    burst: u32,
    arrived: Vec<(u64, PortId, u32)>,
    lost: Vec<(u64, DropCause)>,
    timers: Vec<u64>,
    next: Option<Time>,
}

impl Agent for Notes {
    fn attach(&mut self, port: PortId) {
        self.ports.push(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, _out: &mut Outbox<'_>) {
        self.arrived.push((arrival.now.as_micros(), arrival.port, arrival.size));
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.timers.push(now.as_micros());
        self.next = None;
        for port in &self.ports {
            for size in 0..self.burst {
                out.send(*port, 1000 + size, Ecn::NotEct, Payload::Filler);
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }

    fn handle_loss(&mut self, loss: Loss<'_>, _out: &mut Outbox<'_>) {
        assert!(self.ports.contains(&loss.port));
        self.lost.push((loss.now.as_micros(), loss.cause));
    }
}

fn pair(links: &[&str], burst: u32) -> (Engine, AgentId, AgentId) {
    let (topology, forward, backward) = chain(links);
    let mut engine = Engine::new(topology, 1).unwrap();
    let sender = Notes { burst, ..Notes::default() };
    let sender = engine.add_agent(Box::new(sender), Time::from_millis(5));
    let receiver = engine.add_agent(Box::new(Notes::default()), Time::ZERO);
    engine.connect(sender, receiver, forward, backward).unwrap();
    (engine, sender, receiver)
}

#[test]
fn each_hop_serialises_and_then_propagates() {
    let (mut engine, _, receiver) = pair(&["rate=8mbit,delay=10ms", "rate=4mbit,delay=1ms"], 2);
    engine.run_until(Time::from_secs(1));
    // The first packet takes 1 ms + 10 ms, then 2 ms + 1 ms. The second packet, a byte longer,
    // queues behind the first.
    let expected = [(19_000, PortId(1), 1000), (21_002, PortId(1), 1001)];
    assert_eq!(engine.agent_as::<Notes>(receiver).unwrap().arrived, expected);
    assert_eq!(engine.packet_hops(), 4);
    assert_eq!(engine.packets_in_flight(), 0);
    assert_eq!(engine.now(), Time::from_secs(1));
    assert_eq!(engine.next_event(), None);
}

#[test]
fn a_run_may_be_cut_anywhere() {
    let links = ["rate=8mbit,delay=10ms,loss=20%", "rate=4mbit,delay=1ms,red,jitter=2ms"];
    let config = UdpConfig::constant(Bitrate::from_mbps(5.0), 700);
    let (mut whole, ..) = loaded(&links, config.clone(), 3);
    whole.run_until(Time::from_secs(2));
    let (mut cut, ..) = loaded(&links, config, 3);
    for millis in 0..2000 {
        cut.run_until(Time::from_nanos(millis * 1_000_003));
    }
    cut.run_until(Time::from_secs(2));
    assert_eq!(whole.digest(), cut.digest());
    assert_eq!(whole.events(), cut.events());
}

#[test]
fn a_sender_hears_what_became_of_its_packets() {
    let (mut engine, sender, receiver) = pair(&["rate=8mbit,delay=0ms,buffer=2p"], 4);
    engine.run_until(Time::from_secs(1));
    // The first packet is sent, two wait, and the fourth finds the queue full.
    assert_eq!(engine.agent_as::<Notes>(receiver).unwrap().arrived.len(), 3);
    let lost = &engine.agent_as::<Notes>(sender).unwrap().lost;
    assert_eq!(lost, &[(5_000, DropCause::QueueFull)]);
    let (mut engine, sender, receiver) = pair(&["rate=8mbit,delay=3ms,loss=100%"], 1);
    engine.run_until(Time::from_secs(1));
    assert!(engine.agent_as::<Notes>(receiver).unwrap().arrived.is_empty());
    let lost = &engine.agent_as::<Notes>(sender).unwrap().lost;
    assert_eq!(lost, &[(9_000, DropCause::Random)]);
}

#[test]
fn timers_move_both_ways_and_a_wake_comes_at_once() {
    let (mut engine, sender, _) = pair(&["rate=8mbit,delay=3ms"], 0);
    engine.run_until(Time::from_millis(20));
    let notes = |engine: &Engine| engine.agent_as::<Notes>(sender).unwrap().timers.clone();
    assert_eq!(notes(&engine), [5_000]);
    engine.agent_as_mut::<Notes>(sender).unwrap().next = Some(Time::from_millis(30));
    engine.run_until(Time::from_millis(40));
    assert_eq!(notes(&engine), [5_000], "a change from outside needs a wake");
    engine.agent_as_mut::<Notes>(sender).unwrap().next = None;
    engine.wake(sender);
    engine.run_until(Time::from_millis(40));
    assert_eq!(notes(&engine), [5_000, 40_000]);
    assert!(engine.agent_as::<Udp>(sender).is_none());
}

#[test]
fn an_observer_sees_every_packet_on_every_link() {
    let (mut engine, ..) = pair(&["rate=8mbit,delay=1ms,buffer=1p", "rate=8mbit,delay=1ms"], 3);
    let mut seen = Vec::new();
    let mut observer = |event: &PacketEvent<'_>| {
        seen.push((event.time.as_micros(), event.link.0, event.kind, event.packet.size));
    };
    engine.run_until_with(Time::from_secs(1), &mut observer);
    use PacketEventKind::{Delivered, Dropped, Entered};
    let expected = [
        (5_000, 0, Entered, 1000),
        (5_000, 0, Entered, 1001),
        (5_000, 0, Dropped(DropCause::QueueFull), 1002),
        (7_000, 0, Delivered, 1000),
        (7_000, 1, Entered, 1000),
        (8_001, 0, Delivered, 1001),
        (8_001, 1, Entered, 1001),
        (9_000, 1, Delivered, 1000),
        (10_002, 1, Delivered, 1001),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn marks_show_at_the_far_end() {
    let mut config = UdpConfig::constant(Bitrate::from_mbps(12.0), 1000);
    config.ecn = Ecn::Ect0;
    let (mut engine, _, sink) = loaded(&["rate=8mbit,delay=1ms,ecn,buffer=60p"], config, 1);
    let mut marked = 0;
    let mut observer = |event: &PacketEvent<'_>| {
        marked += u64::from(event.kind == PacketEventKind::Marked);
    };
    engine.run_until_with(Time::from_secs(1), &mut observer);
    assert!(marked > 10, "{marked}");
    assert_eq!(engine.agent_as::<Sink>(sink).unwrap().marked(), marked);
}

#[test]
fn adding_a_link_or_an_agent_leaves_the_draws_of_others() {
    let config = UdpConfig::on_off(
        Bitrate::from_mbps(5.0),
        700,
        Duration::from_millis(30),
        Duration::from_millis(20),
    );
    let received = |others: bool| {
        let (mut topology, forward, backward) = chain(&["rate=8mbit,delay=10ms,loss=20%"]);
        if others {
            let node = topology.add_node("other");
            let link = "rate=8mbit,delay=10ms,loss=20%".parse().unwrap();
            topology.add_link(node, node, &link, "other").unwrap();
        }
        let mut engine = Engine::new(topology, 5).unwrap();
        if others {
            engine.add_agent(Box::new(Udp::new(config.clone(), 5, "other")), Time::ZERO);
        }
        let source = Udp::new(config.clone(), 5, "load");
        let source = engine.add_agent(Box::new(source), Time::ZERO);
        let sink = engine.add_agent(Box::new(Sink::default()), Time::ZERO);
        engine.connect(source, sink, forward, backward).unwrap();
        engine.run_until(Time::from_secs(5));
        let sink = engine.agent_as::<Sink>(sink).unwrap();
        (sink.packets(), sink.mean_delay())
    };
    assert_eq!(received(false), received(true));
    // The load is 60 % of 5 Mb/s in packets of 700 bytes, 80 % of which arrive.
    assert!((1600..2700).contains(&received(false).0), "{:?}", received(false));
}
