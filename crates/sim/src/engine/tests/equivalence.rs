//! The engine's plain links behave like [`Link`], packet for packet.

use super::*;
use crate::engine::links::{Due, Links, Offer};
use crate::engine::packet::{Packet, Slab};
use crate::engine::topology::TopologyLink;
use crate::link::{Link, LinkOutput};
use anabranch_types::Rng;

/// Output of a link: the time, the packet, and whether it was lost.
type Fate = (Time, u32, bool);

/// A single plain link with its packets, driven like a [`Link`].
struct Alone {
    links: Links,
    packets: Slab,
    names: Vec<u32>,
    next: Option<Time>,
}

fn alone(config: &LinkConfig, seed: u64) -> Links {
    let (name, config) = ("x".into(), std::sync::Arc::new(config.clone()));
    let link = TopologyLink { name, from: NodeId(0), to: NodeId(1), config };
    Links::new(&[link], seed).unwrap()
}

impl Alone {
    fn new(config: &LinkConfig, seed: u64) -> Self {
        let links = alone(config, seed);
        assert!(links.shaped(0).is_none(), "the link is plain");
        Alone { links, packets: Slab::new(), names: Vec::new(), next: None }
    }

    fn offer(&mut self, now: Time, size: u32, name: u32) -> bool {
        let (to, ecn) = (PortId(0), Ecn::NotEct);
        let packet = Packet { sent: now, to, stream: 0, size, ecn, hop: 0 };
        let handle = self.packets.insert(packet, Payload::Filler);
        self.names.resize(self.names.len().max(handle as usize + 1), 0);
        self.names[handle as usize] = name;
        match self.links.offer(0, &mut self.packets, handle, size, now) {
            Offer::First(time) => self.next = Some(time),
            Offer::Behind => {}
            Offer::Refused => {
                self.packets.remove(handle);
                return false;
            }
            Offer::Shaped => panic!("the link is plain"),
        }
        true
    }

    fn advance(&mut self, now: Time, out: &mut Vec<Fate>) {
        while let Some(due) = self.next.filter(|due| *due <= now) {
            let Due::Packet(taken) = self.links.take(0, &mut self.packets) else {
                panic!("a packet is due");
            };
            out.push((due, self.names[taken.handle as usize], taken.lost));
            self.packets.remove(taken.handle);
            self.next = taken.following;
        }
    }
}

fn drive(text: &str, seed: u64, spacing: f64) {
    let config: LinkConfig = text.parse().unwrap();
    let mut link = Link::new(&config, seed, "x").unwrap();
    let mut alone = Alone::new(&config, seed);
    let mut random = Rng::substream(seed, "traffic");
    let mut now = Time::ZERO;
    for name in 0..3000 {
        let size = 1 + random.below(1500) as u32;
        let refused = link.enqueue(now, size, Ecn::NotEct, name).is_err();
        assert_eq!(alone.offer(now, size, name), !refused, "{text}, packet {name}");
        let waiting = (link.queue().len() as u64, link.queue().bytes());
        assert_eq!(alone.links.waiting(0, &alone.packets, now), waiting, "{text}, packet {name}");
        assert_eq!(alone.links.inside(0, &alone.packets, now)[0], link.packets_inside() as u64);
        // Some packets follow at the same instant, and some after a pause in which the link becomes
        // idle.
        now += match random.below(10) {
            0..3 => Duration::ZERO,
            3 => Duration::from_nanos((random.exponential(20.0 * spacing) * 1e9) as u64),
            _ => Duration::from_nanos((random.exponential(spacing) * 1e9) as u64),
        };
        let mut fates = (Vec::new(), Vec::new());
        link.advance(now, |output| fates.0.push(fate(output)));
        alone.advance(now, &mut fates.1);
        assert_eq!(fates.0, fates.1, "{text}, before {now}");
    }
    let tally = alone.links.tally(0);
    let counters = link.counters();
    assert_eq!(tally.delivered, counters.packets_delivered);
    assert_eq!(tally.bytes_delivered, counters.bytes_delivered);
    assert_eq!(tally.dropped_full, counters.dropped_full);
    let [inside, bytes, left, _] = alone.links.inside(0, &alone.packets, now);
    assert_eq!(tally.delivered + tally.lost + inside + tally.dropped_full, counters.packets_in);
    let bytes_in = tally.bytes_delivered + tally.bytes_lost + bytes + tally.bytes_dropped;
    assert_eq!(bytes_in, counters.bytes_in);
    assert_eq!(tally.delivered + tally.lost + left, counters.packets_serialised);
}

fn fate(output: LinkOutput<u32>) -> Fate {
    match output {
        LinkOutput::Delivered(delivery) => (delivery.time, delivery.token, false),
        LinkOutput::Dropped(dropped) => (dropped.time, dropped.token, true),
    }
}

#[test]
fn plain_links_agree_with_links() {
    for seed in 0..4 {
        for (text, spacing) in [
            ("rate=8mbit,delay=0ms", 0.0008),
            ("rate=8mbit,delay=20ms,buffer=5p", 0.0006),
            ("rate=7mbit,delay=3ms,loss=10%", 0.0009),
            ("rate=3333333bit,delay=1ms,buffer=4000b", 0.0015),
            ("rate=1gbit,delay=1ms,buffer=1p,loss=50%", 0.00001),
            ("rate=1gbit,delay=10us", 0.1),
        ] {
            drive(text, seed, spacing);
        }
    }
}

#[test]
fn other_links_are_not_plain() {
    for text in [
        "rate=8mbit/2mbit@1s,delay=0ms",
        "rate=8mbit,delay=0ms,red",
        "rate=8mbit,delay=0ms,jitter=1ms",
        "rate=8mbit,delay=0ms,loss=ge:1%/20%",
        "rate=8mbit,delay=0ms,blackout=1s-2s",
    ] {
        let config: LinkConfig = text.parse().unwrap();
        assert!(alone(&config, 1).shaped(0).is_some(), "{text}");
    }
}
