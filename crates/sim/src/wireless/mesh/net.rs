use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

use anabranch_types::{Rng, Time};

use super::arp::{Arp, Resolution};
use super::packet::{Load, Packet, Packets};
use super::{MeshCounters, RoutingConfig};
use crate::wireless::{Air, Destination, Message, Priority};

/// The state that all stations share: the medium, the packets and the scheduled events.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) now: Time,
    pub(super) air: Air,
    pub(super) packets: Packets,
    pub(super) config: RoutingConfig,
    pub(super) counters: MeshCounters,
    /// Tokens of data packets that have reached their destination.
    pub(super) arrived: Vec<u32>,
    due: BinaryHeap<Reverse<Due>>,
    scheduled: u64,
    serial: u64,
}

/// A scheduled event. Events are ordered by time and, at equal times, by the order of scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    time: Time,
    order: u64,
    event: Event,
}

/// An event at a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A packet is passed to the link layer.
    Send { station: u16, token: u32 },
    /// A packet joins the interface queue.
    Enqueue { station: u16, to: Option<u16>, token: u32 },
    /// A packet from the MAC reaches the network layer.
    Receive { station: u16, from: u16, token: u32 },
    /// The send buffer is checked.
    CheckBuffer { station: u16 },
    /// The time is over for which a destination waits for further routes from a searching source.
    Answer { station: u16, source: u16 },
}

/// A station's link layer: address resolution and access to the MAC.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) station: u16,
    pub(super) rng: Rng,
    arp: Arp,
}

impl Net {
    pub(super) fn new(air: Air, config: &RoutingConfig) -> Self {
        Net {
            now: Time::ZERO,
            air,
            packets: Packets::default(),
            config: config.clone(),
            counters: MeshCounters::default(),
            arrived: Vec::new(),
            due: BinaryHeap::new(),
            scheduled: 0,
            serial: 0,
        }
    }

    /// Stores a new packet with a new serial number. Returns its token.
    pub(super) fn insert(&mut self, packet: Packet) -> u32 {
        let serial = self.next_serial();
        self.packets.insert(Packet { serial, ..packet })
    }

    /// A serial number that was not used before.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(super) fn schedule(&mut self, after: Duration, event: Event) {
        self.scheduled += 1;
        let (time, order) = (self.now + after, self.scheduled);
        self.due.push(Reverse(Due { time, order, event }));
    }

    /// When the next scheduled event is due; `None` if there is none.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse(due)| due.time)
    }

    /// Removes the next event and returns it, if it is due now.
    pub(super) fn pop_due(&mut self) -> Option<Event> {
        let due = self.due.peek().is_some_and(|Reverse(due)| due.time <= self.now);
        due.then(|| self.due.pop().map(|Reverse(due)| due.event)).flatten()
    }

    /// Draws a random time, uniform from zero to `most`.
    pub(super) fn jitter(rng: &mut Rng, most: Duration) -> Duration {
        most.mul_f64(rng.uniform())
    }
}

impl Link {
    pub(super) fn new(station: u16, seed: u64) -> Self {
        let rng = Rng::substream(seed, &format!("mesh.{station}"));
        Link { station, rng, arp: Arp::default() }
    }

    /// Sends a packet to a neighbour, or to all neighbours if `to` is `None`. Returns the packets
    /// that cannot be sent because ARP failed: the one that waited for the address, and this one.
    pub(super) fn send(&mut self, net: &mut Net, to: Option<u16>, token: u32) -> [Option<u32>; 2] {
        let Some(neighbour) = to.filter(|_| net.config.arp) else {
            self.enqueue(net, to, token);
            return [None; 2];
        };
        match self.arp.resolve(neighbour, token) {
            Resolution::Known => self.enqueue(net, to, token),
            Resolution::Ask { dropped } => {
                net.counters.drops.arp += u64::from(dropped.is_some());
                dropped.and_then(|dropped| net.packets.remove(dropped));
                let ask = Packet::new(self.station, neighbour, Load::ArpRequest);
                let ask = net.insert(ask);
                self.enqueue(net, None, ask);
            }
            Resolution::Failed { held } => return [held, Some(token)],
        }
        [None; 2]
    }

    /// Handles an ARP packet.
    pub(super) fn handle_arp(&mut self, net: &mut Net, packet: &Packet) {
        if let Some(held) = self.arp.learn(packet.source) {
            self.enqueue(net, Some(packet.source), held);
        }
        if matches!(packet.load, Load::ArpRequest) && packet.target == self.station {
            let answer = Packet::new(self.station, packet.source, Load::ArpReply);
            let answer = net.insert(answer);
            self.enqueue(net, Some(packet.source), answer);
        }
    }

    fn enqueue(&self, net: &mut Net, to: Option<u16>, token: u32) {
        let event = Event::Enqueue { station: self.station, to, token };
        net.schedule(net.config.stack_delay, event);
    }

    /// Passes a packet to the MAC.
    pub(super) fn transmit(&self, net: &mut Net, to: Option<u16>, token: u32) {
        let Some(packet) = net.packets.get(token) else { return };
        let priority = match &packet.load {
            Load::Nothing => Priority::Routing,
            Load::Data(data) if data.is_acknowledgement() => Priority::Acknowledgement,
            Load::Data(_) | Load::ArpRequest | Load::ArpReply => Priority::Data,
        };
        let bytes = packet.bytes();
        let counters = &mut net.counters;
        match packet.load {
            Load::Nothing => {
                counters.routing_transmissions += 1;
                counters.routing_bytes += u64::from(bytes);
            }
            Load::Data(_) => counters.data_transmissions += 1,
            Load::ArpRequest | Load::ArpReply => counters.arp += 1,
        }
        let to = to.map_or(Destination::Broadcast, |to| Destination::Station(to.into()));
        let message = Message { token, to, bytes, priority };
        if !net.air.send(net.now, self.station.into(), message) {
            net.counters.drops.queue += 1;
            net.packets.remove(token);
        }
    }
}
