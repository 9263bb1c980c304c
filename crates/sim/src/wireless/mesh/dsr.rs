//! The network layer of a station: DSR (RFC 4728). Where the RFC leaves a choice, the model follows
//! ns-2 2.35.

mod buffer;
mod cache;
mod discovery;
mod loss_meter;
mod maintenance;
mod multipath;
mod overhear;
mod recent;
mod requests;

use std::collections::{BTreeMap, VecDeque};

use anabranch_types::Time;
use core::time::Duration;

use super::net::{Event, Link, Net};
use super::packet::{LinkError, Load, Packet};
use super::route::Route;

use buffer::SendBuffer;
use cache::RouteCache;
use multipath::Multipath;
use recent::Recent;
use requests::Requests;

/// The layers of a station above its MAC. Every call that handles a packet sends, delivers, keeps
/// or drops it.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) link: Link,
    pub(super) cache: RouteCache,
    requests: Requests,
    buffer: SendBuffer,
    /// The latest error addressed to this station; its next requests carry it.
    held_error: Option<(LinkError, Time)>,
    /// Serial numbers of recently overheard packets, since each packet is examined only once.
    overheard: Recent,
    /// Routes whose sources were recently told of a shorter route, and when.
    shortened: VecDeque<(Route, Time)>,
    /// For each source, the number of its latest request for this station, and the routes of all
    /// copies of this request.
    answered: BTreeMap<u16, (u32, Vec<Route>)>,
    multipath: Multipath,
}

impl Station {
    /// Station `id` of a mesh. Its random draws are a substream of `seed`.
    pub(super) fn new(id: u16, net: &Net, seed: u64) -> Self {
        Station {
            link: Link::new(id, seed),
            cache: RouteCache::default(),
            requests: Requests::default(),
            buffer: SendBuffer::new(net.config.send_buffer),
            held_error: None,
            overheard: Recent::default(),
            shortened: VecDeque::new(),
            answered: BTreeMap::new(),
            multipath: Multipath::default(),
        }
    }

    fn id(&self) -> u16 {
        self.link.station
    }

    /// Starts the periodic check of the send buffer.
    pub(super) fn start(&mut self, net: &mut Net) {
        self.schedule_check(net);
    }

    /// Sends a packet of this station, new or returned from a failed link, as soon as a route is
    /// known.
    pub(super) fn originate(&mut self, net: &mut Net, token: u32) {
        let Some(packet) = net.packets.get(token) else { return };
        let (source, target) = (packet.source, packet.target);
        if target == self.id() {
            return self.consume(net, token);
        }
        if self.dispatch(net, token, Duration::ZERO) {
            return;
        }
        if self.search(net, target, source == self.id()) {
            self.keep(net, token);
        } else {
            net.counters.drops.no_route += 1;
            net.packets.remove(token);
        }
    }

    /// Handles a packet that the MAC has received from the neighbour `from`.
    pub(super) fn receive(&mut self, net: &mut Net, from: u16, token: u32) {
        let Some(packet) = net.packets.get(token) else { return };
        if packet.target == self.id() {
            self.consume(net, token);
        } else {
            let errors = packet.errors;
            let is_request = packet.request.is_some();
            if !errors.is_empty() {
                self.handle_errors(net, token);
            }
            if is_request {
                self.handle_request(net, from, token);
            } else {
                self.forward(net, token);
            }
        }
    }

    /// Handles a scheduled event that is due.
    pub(super) fn handle_event(&mut self, net: &mut Net, event: Event) {
        match event {
            Event::Send { token, .. } => self.transmit(net, token),
            Event::Enqueue { to, token, .. } => self.link.transmit(net, to, token),
            Event::Receive { from, token, .. } => self.receive(net, from, token),
            Event::Answer { source, .. } => self.answer_second(net, source),
            Event::CheckBuffer { .. } => {
                self.check_buffer(net);
                self.schedule_check(net);
            }
        }
    }

    /// Handles a packet that has reached its destination.
    fn consume(&mut self, net: &mut Net, token: u32) {
        let Some(packet) = net.packets.get(token) else { return };
        let (is_reply, is_request) = (packet.reply.is_some(), packet.request.is_some());
        let tells_errors = !packet.errors.is_empty();
        if is_reply {
            self.accept_reply(net, token);
        }
        if is_request {
            self.answer(net, token);
        }
        if tells_errors {
            self.handle_errors(net, token);
        }
        if self.takes_data(net, token) {
            net.counters.delivered += 1;
            net.arrived.push(token);
        } else {
            net.packets.remove(token);
        }
    }

    /// Sends a packet along a route, from the route's beginning and after a delay.
    fn send_along(&mut self, net: &mut Net, token: u32, route: &Route, delay: Duration) {
        if let Some(packet) = net.packets.get_mut(token) {
            (packet.route, packet.at) = (*route, 0);
        }
        self.send_after(net, token, delay);
    }

    fn send_after(&mut self, net: &mut Net, token: u32, delay: Duration) {
        if delay.is_zero() {
            self.transmit(net, token);
        } else {
            net.schedule(delay, Event::Send { station: self.id(), token });
        }
    }

    /// Passes a packet to the link layer: a request to all neighbours, any other packet to the next
    /// station of its route.
    fn transmit(&mut self, net: &mut Net, token: u32) {
        let Some(packet) = net.packets.get_mut(token) else { return };
        let to = if packet.request.is_some() {
            None
        } else {
            packet.at += 1;
            let Some(next) = packet.here() else {
                net.packets.remove(token);
                return;
            };
            Some(next)
        };
        for token in self.link.send(net, to, token).into_iter().flatten() {
            self.handle_failure(net, token);
        }
    }

    /// Puts a packet into the send buffer, where it waits for a route.
    fn keep(&mut self, net: &mut Net, token: u32) {
        if let Some(oldest) = self.buffer.push(net.now, token) {
            net.counters.drops.send_buffer += 1;
            net.packets.remove(oldest);
        }
    }

    fn schedule_check(&mut self, net: &mut Net) {
        let period = net.config.send_buffer_period;
        let after = period + Net::jitter(&mut self.link.rng, period);
        net.schedule(after, Event::CheckBuffer { station: self.id() });
    }

    /// Looks up routes for the waiting packets, repeats searches that are due, and drops packets
    /// that have waited too long.
    fn check_buffer(&mut self, net: &mut Net) {
        if self.buffer.len() == 0 {
            return;
        }
        for at in 0..self.buffer.room() {
            let most = net.config.send_buffer_timeout;
            if let Some(token) = self.buffer.take_expired(at, net.now, most) {
                net.counters.drops.expired += 1;
                net.packets.remove(token);
            }
            let Some(token) = self.buffer.get(at) else { continue };
            let Some(packet) = net.packets.get(token) else { continue };
            let (source, target) = (packet.source, packet.target);
            if self.dispatch(net, token, Duration::ZERO) {
                self.buffer.take(at);
            } else if !self.search(net, target, source == self.id()) {
                self.buffer.take(at);
                net.counters.drops.no_route += 1;
                net.packets.remove(token);
            }
        }
    }

    /// Sends the waiting packets that now have a route, one after the other.
    fn release(&mut self, net: &mut Net) {
        let mut delay = Duration::ZERO;
        for at in 0..self.buffer.room() {
            let Some(token) = self.buffer.get(at) else { continue };
            if self.dispatch(net, token, delay) {
                self.buffer.take(at);
                delay += net.config.release_gap;
            }
        }
    }

    /// A packet from this station to `to` that carries only routing options.
    fn routing_packet(&self, to: u16) -> Packet {
        Packet::new(self.id(), to, Load::Nothing)
    }

    /// Learns the rest of a packet's route, from this station on or from the neighbour that was
    /// heard sending the packet. `at` is the index on the route of the station that the packet is
    /// being sent to.
    fn notice_route(&mut self, route: &Route, at: usize) {
        let rest = match route.position(self.id()) {
            Some(here) if here + 1 == route.len() => return,
            Some(here) => route.from(here),
            None if at == 0 => return,
            None => {
                let own = Route::new(&[self.id()]);
                let mut rest = own;
                route.from(at - 1).stations().iter().for_each(|station| {
                    rest.push(*station);
                });
                rest
            }
        };
        if rest.len() >= 2 {
            self.cache.notice(&rest);
        }
    }
}
