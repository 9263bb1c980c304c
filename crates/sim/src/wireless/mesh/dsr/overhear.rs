//! Learns from packets for other stations (RFC 4728 §3.3.1, §3.4.3).

use super::super::net::Net;
use super::super::route::Route;
use super::Station;
use core::time::Duration;

/// Number of remembered routes whose source was told of a shorter route, and the time for which the
/// source is not told again (RFC 4728 §9, GratReplyHoldOff).
const SHORTENED: usize = 10;
const HOLD_OFF: Duration = Duration::from_secs(1);

impl Station {
    /// Handles a packet for another station that the radio has decoded.
    pub(in super::super) fn overhear(&mut self, net: &mut Net, token: u32) {
        let Some(packet) = net.packets.get(token) else { return };
        if packet.route.is_empty() || packet.source == self.id() {
            return;
        }
        if !self.overheard.is_new(packet.serial) {
            return;
        }
        let (route, at) = (packet.route, usize::from(packet.at));
        let told = packet.reply.as_ref().map(|reply| reply.route);
        let is_routing = packet.is_routing();
        if !packet.errors.is_empty() {
            self.handle_errors(net, token);
        }
        if let Some(told) = told {
            self.notice_route(&told, 0);
        }
        self.notice_route(&route, at);
        if !is_routing && net.config.shorten {
            self.shorten(net, &route, at);
        }
    }

    /// If this station comes later on the route of an overheard packet, tells the source that the
    /// stations in between can be left out.
    fn shorten(&mut self, net: &mut Net, route: &Route, at: usize) {
        let Some(here) = route.position(self.id()).filter(|here| *here > at) else { return };
        let told = self.shortened.iter_mut().find(|(told, _)| told == route);
        match told {
            Some((_, since)) if *since + HOLD_OFF > net.now => return,
            Some((_, since)) => *since = net.now,
            None => {
                self.shortened.push_back((*route, net.now));
                if self.shortened.len() > SHORTENED {
                    self.shortened.pop_front();
                }
            }
        }
        let Some(shorter) = route.until(at).joined(&route.from(here)) else { return };
        let mut back = route.until(at);
        back.push(self.id());
        let back = back.reversed();
        self.cache.add(&back);
        net.counters.shortenings += 1;
        let packet = self.reply(shorter, &back);
        let token = net.insert(packet);
        self.send_along(net, token, &back, Duration::ZERO);
    }
}
