//! Route discovery (RFC 4728 §3.1, §8.2).

use super::super::net::{Event, Net};
use super::super::packet::{LinkError, Packet, Reply, Request};
use super::super::route::{MAX_ROUTE, Route};
use super::super::selection::{are_disjoint, maximally_disjoint};
use super::super::{Answers, Forwarding};
use super::Station;
use super::requests::{Pace, Search};
use core::time::Duration;

/// Greatest age at which a request still carries the held error.
const MOST_ERROR_AGE: Duration = Duration::from_secs(1);

impl Station {
    /// Searches for a route if a search is due. Returns whether the packet that needs the route may
    /// wait.
    pub(super) fn search(&mut self, net: &mut Net, to: u16, own: bool) -> bool {
        let pace = Pace {
            neighbours_first: net.config.neighbours_first,
            first_wait: net.config.request_period,
            most_wait: net.config.most_request_period,
        };
        match self.requests.search(net.now, to, own, &pace) {
            Search::Neighbours => self.request(net, to, true),
            Search::Everybody => self.request(net, to, false),
            Search::Wait => {}
            Search::GiveUp => return false,
        }
        true
    }

    fn request(&mut self, net: &mut Net, to: u16, limited: bool) {
        match limited {
            true => net.counters.limited_requests += 1,
            false => net.counters.requests += 1,
        }
        let number = self.requests.next_number();
        let mut packet = Packet {
            route: Route::new(&[self.id()]),
            request: Some(Request { number, limited }),
            ..self.routing_packet(to)
        };
        if let Some((error, since)) = self.held_error
            && since + MOST_ERROR_AGE > net.now
        {
            packet.errors.push(LinkError { tell: None, ..error });
            if !limited {
                self.held_error = None;
            }
        }
        let token = net.insert(packet);
        self.send_jittered(net, token);
    }

    fn send_jittered(&mut self, net: &mut Net, token: u32) {
        let delay = Net::jitter(&mut self.link.rng, net.config.jitter);
        net.schedule(delay, Event::Send { station: self.id(), token });
    }

    /// Handles a request for another station, which is answered from the cache, forwarded or
    /// dropped.
    pub(super) fn handle_request(&mut self, net: &mut Net, from: u16, token: u32) {
        let Some(packet) = net.packets.get(token) else { return };
        let (Some(request), route, target) = (packet.request, packet.route, packet.target) else {
            return;
        };
        let drop = |net: &mut Net| net.packets.remove(token);
        let own = packet.source == self.id();
        if own || route.contains(self.id()) || route.is_full() {
            drop(net);
            return;
        }
        let heard = (packet.source, request.number);
        if !self.is_worth_forwarding(net.config.forwarding, heard, (route.len(), from)) {
            drop(net);
            return;
        }
        if net.config.reply_from_cache && self.answer_from_cache(net, token, &route, target) {
            return;
        }
        if request.limited {
            drop(net);
            return;
        }
        if let Some(packet) = net.packets.get_mut(token) {
            packet.route.push(self.id());
        }
        net.counters.requests_forwarded += 1;
        self.send_jittered(net, token);
    }

    /// Whether a copy of a request should be forwarded. The first copy is forwarded, and later ones
    /// according to `rule`.
    pub(in super::super) fn is_worth_forwarding(
        &mut self,
        rule: Forwarding,
        heard: (u16, u32),
        way: (usize, u16),
    ) -> bool {
        let ((source, number), (hops, from)) = (heard, way);
        let handled = self.requests.handled(source);
        if number < handled.number {
            return false;
        }
        if number == handled.number {
            let (first, least) = (handled.first_hops, handled.least_hops);
            handled.least_hops = least.min(hops);
            return match rule {
                Forwarding::First => false,
                Forwarding::FewerHops => hops < least,
                Forwarding::OtherLink => from != handled.from && hops <= first,
            };
        }
        (handled.number, handled.from) = (number, from);
        (handled.first_hops, handled.least_hops) = (hops, hops);
        true
    }

    /// Answers a request with a known route through this station. Returns whether there is such a
    /// route.
    fn answer_from_cache(&mut self, net: &mut Net, token: u32, way: &Route, to: u16) -> bool {
        let Some(rest) = self.cache.find(to, false) else { return false };
        if way.len() + rest.len() > MAX_ROUTE {
            return false;
        }
        let Some(whole) = way.joined(&rest).map(|route| route.without_loops()) else {
            return false;
        };
        if !whole.contains(self.id()) {
            return false;
        }
        net.packets.remove(token);
        let mut back = *way;
        back.push(self.id());
        let back = back.reversed();
        self.cache.add(&back);
        net.counters.cache_replies += 1;
        let packet = self.reply(whole, &back);
        let token = net.insert(packet);
        self.send_along(net, token, &back, Duration::ZERO);
        true
    }

    /// A reply with `route`, to be sent along `back` to its last station.
    pub(super) fn reply(&self, route: Route, back: &Route) -> Packet {
        let reply = Reply { route, neighbours: Vec::new() };
        let to = back.last().unwrap_or_default();
        Packet { route: *back, reply: Some(Box::new(reply)), ..self.routing_packet(to) }
    }

    /// Answers a request for this station with the route that the request has taken, if the
    /// configured rule allows it.
    pub(super) fn answer(&mut self, net: &mut Net, token: u32) {
        let Some(packet) = net.packets.get(token) else { return };
        let (Some(request), source) = (packet.request, packet.source) else { return };
        let mut route = packet.route;
        if !route.push(self.id()) {
            return;
        }
        let handled = self.requests.handled(source);
        let is_first = request.number > handled.number;
        handled.number = handled.number.max(request.number);
        let wanted = match net.config.answers {
            Answers::Every => true,
            _ if is_first => {
                self.answered.insert(source, (request.number, vec![route]));
                true
            }
            rule => {
                let Some((number, routes)) = self.answered.get_mut(&source) else { return };
                if *number != request.number {
                    return;
                }
                routes.push(route);
                let first = routes.first().copied().unwrap_or_default();
                rule == Answers::Disjoint && are_disjoint(&first, &route)
            }
        };
        if is_first && let Answers::MaximallyDisjoint { wait } = net.config.answers {
            net.schedule(wait, Event::Answer { station: self.id(), source });
        }
        if wanted {
            self.answer_with(net, &route);
        }
    }

    /// Answers a source with the most disjoint route when the wait for further routes is over.
    pub(super) fn answer_second(&mut self, net: &mut Net, source: u16) {
        let Some((_, routes)) = self.answered.get(&source) else { return };
        let first = routes.first().copied().unwrap_or_default();
        if let Some(route) = maximally_disjoint(&first, routes) {
            self.answer_with(net, &route);
        }
    }

    fn answer_with(&mut self, net: &mut Net, route: &Route) {
        let back = route.reversed();
        self.cache.add(&back);
        if let Some(source) = back.last() {
            self.find_for(net, source, &back, &[]);
        }
        net.counters.replies += 1;
        let packet = self.reply(*route, &back);
        let token = net.insert(packet);
        self.send_jittered(net, token);
    }

    /// Handles a reply that has reached the station that searched.
    pub(super) fn accept_reply(&mut self, net: &mut Net, token: u32) {
        let Some(reply) = net.packets.get(token).and_then(|packet| packet.reply.as_ref()) else {
            return;
        };
        let route = reply.route;
        if route.first() != Some(self.id()) || route.len() < 2 {
            return;
        }
        net.counters.replies_received += 1;
        let neighbours = reply.neighbours.clone();
        self.cache.add(&route);
        if let Some(to) = route.last() {
            self.requests.answered(to);
            self.find_for(net, to, &route, &neighbours);
        }
        self.release(net);
    }
}
