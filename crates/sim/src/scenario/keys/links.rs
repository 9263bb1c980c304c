//! The keys of links and paths.

use crate::delay::JitterLaw;
use crate::scenario::spec::{KeySpec, Kind, needed, optional};

const RATE: &str = "10mbit; 12mbit/3mbit@10s for changes; trace:FILE; 1kbit to 1000gbit";
const FLUCTUATION: &str = "1s/20%-100%/10%: each second a new share of the rate, uniform, in tenths; basic/5 or rts-cts/5: as \
     one of 5 stations on an 802.11 channel";
const DELAY: &str = "20ms, one way; 40ms/80ms@10s for changes; trace:FILE; 0ms to 60s";
const LOSS: &str = "5%; 5%/20%@10s for changes; markov:5%/35%@250ms; trimodal:25%/75%@250ms/2%@1s; \
                    ge:1%/20%, ge:1%/20%/0%/50%; pattern:0001";
const BUFFER: &str = "64KiB or 49p (packets)";
const QUEUE: &str = "drop-tail, red, red-ecn, codel or codel-ecn";
const BLACKOUT: &str = "10s-15s, several joined by +";
const DELAY_STEPS: &str =
    "15s/10ms-60ms: every 15s another extra delay up to 60ms, at least 10ms from the last";
const CLUMPS: &str = "2ms-8ms, or 5ms: the time between two releases; 1us to 10s";
const POLICER: &str = "20mbit/64KiB: the rate and the burst of a token bucket";
const JITTER: &str = "2ms; 0ms to 60s";
const JITTER_LAWS: &[&str] = &JitterLaw::NAMES;
const JITTER_CORRELATION: &str = "100ms; 0ms to 1 day";
const MTU: &str = "1400B; 1500B/1400B@10s for changes; 68B to 1GiB";

/// Keys that describe one direction of a link. Used in [`LINK`], [`PATH`] and [`REVERSE`].
macro_rules! link_parts {
    ($rate:expr, $delay:expr, $($more:expr),* $(,)?) => {
        &[
            $($more,)*
            KeySpec { key: "rate", kind: Kind::Part(RATE, RATE_TABLE), default: $rate, what: "capacity over time" },
            optional("fluctuation", Kind::Form(FLUCTUATION), "none", "a rate that moves around the nominal one"),
            KeySpec { key: "delay", kind: Kind::Part(DELAY, DELAY_TABLE), default: $delay, what: "propagation" },
            optional("delay-steps", Kind::Form(DELAY_STEPS), "none", "an extra delay that jumps at regular times"),
            optional("jitter", Kind::Form(JITTER), "0ms", "how far the delay varies: standard deviation, or extra delay uniform from zero to this"),
            optional("jitter-law", Kind::Word(JITTER_LAWS), "uniform", "how delays are distributed around the link's delay, their mean; uniform: above it"),
            optional("jitter-correlation", Kind::Form(JITTER_CORRELATION), "0ms", "time in which the correlation of packets falls to 1/e"),
            optional("clumps", Kind::Form(CLUMPS), "none", "packets wait at the end and are released together: aggregation, compressed acknowledgements"),
            optional("reorder", Kind::Flag, "false", "whether packets may overtake each other by jitter"),
            optional("loss", Kind::Part(LOSS, LOSS_TABLE), "0%", "random loss after serialisation"),
            optional("policer", Kind::Form(POLICER), "none", "packets beyond this rate and burst are dropped before the buffer"),
            optional("buffer", Kind::Form(BUFFER), "one bandwidth-delay product, 10 packets at least", "how much may wait"),
            optional("queue", Kind::Part(QUEUE, QUEUE_TABLE), "drop-tail", "which packets are accepted, marked or dropped"),
            optional("blackout", Kind::Form(BLACKOUT), "none", "when the link is dark; packets inside it are dropped"),
            optional("mtu", Kind::Form(MTU), "none", "the longest packet on the wire; longer ones are dropped"),
            optional("faults", Kind::Table(FAULTS), "none", "faults of the link; damaged datagrams of core profiles arrive, other damaged packets are dropped"),
        ]
    };
}

/// The keys of `[[link]]`.
pub const LINK: &[KeySpec] = link_parts!(
    None,
    None,
    needed("name", Kind::Name, "its name in reports"),
    optional(
        "count",
        Kind::Count(1, 10_000),
        "1",
        "how many of them; {i} in texts is the number, from 1"
    ),
    needed("from", Kind::Name, "node where it begins"),
    needed("to", Kind::Name, "node where it ends"),
    optional("duplex", Kind::Flag, "true", "whether there is an opposite direction"),
    optional(
        "reverse",
        Kind::Table(REVERSE),
        "like this direction, drop-tail, without loss",
        "what differs on the way back"
    ),
);

/// The keys of `[[path]]`.
pub const PATH: &[KeySpec] = link_parts!(
    Some("from via"),
    Some("from via"),
    needed("name", Kind::Name, "its name for flows and reports; with a count, p becomes p1, p2, …"),
    optional(
        "count",
        Kind::Count(0, 255),
        "1",
        "how many of them; {i} in texts is the number, from 1"
    ),
    optional(
        "via",
        Kind::Names("links in the order of the way there"),
        "a link of its own",
        "an explicit route"
    ),
    optional(
        "back",
        Kind::Names("links in the order of the way back"),
        "the reverse of via",
        "an explicit route back"
    ),
    optional("from", Kind::Name, "sender", "node where its own link begins"),
    optional("to", Kind::Name, "receiver", "node where its own link ends"),
    optional(
        "congestion",
        Kind::Text,
        "as the flow",
        "congestion control of flows on this path, by name as in policies"
    ),
    optional(
        "reverse",
        Kind::Table(REVERSE),
        "like this direction, drop-tail, without loss",
        "what differs on the way back"
    ),
);

/// The keys of `reverse = { … }`.
pub const REVERSE: &[KeySpec] = link_parts!(Some("as forward"), Some("as forward"),);

/// The keys of `rate = { … }`.
pub const RATE_TABLE: &[KeySpec] = &[needed(
    "trace",
    Kind::Text,
    "file of delivery opportunities, ms per line (Mahimahi); relative to the scenario",
)];

/// The keys of `delay = { … }`.
pub const DELAY_TABLE: &[KeySpec] = &[needed(
    "trace",
    Kind::Text,
    "file of delays, a time and a delay in ms per line; relative to the scenario",
)];

/// The keys of `faults = { … }`.
pub const FAULTS: &[KeySpec] = &[
    optional("flip", Kind::Share, "0%", "one to eight bits are flipped"),
    optional("truncate", Kind::Share, "0%", "the packet is cut off at a random place"),
    optional("duplicate", Kind::Share, "0%", "the packet arrives twice"),
    optional("replay", Kind::Share, "0%", "one of the last 64 packets arrives again"),
    optional(
        "inject",
        Kind::Share,
        "0%",
        "a packet of random bytes arrives in addition, where packets carry bytes",
    ),
    optional("hold", Kind::Share, "0%", "the packet arrives right after the next one"),
    optional(
        "thin-acks",
        Kind::Count(1, 1_000),
        "1",
        "of TCP's pure acknowledgements that arrive at one instant, as with clumps, one in this many is kept, and the last",
    ),
];

/// The keys of `loss = { … }`.
pub const LOSS_TABLE: &[KeySpec] = &[
    optional(
        "states",
        Kind::List("losses such as 5%, one for each state"),
        "none",
        "states of a Markov chain in continuous time",
    ),
    optional(
        "dwell",
        Kind::List("durations such as 250ms: one, or one for each state"),
        "none",
        "mean time in a state, exponential",
    ),
    optional(
        "jumps",
        Kind::List("lists of chances, a row for each state, rows summing to 1"),
        "every other state alike",
        "which state follows which",
    ),
    optional("trace", Kind::Text, "none", "file of losses; relative to the scenario"),
    optional(
        "form",
        Kind::Word(&["outcomes", "indices", "times"]),
        "outcomes",
        "what the file holds: 0 or 1 for each packet, or per line the number or the time of a loss",
    ),
    optional("repeat", Kind::Flag, "true", "whether outcomes start over at the end of the file"),
];

/// The keys of `queue = { … }`.
pub const QUEUE_TABLE: &[KeySpec] = &[
    needed("kind", Kind::Word(&["drop-tail", "red", "codel"]), "the discipline"),
    optional("ecn", Kind::Flag, "false", "whether ECN-capable packets are marked, not dropped"),
    optional("min", Kind::Real(0.0, 1e6), "buffer / 6", "RED: lower threshold, packets"),
    optional("max", Kind::Real(0.0, 1e6), "buffer / 2", "RED: upper threshold, packets"),
    optional("weight", Kind::Real(0.0, 1.0), "0.002", "RED: weight of an arrival in the average"),
    optional("max-probability", Kind::Share, "10%", "RED: marking at the upper threshold"),
    optional("gentle", Kind::Flag, "true", "RED: rises to 100% at twice the upper threshold"),
    optional("target", Kind::Time, "5ms", "CoDel: acceptable standing delay"),
    optional("interval", Kind::Time, "100ms", "CoDel: how long it may be exceeded"),
];
