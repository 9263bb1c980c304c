//! The use of several routes to one destination at once, as in SMR and M-TCP.

use std::collections::BTreeMap;

use anabranch_types::Time;
use core::time::Duration;

use super::super::net::Net;
use super::super::packet::Load;
use super::super::route::Route;
use super::super::selection::{NeighbourList, RouteSet};
use super::super::{AckRoute, Renewal, RouteUse};
use super::Station;
use super::loss_meter::LossMeter;
use super::recent::Recent;

/// A station's state for the use of several routes.
#[derive(Debug, Default)]
pub(super) struct Multipath {
    /// The routes to each station: those in its replies, and the reverse of those with which this
    /// station replied to it.
    sets: BTreeMap<u16, RouteSet>,
    /// When each station was last heard.
    heard: BTreeMap<u16, Time>,
    /// For each station, the reverse of the route on which its latest data arrived.
    arrivals: BTreeMap<u16, Route>,
    /// Numbers of recently received copies.
    copies: Recent,
    /// For each station, when a route was last searched for because only one was usable.
    renewed: BTreeMap<u16, Time>,
    /// The loss to each station and back.
    meters: BTreeMap<u16, LossMeter>,
    /// Whether the next scattered packet goes along the second route.
    turn: bool,
}

/// How long a station counts as a neighbour after it was heard.
const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum time between two searches of a source that has only one usable route.
const RENEWAL: Duration = Duration::from_secs(2);

impl Station {
    /// Notes that the radio has decoded a frame from a neighbour.
    pub(in super::super) fn hear(&mut self, net: &Net, from: u32) {
        if net.config.neighbour_lists {
            self.multipath.heard.insert(from as u16, net.now);
        }
    }

    /// The stations that this station has heard recently.
    pub(super) fn neighbours(&self, now: Time) -> NeighbourList {
        let heard = self.multipath.heard.iter();
        let lately = heard.filter(|(_, last)| **last + NEIGHBOUR_TIMEOUT >= now);
        let neighbours = lately.map(|(station, _)| *station).collect();
        NeighbourList { station: self.link.station, neighbours }
    }

    /// Adds a route to `to`, which was in a reply or is the reverse of a route with which this
    /// station has answered `to`.
    pub(in super::super) fn find_for(
        &mut self,
        net: &Net,
        to: u16,
        route: &Route,
        lists: &[NeighbourList],
    ) {
        if net.config.routes != RouteUse::Shortest {
            let set = self.multipath.sets.entry(to).or_default();
            set.add(net.now, route, lists, net.config.separation);
        }
    }

    /// Removes a failed link from all routes.
    pub(in super::super) fn forget_link(&mut self, net: &Net, from: u16, to: u16) {
        self.cache.remove_link(from, to);
        for set in self.multipath.sets.values_mut() {
            set.remove_link(from, to, net.config.separation);
        }
        self.multipath.meters.values_mut().for_each(LossMeter::on_link_failure);
    }

    /// Sends a packet after a delay along the route or routes that it should take. Returns whether
    /// there is a route.
    pub(super) fn dispatch(&mut self, net: &mut Net, token: u32, delay: Duration) -> bool {
        let Some(packet) = net.packets.get(token) else { return true };
        let target = packet.target;
        let kind = match &packet.load {
            Load::Data(data) if packet.source == self.id() => Some(data.is_acknowledgement()),
            _ => None,
        };
        let rule = net.config.acknowledgements;
        match kind {
            Some(true) if rule == AckRoute::Arrival => {
                if let Some(back) = self.multipath.arrivals.get(&target).copied() {
                    self.send_along(net, token, &back, delay);
                    return true;
                }
            }
            Some(is_ack) if !is_ack || rule == AckRoute::LikeData => {
                if let Some(first) = self.multipath.sets.get(&target).and_then(RouteSet::first) {
                    self.send_over(net, token, &first, delay);
                    return true;
                }
            }
            _ => {}
        }
        let Some(route) = self.cache.find(target, true) else { return false };
        self.send_along(net, token, &route, delay);
        true
    }

    /// Sends a data packet along the first route, the second route, or both.
    fn send_over(&mut self, net: &mut Net, token: u32, first: &Route, delay: Duration) {
        let Some(packet) = net.packets.get(token) else { return };
        let target = packet.target;
        self.meter(target).on_sent();
        let Some(second) = self.multipath.sets.get(&target).and_then(RouteSet::second) else {
            self.send_along(net, token, first, delay);
            self.renew(net, target);
            return;
        };
        match net.config.routes {
            RouteUse::CopiesIfLossy { above, .. } if !self.meter(target).is_lossy(above.get()) => {
                self.send_along(net, token, first, delay);
            }
            RouteUse::Shortest | RouteUse::Backup => self.send_along(net, token, first, delay),
            RouteUse::Scatter => {
                let route = if self.multipath.turn { second } else { *first };
                self.multipath.turn = !self.multipath.turn;
                self.send_along(net, token, &route, delay);
            }
            RouteUse::Copies { .. } | RouteUse::CopiesIfLossy { .. }
                if net.packets.get(token).is_some_and(|packet| packet.copy.is_some()) =>
            {
                // This is one of two copies and was returned from a failed link. The other copy is
                // on its way.
                self.send_along(net, token, first, delay);
            }
            RouteUse::Copies { jitter } | RouteUse::CopiesIfLossy { jitter, .. } => {
                let later = delay + Net::jitter(&mut self.link.rng, jitter);
                self.send_twice(net, token, [(*first, delay), (second, later)]);
                self.meter(target).on_sent();
            }
        }
    }

    /// Sends a packet and a copy of it along two routes, each after its delay.
    fn send_twice(&mut self, net: &mut Net, token: u32, ways: [(Route, Duration); 2]) {
        let Some(packet) = net.packets.get_mut(token) else { return };
        packet.copy = Some(packet.serial);
        packet.is_numbered = net.config.drop_copies;
        let packet = packet.clone();
        let copy = net.insert(packet);
        net.counters.copies += 1;
        for (token, (route, delay)) in [token, copy].into_iter().zip(ways) {
            self.send_along(net, token, &route, delay);
        }
    }

    /// Searches for further routes, if this is configured and a search is due. Called when only one
    /// route is usable.
    fn renew(&mut self, net: &mut Net, to: u16) {
        if net.config.renewal != Renewal::OneRoute {
            return;
        }
        let last = self.multipath.renewed.get(&to);
        if last.is_none_or(|last| *last + RENEWAL <= net.now) {
            self.multipath.renewed.insert(to, net.now);
            self.search(net, to, true);
        }
    }

    fn meter(&mut self, to: u16) -> &mut LossMeter {
        self.multipath.meters.entry(to).or_default()
    }

    /// Whether a packet that has reached this station carries data that has not already arrived in
    /// another copy.
    pub(super) fn takes_data(&mut self, net: &mut Net, token: u32) -> bool {
        let Some(packet) = net.packets.get(token) else { return false };
        if !matches!(packet.load, Load::Data(_)) {
            return false;
        }
        let source = packet.source;
        if let Load::Data(data) = &packet.load
            && data.is_acknowledgement()
            && let Some(meter) = self.multipath.meters.get_mut(&source)
        {
            meter.on_acknowledgement();
        }
        if net.config.acknowledgements == AckRoute::Arrival
            && packet.route.first() == Some(packet.source)
        {
            self.multipath.arrivals.insert(packet.source, packet.route.reversed());
        }
        let Some(number) = packet.copy.filter(|_| net.config.drop_copies) else { return true };
        let is_new = self.multipath.copies.is_new(number);
        net.counters.copies_dropped += u64::from(!is_new);
        is_new
    }
}
