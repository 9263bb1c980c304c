use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use anabranch_sim::link::{Delivery, Dropped, Link, LinkConfig, LinkConfigError, LinkOutput};
use anabranch_types::{Ecn, Time};

use crate::lateness::Lateness;
use crate::stats::{LinkStats, RouteStats};
use crate::tap::Tap;
use crate::waits::Waits;

/// Links, the routes that lead over them, and the packets on them.
///
/// The caller passes the time with every call, so which packets come out, and when they are due,
/// depends only on the arrivals and the link models. Only [`next_due`](Self::next_due) compares due
/// times with a clock.
pub(crate) struct Network {
    links: Vec<Hop>,
    routes: Vec<Route>,
    /// Whether any route has several links. If so, all links advance in step, since the output of
    /// one link enters the next.
    chained: bool,
    /// Packets that a link has just delivered, on their way to the next link or the route's end.
    moving: Vec<Delivery<Parcel>>,
    /// Packet buffers to use again; never more than there were packets inside at once.
    spare: Vec<Vec<u8>>,
    first_arrival: Option<Time>,
}

struct Hop {
    name: String,
    tap: Option<Box<dyn Tap>>,
    link: Link<Parcel>,
    /// The link's capacity integral, in bits, when the first packet arrived on any route.
    capacity_before: Option<f64>,
    waits: Waits,
}

#[derive(Debug)]
struct Route {
    links: Vec<usize>,
    /// Packets that the last link has delivered, in order of time.
    due: VecDeque<Delivery<Parcel>>,
    stats: RouteStats,
}

/// A packet on its route.
#[derive(Debug)]
struct Parcel {
    bytes: Vec<u8>,
    /// The ECN codepoint with which the packet entered.
    ecn: Ecn,
    route: usize,
    /// Index, within the route, of the link that the packet is in.
    hop: usize,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("routes", &self.routes).finish_non_exhaustive()
    }
}

/// A packet that comes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) now: Time,
    /// Size on the wire, bytes.
    pub(crate) size: u32,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: &'a [u8],
}

/// A packet at the end of its route.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ecn: Ecn,
}

/// A link whose description is out of range.
#[derive(Debug)]
pub(crate) struct BadLink {
    pub(crate) name: String,
    pub(crate) why: LinkConfigError,
}

impl Network {
    /// Makes links, which draw from random streams of their names, and routes, each given as a list
    /// of link numbers.
    pub(crate) fn new<'a>(
        links: impl IntoIterator<Item = (String, &'a LinkConfig)>,
        routes: impl IntoIterator<Item = Vec<usize>>,
        seed: u64,
    ) -> Result<Self, BadLink> {
        let link = |(name, config): (String, &LinkConfig)| match Link::new(config, seed, &name) {
            Ok(link) => {
                Ok(Hop { name, link, tap: None, capacity_before: None, waits: Waits::new() })
            }
            Err(why) => Err(BadLink { name, why }),
        };
        let routes: Vec<Route> = routes.into_iter().map(Route::new).collect();
        Ok(Network {
            links: links.into_iter().map(link).collect::<Result<_, _>>()?,
            chained: routes.iter().any(|route| route.links.len() > 1),
            routes,
            moving: Vec::new(),
            spare: Vec::new(),
            first_arrival: None,
        })
    }

    /// Reports every packet that `link` delivers or drops to `tap`.
    #[cfg(target_os = "linux")]
    pub(crate) fn tap(&mut self, link: usize, tap: Box<dyn Tap>) {
        if let Some(hop) = self.links.get_mut(link) {
            hop.tap = Some(tap);
        }
    }

    /// Takes in a packet where `route` begins.
    pub(crate) fn arrive(&mut self, route: usize, arrival: Arrival<'_>) {
        let Arrival { now, size, ecn, bytes } = arrival;
        if self.first_arrival.is_none() {
            self.first_arrival = Some(now);
            for hop in &mut self.links {
                hop.capacity_before = Some(hop.link.capacity_bits(now));
            }
        }
        if self.chained {
            self.advance(now);
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.offer(now, size, ecn, Parcel { bytes: buffer, ecn, route, hop: 0 });
    }

    /// Advances every link to `now`. A packet that a link delivers enters the next link of its
    /// route.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some((time, index)) = self.earliest().filter(|(time, _)| *time <= now) {
            let Network { links, moving, spare, chained, .. } = self;
            let Some(hop) = links.get_mut(index) else { return };
            // Where links follow each other, advance one event at a time, so that packets enter each in order of time.
            let until = if *chained { time } else { now };
            let Hop { link, tap, .. } = hop;
            link.advance(until, |output| match output {
                LinkOutput::Dropped(dropped) => {
                    tell_drop(tap, &dropped);
                    spare.push(dropped.token.bytes);
                }
                LinkOutput::Delivered(delivery) => {
                    if let Some(tap) = tap {
                        tap.left(delivery.time, &delivery.token.bytes, delivery.ecn, None);
                    }
                    moving.push(delivery);
                }
            });
            self.move_on();
        }
    }

    /// Takes out the next packet that [`advance`](Self::advance) brought to the end of `route`, and
    /// records how late the packet is at the time `now`.
    pub(crate) fn next_due(&mut self, route: usize, now: impl FnOnce() -> Time) -> Option<Due> {
        let route = self.routes.get_mut(route)?;
        let Delivery { time, token, ecn, .. } = route.due.pop_front()?;
        route.stats.lateness.record(now().since(time));
        Some(Due { bytes: token.bytes, ecn })
    }

    /// Takes back a packet's buffer, to use it again.
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }

    /// Notes that packets at the end of `route` could not be sent on.
    pub(crate) fn add_unsent(&mut self, route: usize, packets: u64) {
        if let Some(route) = self.routes.get_mut(route) {
            route.stats.unsent += packets;
        }
    }

    /// Time of the next event on any link; `Time::MAX` if no packet is inside.
    pub(crate) fn next_event(&self) -> Time {
        self.earliest().map_or(Time::MAX, |(time, _)| time)
    }

    /// When the first packet arrived on any route; `None` before.
    pub(crate) fn first_arrival(&self) -> Option<Time> {
        self.first_arrival
    }

    /// Bits that a link can deliver in `[from, to)`.
    pub(crate) fn capacity_bits(&self, link: usize, from: Time, to: Time) -> f64 {
        self.links.get(link).map_or(0.0, |hop| hop.link.capacity_integral(from, to))
    }

    /// A snapshot of every link at `now`.
    pub(crate) fn link_stats(&mut self, now: Time) -> Vec<LinkStats> {
        self.links.iter_mut().map(|hop| hop.stats(now)).collect()
    }

    /// A snapshot of every route.
    pub(crate) fn route_stats(&self) -> Vec<RouteStats> {
        self.routes.iter().map(|route| route.stats.clone()).collect()
    }

    fn earliest(&self) -> Option<(Time, usize)> {
        let event = |(index, hop): (usize, &Hop)| Some((hop.link.next_event()?, index));
        self.links.iter().enumerate().filter_map(event).min()
    }

    /// Moves the packets that a link has just delivered into the next link or to the end of their
    /// route.
    fn move_on(&mut self) {
        let mut moving = core::mem::take(&mut self.moving);
        for mut delivery in moving.drain(..) {
            let Parcel { route, hop, .. } = &mut delivery.token;
            *hop += 1;
            match self.routes.get_mut(*route) {
                Some(route) if *hop >= route.links.len() => route.due.push_back(delivery),
                _ => self.offer(delivery.time, delivery.size, delivery.ecn, delivery.token),
            }
        }
        self.moving = moving;
    }

    fn offer(&mut self, now: Time, size: u32, ecn: Ecn, parcel: Parcel) {
        let route = self.routes.get(parcel.route);
        let link = route.and_then(|route| route.links.get(parcel.hop).copied());
        let Some(hop) = link.and_then(|link| self.links.get_mut(link)) else {
            self.spare.push(parcel.bytes);
            return;
        };
        match hop.link.enqueue(now, size, ecn, parcel) {
            Ok(()) => hop.waits.record(hop.wait_of_last(size)),
            Err(dropped) => {
                tell_drop(&mut hop.tap, &dropped);
                self.spare.push(dropped.token.bytes);
            }
        }
    }
}

fn tell_drop(tap: &mut Option<Box<dyn Tap>>, dropped: &Dropped<Parcel>) {
    if let Some(tap) = tap {
        tap.left(dropped.time, &dropped.token.bytes, dropped.token.ecn, Some(dropped.cause));
    }
}

impl Route {
    fn new(links: Vec<usize>) -> Self {
        let stats = RouteStats { unsent: 0, lateness: Lateness::new() };
        Route { links, due: VecDeque::new(), stats }
    }
}

impl Hop {
    /// Time to send the packets that are queued ahead of the last one, which has `size` bytes. The
    /// packet on the wire is not counted.
    fn wait_of_last(&self, size: u32) -> Duration {
        let before = self.link.queue().bytes().saturating_sub(u64::from(size));
        self.link.rate().time_to_send(before)
    }

    fn stats(&mut self, now: Time) -> LinkStats {
        let Hop { name, link, capacity_before, waits, .. } = self;
        LinkStats {
            name: name.clone(),
            loss_state: link.loss_state(now),
            capacity_bits: capacity_before.map_or(0.0, |before| link.capacity_bits(now) - before),
            link: *link.counters(),
            rate: link.rate(),
            queue_bytes: link.queue().bytes(),
            waits: waits.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> LinkConfig {
        text.parse().expect("a valid link")
    }

    fn arrive(network: &mut Network, route: usize, now: Time, content: u8) {
        let (ecn, bytes) = (Ecn::NotEct, &[content][..]);
        network.arrive(route, Arrival { now, size: 1_000, ecn, bytes });
    }

    /// Route and content of the packets that come out by `now`.
    fn out(network: &mut Network, now: Time) -> Vec<(usize, u8)> {
        network.advance(now);
        let mut out = Vec::new();
        for route in 0..2 {
            while let Some(due) = network.next_due(route, || now) {
                out.push((route, due.bytes[0]));
                network.recycle(due.bytes);
            }
        }
        out
    }

    #[test]
    fn a_route_over_two_links_is_both_of_them_and_shares_them() {
        // A packet takes 1 ms to send on each link, and then 5 ms on the first and 10 ms on the
        // second.
        let (a, b) = (config("rate=8mbit,delay=5ms"), config("rate=8mbit,delay=10ms"));
        let links = || [("a".to_owned(), &a), ("b".to_owned(), &b)];
        let mut network = Network::new(links(), [vec![0, 1], vec![1]], 1).expect("valid");
        arrive(&mut network, 0, Time::ZERO, 1);
        // This packet enters the second link 1 µs before the first packet does, so the first packet
        // waits.
        arrive(&mut network, 1, Time::from_nanos(5_999_000), 2);
        assert_eq!(out(&mut network, Time::from_nanos(16_998_999)), []);
        assert_eq!(out(&mut network, Time::from_nanos(16_999_000)), [(1, 2)]);
        assert_eq!(out(&mut network, Time::from_nanos(17_998_999)), []);
        assert_eq!(out(&mut network, Time::from_nanos(17_999_000)), [(0, 1)]);
        assert_eq!(network.next_event(), Time::MAX);
        // Each packet was taken out the moment it was due.
        assert!(network.route_stats().iter().all(|route| route.lateness.max().is_zero()));
    }

    #[test]
    fn a_link_tells_how_long_its_packets_wait() {
        // A packet takes 1 ms to send. Packets 1 to 5 wait 0, 0, 1, 2 and 3 ms, since the packet on
        // the wire is not counted; packet 6 finds the queue full.
        let link = config("rate=8mbit,delay=5ms,buffer=4p");
        let mut network = Network::new([("a".to_owned(), &link)], [vec![0]], 1).expect("valid");
        for content in 0..6 {
            arrive(&mut network, 0, Time::ZERO, content);
        }
        let stats = network.link_stats(Time::ZERO).remove(0);
        assert_eq!(stats.link.dropped_full, 1);
        assert_eq!(stats.waits.mean(), Duration::from_micros(1_200));
        assert_eq!(stats.waits.quantile(1.0), Duration::from_millis(3));
    }

    #[test]
    fn late_calls_change_no_departure() {
        let link = config("rate=8mbit,delay=1ms,jitter=3ms,loss=20%,buffer=20p");
        let make = || {
            let links = [("a".to_owned(), &link), ("b".to_owned(), &link)];
            Network::new(links, [vec![0, 1], vec![1]], 7).expect("valid")
        };
        let arrivals: Vec<(usize, Time)> =
            (0..400).map(|n| (usize::from(n % 3 == 0), Time::from_micros(n * 700))).collect();
        let (mut prompt, mut late) = (make(), make());
        let (mut seen, mut until) = (Vec::new(), Time::ZERO);
        for (number, (route, time)) in arrivals.iter().enumerate() {
            while until < *time {
                seen.extend(out(&mut prompt, until));
                until += core::time::Duration::from_micros(50);
            }
            arrive(&mut prompt, *route, *time, number as u8);
            arrive(&mut late, *route, *time, number as u8);
        }
        seen.extend(out(&mut prompt, Time::from_secs(9)));
        let by_route = |mut all: Vec<(usize, u8)>| {
            all.sort_by_key(|(route, _)| *route);
            all
        };
        let at_once = out(&mut late, Time::from_secs(9));
        assert!(at_once.len() > 100, "{}", at_once.len());
        assert_eq!(by_route(seen), at_once);
        let counters = |mut network: Network| {
            network.link_stats(Time::from_secs(9)).iter().map(|l| l.link).collect::<Vec<_>>()
        };
        assert_eq!(counters(prompt), counters(late));
    }
}
