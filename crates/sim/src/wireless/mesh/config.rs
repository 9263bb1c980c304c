use core::time::Duration;

use anabranch_types::Probability;

use super::selection::Separation;

/// The network layer of every station.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingConfig {
    /// Whether a search for a route asks the neighbours first, and how long their answer may take before everybody is
    /// asked; `None`: everybody at once. ns-2: 30 ms.
    pub neighbours_first: Option<Duration>,
    /// A search without a reply is repeated after four times this, and then each time after four times as long as
    /// before. 0.5 s.
    pub request_period: Duration,
    /// The longest wait before a search is repeated: 10 s (RFC 4728 §9, MaxRequestPeriod).
    pub most_request_period: Duration,
    /// Whether stations that know a route answer requests for others (RFC 4728 §3.3.2).
    pub reply_from_cache: bool,
    /// Whether stations learn routes and failed links from packets for others (RFC 4728 §3.3.1).
    pub overhear: bool,
    /// Whether a station that overhears a packet that would come to it later tells its source of the shorter route
    /// (RFC 4728 §3.4.3), at most once a second for each route.
    pub shorten: bool,
    /// Whether a station that cannot forward another's packet sends it along a route that it knows (RFC 4728 §3.4.1).
    pub salvage: bool,
    /// Packets that wait for a route at a station: 64 (RFC 4728 §9).
    pub send_buffer: usize,
    /// How long a packet waits for a route: 30 s (RFC 4728 §9).
    pub send_buffer_timeout: Duration,
    /// Routes for packets that wait are looked up again after a time uniform from this to twice as long: 30 to 60 ms,
    /// as ns-2.
    pub send_buffer_period: Duration,
    /// Once there is a route, packets that waited for it leave this long after one another, so that ARP can follow: 30
    /// ms, as ns-2.
    pub release_gap: Duration,
    /// Requests, and replies of destinations, are sent after a time uniform from 0 to this: 10 ms (RFC 4728 §9,
    /// BroadcastJitter).
    pub jitter: Duration,
    /// Whether stations have to resolve MAC addresses by ARP.
    pub arp: bool,
    /// Time of a packet between network layer and MAC, each way: 25 µs, as ns-2.
    pub stack_delay: Duration,
    /// Which copies of a request stations send on.
    pub forwarding: Forwarding,
    /// Which copies of a request its destination answers.
    pub answers: Answers,
    /// Whether stations that forward a reply add the neighbours they have heard in the last 10 s.
    pub neighbour_lists: bool,
    /// How a source uses several routes to one destination.
    pub routes: RouteUse,
    /// How far apart two routes must be to be used at once.
    pub separation: Separation,
    /// When a source that uses several routes searches for new ones.
    pub renewal: Renewal,
    /// Which route acknowledgements of transports take.
    pub acknowledgements: AckRoute,
    /// Whether a destination passes on the first of two copies only: it tells copies, which carry the same number (4
    /// bytes), from packets that a transport has sent again (M-TCP, §V).
    pub drop_copies: bool,
}

/// Which copies of a request a station sends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// The first copy (RFC 4728 §8.2.2).
    First,
    /// The first, and later ones that have taken strictly fewer hops than all before (M-TCP, §III.A).
    FewerHops,
    /// The first, and later ones that come from another neighbour and have not taken more hops than the first (SMR: Lee
    /// and Gerla 2001, §III.A).
    OtherLink,
}

/// Which copies of a request its destination answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Every one (DSR).
    Every,
    /// The first, and later ones whose route shares no station with that of the first (M-TCP, §III.A).
    Disjoint,
    /// The first at once, and after a wait the one whose route has least in common with it (SMR, §III.B).
    MaximallyDisjoint {
        /// The time from the first copy to the second answer.
        wait: Duration,
    },
}

/// How a source uses several routes to one destination that are far enough apart. With one route all rules act like
/// DSR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RouteUse {
    /// Use the shortest known route (DSR).
    Shortest,
    /// Send a copy of every data packet along the second route (M-TCP, §III.B).
    Copies {
        /// The copy leaves later by a time uniform from 0 to this, so that the two do not contend next to the
        /// source. The paper has no number.
        jitter: Duration,
    },
    /// Act like `Copies` while loss is measured, else use the first route alone (M-TCP, §IV.B and §V: several routes
    /// "only in an error mode"). Needs receivers that acknowledge every packet, and `drop_copies` off.
    CopiesIfLossy {
        /// The longest delay of the copy, as in `Copies`.
        jitter: Duration,
        /// Copies are sent once the share of data packets without an acknowledgement is above this, until it is below
        /// half of it. Rounds of 32 packets are smoothed; those in which a link has failed do not count.
        above: Probability,
    },
    /// Send every other data packet along the second route.
    Scatter,
    /// Use the route found first and, when it fails, the one found next.
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

/// Which route acknowledgements of transports take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRoute {
    /// The shortest route that the receiving station knows: it has learned the way back from requests.
    Shortest,
    /// The reverse of the route that the latest packet arrived on.
    Arrival,
    /// Like data, over the routes that the station has answered with.
    LikeData,
}

impl RoutingConfig {
    /// The M-TCP paper's routing (§III): requests that have taken fewer hops go on; the destination alone answers, with
    /// disjoint routes; replies carry neighbour lists; data takes two routes two hops apart, if they exist.
    pub fn mtcp() -> Self {
        RoutingConfig {
            forwarding: Forwarding::FewerHops,
            answers: Answers::Disjoint,
            neighbour_lists: true,
            routes: RouteUse::Copies { jitter: Duration::from_millis(10) },
            ..RoutingConfig::destination_only()
        }
    }

    /// Split multipath routing (Lee and Gerla 2001): two routes with as little in common as possible, and data
    /// scattered over both; the routes need not be apart.
    pub fn smr() -> Self {
        RoutingConfig {
            forwarding: Forwarding::OtherLink,
            answers: Answers::MaximallyDisjoint { wait: Duration::from_millis(100) },
            routes: RouteUse::Scatter,
            separation: Separation::Stations,
            ..RoutingConfig::destination_only()
        }
    }

    /// DSR in which destinations alone answer and everybody is asked at once.
    fn destination_only() -> Self {
        RoutingConfig {
            neighbours_first: None,
            reply_from_cache: false,
            shorten: false,
            ..RoutingConfig::dsr()
        }
    }

    /// DSR as ns-2 2.35 has it, except for flow state: every packet carries its whole route.
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
