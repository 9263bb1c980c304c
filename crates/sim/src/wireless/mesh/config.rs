use core::time::Duration;

/// The network layer of every station.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingConfig {
    /// Whether a search for a route asks the neighbours first, and how long their answer may take before everybody is
    /// asked; `None`: everybody at once. ns-2: 30 ms.
    pub neighbours_first: Option<Duration>,
    /// The time after the first request before a search is repeated is four times this; each further one takes four
    /// times as long, until a reply comes. 0.5 s.
    pub request_period: Duration,
    /// But no longer than this: 10 s (RFC 4728 §9, MaxRequestPeriod).
    pub most_request_period: Duration,
    /// Whether stations that know a route answer requests for others (RFC 4728 §3.3.2).
    pub reply_from_cache: bool,
    /// Whether stations learn routes and failed links from packets for others (RFC 4728 §3.3.1).
    pub overhear: bool,
    /// Whether a station that overhears a packet that would come to it later tells its source of the shorter route
    /// (RFC 4728 §3.4.3), at most once a second for each route.
    pub shorten: bool,
    /// Whether a station gives packets of others that it cannot forward a route of its own (RFC 4728 §3.4.1).
    pub salvage: bool,
    /// Packets that wait for a route at a station: 64 (RFC 4728 §9).
    pub send_buffer: usize,
    /// How long: 30 s (RFC 4728 §9).
    pub send_buffer_timeout: Duration,
    /// How often those that wait are looked at: every 30 to 60 ms, as ns-2.
    pub send_buffer_period: Duration,
    /// When a route is found packets that wait leave at this distance, so that ARP can follow: 30 ms, as ns-2.
    pub release_gap: Duration,
    /// Requests, and replies of destinations, are sent after a time uniform from 0 to this: 10 ms (RFC 4728 §9,
    /// BroadcastJitter).
    pub jitter: Duration,
    /// Whether MAC addresses have to be found first.
    pub arp: bool,
    /// Time of a packet between network layer and MAC, each way: 25 µs, as ns-2.
    pub stack_delay: Duration,
}

impl RoutingConfig {
    /// DSR as ns-2 2.35 has it, but for flow state: every packet carries its whole route.
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
        }
    }
}

impl Default for RoutingConfig {
    fn default() -> Self {
        RoutingConfig::dsr()
    }
}
