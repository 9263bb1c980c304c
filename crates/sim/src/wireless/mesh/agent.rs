use std::sync::Arc;

use anabranch_types::Time;

use super::RoutingConfig;
use super::counters::MeshCounters;
use super::dsr::Station;
use super::net::{Event, Net};
use super::packet::{Data, Load, Packet};
use super::watch::Hops;
use crate::engine::{Agent, Arrival, Outbox, Payload, PortId};
use crate::wireless::{Air, Report};

/// All stations of a mesh as one agent, whose ports are the ends of transport connections at the
/// stations.
#[derive(Debug)]
pub(super) struct MeshAgent {
    net: Net,
    stations: Vec<Station>,
    attached: Vec<PortId>,
    /// For each port, its station and the other end of the connection.
    ends: Vec<End>,
    started: bool,
    next: Option<Time>,
    /// Copy of [`MeshConfig::loss_spares_routing`](super::MeshConfig::loss_spares_routing).
    pub(super) loss_spares_routing: bool,
    /// Counters of each hop; `None` unless hops are watched.
    pub(super) hops: Option<Hops>,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The station of this end.
    pub(super) station: u16,
    /// The station at the other end, and the index of that end among all ends.
    pub(super) peer: u16,
    pub(super) peer_end: u32,
}

/// Maximum number of stations that may forward a transport packet, as in ns-2.
const LIFETIME: u8 = 32;

impl MeshAgent {
    pub(super) fn new(mut air: Air, count: u16, routing: &RoutingConfig, seed: u64) -> Self {
        air.listen(routing.overhear || routing.neighbour_lists);
        let net = Net::new(air, routing);
        let stations = (0..count).map(|id| Station::new(id, &net, seed)).collect();
        let (attached, ends) = (Vec::new(), Vec::new());
        let (started, next, hops) = (false, None, None);
        MeshAgent { net, stations, attached, ends, started, next, loss_spares_routing: false, hops }
    }

    /// Announces that the next attached port is this end of a connection.
    pub(super) fn expect(&mut self, end: End) {
        self.ends.push(end);
    }

    pub(super) fn counters(&self) -> &MeshCounters {
        &self.net.counters
    }

    pub(super) fn air(&self) -> &Air {
        &self.net.air
    }

    /// Handles all events that are due by `now`, and sets the time of the next event. At equal
    /// times, the medium's events come first.
    fn advance(&mut self, now: Time) {
        loop {
            let air = self.net.air.next_event().unwrap_or(Time::MAX);
            let due = self.net.next_due().unwrap_or(Time::MAX);
            let time = air.min(due);
            if time > now || time == Time::MAX {
                self.next = (time < Time::MAX).then_some(time);
                break;
            }
            self.net.now = self.net.now.max(time);
            if air <= due {
                while let Some(report) = self.net.air.poll(time) {
                    self.handle_report(report);
                }
            } else {
                while let Some(event) = self.net.pop_due() {
                    self.handle_event(event);
                }
            }
        }
        self.net.now = self.net.now.max(now);
    }

    fn handle_event(&mut self, event: Event) {
        let (Event::Send { station, .. }
        | Event::Enqueue { station, .. }
        | Event::Receive { station, .. }
        | Event::CheckBuffer { station }
        | Event::Answer { station, .. }) = event;
        if let Some(station) = self.stations.get_mut(usize::from(station)) {
            station.handle_event(&mut self.net, event);
        }
    }

    /// Counts the fate of a data packet on a hop, if hops are watched.
    fn count(&mut self, report: Report) {
        let Some(hops) = &mut self.hops else { return };
        let (from, to, token, has_arrived) = match report {
            Report::Received { at, from, token } => (from, at, token, true),
            Report::Lost { at, from, token } => (from, at, token, false),
            Report::GaveUp { from, to, token } => (from, to, token, false),
            Report::Overheard { .. } | Report::Sent { .. } => return,
        };
        let packet = self.net.packets.get(token);
        let Some(Load::Data(data)) = packet.map(|packet| &packet.load) else { return };
        if data.is_acknowledgement() {
            return;
        }
        let counters = hops.entry((from as u16, to as u16)).or_default();
        counters.packets += u64::from(has_arrived);
        counters.losses += u64::from(!has_arrived);
    }

    fn handle_report(&mut self, report: Report) {
        self.count(report);
        let net = &mut self.net;
        match report {
            Report::Received { at, from, token } => self.receive(at, from, token),
            Report::Lost { at, from, token } => {
                let packet = net.packets.get(token);
                let is_data = packet.is_some_and(|packet| matches!(packet.load, Load::Data(_)));
                if self.loss_spares_routing && !is_data {
                    self.receive(at, from, token);
                } else {
                    net.counters.drops.loss += 1;
                }
            }
            Report::Overheard { at, from, token } => {
                if let Some(station) = self.stations.get_mut(at as usize) {
                    station.hear(net, from);
                    station.overhear(net, token);
                }
            }
            Report::Sent { token, .. } => {
                net.packets.remove(token);
            }
            Report::GaveUp { from, token, .. } => {
                if let Some(station) = self.stations.get_mut(from as usize) {
                    station.handle_failure(net, token);
                }
            }
        }
    }

    /// Handles a packet that a station has received.
    fn receive(&mut self, at: u32, from: u32, token: u32) {
        let net = &mut self.net;
        let Some(packet) = net.packets.get(token) else { return };
        let Some(station) = self.stations.get_mut(at as usize) else { return };
        station.hear(net, from);
        if matches!(packet.load, Load::ArpRequest | Load::ArpReply) {
            let packet = packet.clone();
            return station.link.handle_arp(net, &packet);
        }
        let copy = packet.clone();
        let token = net.packets.insert(copy);
        let (station, from) = (at as u16, from as u16);
        net.schedule(net.config.stack_delay, Event::Receive { station, from, token });
    }

    /// Passes the packets that have arrived to the transports.
    fn hand_over(&mut self, out: &mut Outbox<'_>) {
        if self.net.arrived.is_empty() {
            return;
        }
        let mut arrived = core::mem::take(&mut self.net.arrived);
        for token in arrived.drain(..) {
            let Some(packet) = self.net.packets.remove(token) else { continue };
            let Load::Data(data) = packet.load else { continue };
            if let Some(port) = self.attached.get(data.port as usize) {
                out.send_in(*port, data.stream, data.size, data.ecn, data.payload.clone());
            }
        }
        self.net.arrived = arrived;
    }
}

impl Agent for MeshAgent {
    fn attach(&mut self, port: PortId) {
        self.attached.push(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let now = arrival.now;
        self.advance(now);
        let at = self.attached.iter().position(|port| *port == arrival.port);
        let Some(end) = at.and_then(|at| self.ends.get(at).copied()) else { return };
        let Arrival { stream, size, ecn, payload, .. } = arrival;
        let payload = core::mem::replace(payload, Payload::Filler);
        let data = Data { port: end.peer_end, stream, size, ecn, payload };
        let packet = Packet {
            lifetime: LIFETIME,
            ..Packet::new(end.station, end.peer, Load::Data(Arc::new(data)))
        };
        self.net.counters.originated += 1;
        let token = self.net.insert(packet);
        if let Some(station) = self.stations.get_mut(usize::from(end.station)) {
            station.originate(&mut self.net, token);
        }
        self.advance(now);
        self.hand_over(out);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            self.started = true;
            self.net.now = now;
            for station in &mut self.stations {
                station.start(&mut self.net);
            }
        }
        self.advance(now);
        self.hand_over(out);
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }
}

#[cfg(test)]
mod tests;
