//! Forwarding and route maintenance (RFC 4728 §3.3, §3.4, §8.3).

use super::super::net::Net;
use super::super::packet::{LinkError, Load, Packet};
use super::super::route::Route;
use super::Station;
use core::time::Duration;

/// Maximum number of times that a packet may be salvaged (RFC 4728 §9, MAX_SALVAGE_COUNT).
const MOST_SALVAGED: u8 = 15;

impl Station {
    /// Forwards a packet for another station, unless its lifetime is over or its route ends here.
    pub(super) fn forward(&mut self, net: &mut Net, token: u32) {
        let Some(packet) = net.packets.get_mut(token) else { return };
        let (route, at) = (packet.route, usize::from(packet.at));
        if packet.lifetime == 0 || packet.next().is_none() {
            net.counters.drops.lifetime += 1;
            net.packets.remove(token);
            return;
        }
        packet.lifetime -= 1;
        if let Some(reply) = packet.reply.as_mut().filter(|_| net.config.neighbour_lists) {
            reply.neighbours.push(self.neighbours(net.now));
        }
        self.notice_route(&route, at);
        self.transmit(net, token);
    }

    /// Handles a failed link: the MAC has given up a packet for a neighbour, or ARP found no
    /// address. This packet and others that wait for the same neighbour get other routes.
    pub(in super::super) fn handle_failure(&mut self, net: &mut Net, token: u32) {
        let Some(packet) = net.packets.get_mut(token) else { return };
        if packet.request.is_some() || matches!(packet.load, Load::ArpRequest | Load::ArpReply) {
            net.packets.remove(token);
            return;
        }
        let Some(to) = packet.here() else { return };
        packet.at = packet.at.saturating_sub(1);
        let failed = packet.clone();
        net.counters.link_failures += 1;
        self.forget_link(net, self.id(), to);
        self.rescue(net, token, to);
        let mut waiting = Vec::new();
        net.air.withdraw(self.id().into(), to.into(), &mut waiting);
        for token in waiting {
            if let Some(packet) = net.packets.get_mut(token) {
                packet.at = packet.at.saturating_sub(1);
                self.rescue(net, token, to);
            }
        }
        self.report(net, &failed, to);
    }

    /// Finds another route for a packet that could not be sent to `failed`.
    fn rescue(&mut self, net: &mut Net, token: u32, failed: u16) {
        let Some(packet) = net.packets.get_mut(token) else { return };
        if matches!(packet.load, Load::ArpRequest | Load::ArpReply) {
            net.packets.remove(token);
            return;
        }
        if packet.source == self.link.station {
            return self.originate(net, token);
        }
        if !net.config.salvage || packet.salvaged >= MOST_SALVAGED {
            match net.config.salvage {
                true => net.counters.drops.lifetime += 1,
                false => net.counters.drops.no_route += 1,
            }
            net.packets.remove(token);
            return;
        }
        let Some(route) = self.cache.find(packet.target, false) else {
            return self.keep(net, token);
        };
        if packet.reply.as_ref().is_some_and(|reply| has_link(&reply.route, self.id(), failed)) {
            net.counters.drops.stale_reply += 1;
            net.packets.remove(token);
            return;
        }
        packet.salvaged += 1;
        net.counters.salvaged += 1;
        self.send_along(net, token, &route, Duration::ZERO);
    }

    /// Tells the first station of a packet's route that the link from here to `to` has failed.
    fn report(&mut self, net: &mut Net, failed: &Packet, to: u16) {
        let Some(tell) = failed.route.first() else { return };
        if tell == self.id() {
            return;
        }
        let mut errors = failed.errors;
        if !errors.push(LinkError { tell: Some(tell), from: self.id(), to }) {
            return;
        }
        let back = failed.route.until(usize::from(failed.at) + 1).reversed();
        net.counters.errors += 1;
        let packet = Packet { errors, ..self.routing_packet(tell) };
        let token = net.insert(packet);
        self.send_along(net, token, &back, Duration::ZERO);
    }

    /// Removes the failed links that a packet reports from the cache. If the newest error is
    /// addressed to this station, the earlier errors are forwarded to theirs.
    pub(super) fn handle_errors(&mut self, net: &mut Net, token: u32) {
        let Some(mut errors) = net.packets.get(token).map(|packet| packet.errors) else { return };
        for error in errors.iter() {
            self.forget_link(net, error.from, error.to);
        }
        let Some(newest) = errors.last().filter(|error| error.tell == Some(self.id())) else {
            return;
        };
        self.held_error = Some((newest, net.now));
        errors.pop();
        if let Some(tell) = errors.last().and_then(|error| error.tell) {
            let packet = Packet { errors, ..self.routing_packet(tell) };
            let token = net.insert(packet);
            self.originate(net, token);
        }
    }
}

/// Whether a route has the link between two stations, in either direction.
fn has_link(route: &Route, one: u16, two: u16) -> bool {
    route.uses(one, two) || route.uses(two, one)
}
