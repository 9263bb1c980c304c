use core::time::Duration;

use anabranch_types::Probability;

use super::selection::Separation;

/// The configuration of every station's network layer.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingConfig {
    /// If given, a search for a route first asks only the neighbours, and this is how long their
    /// answer may take before all stations are asked (30 ms in ns-2). `None` means that all
    /// stations are asked at once.
    pub neighbours_first: Option<Duration>,
    /// A search without a reply is repeated after four times this time, and each further wait is
    /// four times as long as the one before. 0.5 s.
    pub request_period: Duration,
    /// The longest wait before a search is repeated. 10 s (RFC 4728 §9, MaxRequestPeriod).
    pub most_request_period: Duration,
    /// Whether stations that know a route answer requests for other stations (RFC 4728 §3.3.2).
    pub reply_from_cache: bool,
    /// Whether stations learn routes and failed links from packets for other stations (RFC 4728
    /// §3.3.1).
    pub overhear: bool,
    /// Whether a station that overhears a packet, before the packet reaches it along its route,
    /// tells the source of the shorter route (RFC 4728 §3.4.3). It does so at most once a second
    /// for each route.
    pub shorten: bool,
    /// Whether a station that cannot forward a packet sends it along another route that it knows
    /// (RFC 4728 §3.4.1).
    pub salvage: bool,
    /// Maximum number of packets that wait for a route at a station. 64 (RFC 4728 §9).
    pub send_buffer: usize,
    /// How long a packet waits for a route before it is dropped. 30 s (RFC 4728 §9).
    pub send_buffer_timeout: Duration,
    /// Routes for waiting packets are looked up periodically. The interval is uniform between this
    /// time and twice this time: 30 to 60 ms, as in ns-2.
    pub send_buffer_period: Duration,
    /// Once there is a route, the packets that waited for it leave at this interval, so that ARP
    /// has time to resolve the address. 30 ms, as in ns-2.
    pub release_gap: Duration,
    /// Requests, and replies of destinations, are delayed by a random time, uniform from 0 to this.
    /// 10 ms (RFC 4728 §9, BroadcastJitter).
    pub jitter: Duration,
    /// Whether stations must resolve MAC addresses by ARP.
    pub arp: bool,
    /// Time that a packet takes between network layer and MAC, in each direction. 25 µs, as in
    /// ns-2.
    pub stack_delay: Duration,
    /// Which copies of a request stations forward.
    pub forwarding: Forwarding,
    /// Which copies of a request its destination answers.
    pub answers: Answers,
    /// Whether stations that forward a reply add to it the neighbours that they have heard in the
    /// last 10 s.
    pub neighbour_lists: bool,
    /// How a source uses several routes to one destination.
    pub routes: RouteUse,
    /// How far apart two routes must be to be used at once.
    pub separation: Separation,
    /// When a source that uses several routes searches for new ones.
    pub renewal: Renewal,
    /// Which route transport acknowledgements take.
    pub acknowledgements: AckRoute,
    /// Whether a destination delivers only the first of two copies. Copies carry the same number (4
    /// bytes), which distinguishes them from packets that a transport has retransmitted (M-TCP,
    /// §V).
    pub drop_copies: bool,
}

/// Which copies of a request a station forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// The first copy (RFC 4728 §8.2.2).
    First,
    /// The first copy, and later copies that have taken fewer hops than all copies before (M-TCP,
    /// §III.A).
    FewerHops,
    /// The first copy, and later copies that come from another neighbour and have not taken more
    /// hops than the first (SMR: Lee and Gerla 2001, §III.A).
    OtherLink,
}

/// Which copies of a request its destination answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Every copy (DSR).
    Every,
    /// The first copy, and later copies whose route shares no station with that of the first
    /// (M-TCP, §III.A).
    Disjoint,
    /// The first copy at once and, after a wait, the copy whose route has the fewest stations in
    /// common with that of the first (SMR, §III.B).
    MaximallyDisjoint {
        /// The time from the first copy to the second answer.
        wait: Duration,
    },
}

/// How a source uses several routes to one destination that are sufficiently separate. With a
/// single route, all rules behave like DSR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RouteUse {
    /// Use the shortest known route (DSR).
    Shortest,
    /// Send a copy of every data packet along the second route (M-TCP, §III.B).
    Copies {
        /// The copy is delayed by a random time, uniform from 0 to this, so that the two packets do
        /// not contend near the source. The paper gives no value.
        jitter: Duration,
    },
    /// Behave like `Copies` while the measured loss is high, and otherwise use only the first route
    /// (M-TCP, §IV.B and §V: several routes "only in an error mode"). This requires receivers that
    /// acknowledge every packet, and `drop_copies` must be off.
    CopiesIfLossy {
        /// The longest delay of the copy, as in `Copies`.
        jitter: Duration,
        /// Copies are sent once the share of data packets without an acknowledgement exceeds this
        /// value, until the share is below half of it. The share is smoothed over rounds of 32
        /// packets. Rounds in which a link has failed are ignored.
        above: Probability,
    },
    /// Send every other data packet along the second route.
    Scatter,
    /// Use the route that was found first and, when it fails, the one that was found next.
    Backup,
}

/// When a source that uses several routes searches for new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// When no route is left (M-TCP, §III.A).
    NoRoute,
    /// When only one route is usable, at most every two seconds.
    OneRoute,
}

/// Which route transport acknowledgements take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRoute {
    /// The shortest route that the receiving station knows. It has learned the reverse route from
    /// requests.
    Shortest,
    /// The reverse of the route on which the latest data packet arrived.
    Arrival,
    /// The same as data, over the routes with which the station has answered requests.
    LikeData,
}

impl RoutingConfig {
    /// The routing of the M-TCP paper (§III). Copies of a request that have taken fewer hops are
    /// forwarded. Only the destination answers, with disjoint routes. Replies carry neighbour
    /// lists. Data takes two routes that are two hops apart, if they exist.
    pub fn mtcp() -> Self {
        RoutingConfig {
            forwarding: Forwarding::FewerHops,
            answers: Answers::Disjoint,
            neighbour_lists: true,
            routes: RouteUse::Copies { jitter: Duration::from_millis(10) },
            ..RoutingConfig::destination_only()
        }
    }

    /// Split multipath routing (Lee and Gerla 2001): data is scattered over two routes that have as
    /// few stations in common as possible. Stations of the two routes may be neighbours.
    pub fn smr() -> Self {
        RoutingConfig {
            forwarding: Forwarding::OtherLink,
            answers: Answers::MaximallyDisjoint { wait: Duration::from_millis(100) },
            routes: RouteUse::Scatter,
            separation: Separation::Stations,
            ..RoutingConfig::destination_only()
        }
    }

    /// DSR in which only destinations answer and all stations are asked at once.
    fn destination_only() -> Self {
        RoutingConfig {
            neighbours_first: None,
            reply_from_cache: false,
            shorten: false,
            ..RoutingConfig::dsr()
        }
    }

    /// DSR as in ns-2 2.35, but without flow state: every packet carries its whole route.
    pub fn dsr() -> Self {
        let millis = Duration::from_millis;
        RoutingConfig {
            neighbours_first: Some(millis(30)),
            request_period: millis(500),
            most_request_period: Duration::from_secs(10),
            reply_from_cache: true,
            overhear: true,
            shorten: true,
            salvage: true,
            send_buffer: 64,
            send_buffer_timeout: Duration::from_secs(30),
            send_buffer_period: millis(30),
            release_gap: millis(30),
            jitter: millis(10),
            arp: true,
            stack_delay: Duration::from_micros(25),
            forwarding: Forwarding::First,
            answers: Answers::Every,
            neighbour_lists: false,
            routes: RouteUse::Shortest,
            separation: Separation::TwoHops,
            renewal: Renewal::NoRoute,
            acknowledgements: AckRoute::Shortest,
            drop_copies: false,
        }
    }
}

impl Default for RoutingConfig {
    fn default() -> Self {
        RoutingConfig::dsr()
    }
}
