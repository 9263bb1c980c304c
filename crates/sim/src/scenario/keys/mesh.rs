//! The keys of radio networks.

use super::INFINITE;
use crate::scenario::spec::{KeySpec, Kind, optional};

/// `[mesh]`.
pub const MESH: &[KeySpec] = &[
    optional("stations", Kind::Count(2, 1000), "50", "how many there are, numbered from 0"),
    optional(
        "ring",
        Kind::Real(1.0, 1e6),
        "they move",
        "radius in metres of a circle on which they stand, evenly, one after the other",
    ),
    optional("file", Kind::Text, "none", "movement file of ns-2, which tells the stations too"),
    optional("width", Kind::Real(1e-3, 1e6), "3000", "random waypoint: metres from west to east"),
    optional("height", Kind::Real(1e-3, 1e6), "500", "random waypoint: metres from south to north"),
    optional("least-speed", Kind::Real(1e-3, 1e6), "1", "random waypoint: metres per second"),
    optional("most-speed", Kind::Real(1e-3, 1e6), "10", "random waypoint: metres per second"),
    optional("pause", Kind::Time, "0s", "random waypoint: the wait at every place"),
    optional(
        "moving-for",
        Kind::Time,
        "0s",
        "random waypoint: for how long stations have moved when the run begins",
    ),
    optional(
        "movement",
        Kind::Real(0.0, INFINITE),
        "the run's seed",
        "random waypoint: the seed of the movements, a whole number",
    ),
    optional(
        "run",
        Kind::Count(1, 1_000_000),
        "1",
        "which of several runs with the same movements and the same seed: each has other draws of everything else",
    ),
    optional("rate", Kind::Rate, "2mbit", "of data frames"),
    optional("basic-rate", Kind::Rate, "1mbit", "of RTS, CTS, ACK and broadcasts"),
    optional(
        "rts",
        Kind::Form("never, always, or a size such as 500B"),
        "never",
        "data frames of more bytes than this, header included, are preceded by RTS and CTS",
    ),
    optional(
        "mac",
        Kind::Word(&["standard", "ns2"]),
        "standard",
        "802.11, or the same with the four rules in which ns-2 departs from it",
    ),
    optional("slot", Kind::Time, "20us", "a slot of back-off, at most 1ms"),
    optional("sifs", Kind::Time, "10us", "the gap before an answer, at most 1ms"),
    optional("preamble", Kind::Time, "192us", "what precedes every frame, at most 10ms"),
    optional("least-window", Kind::Count(1, 1 << 20), "31", "contention window of a first attempt"),
    optional("most-window", Kind::Count(1, 1 << 20), "1023", "the largest contention window"),
    optional(
        "short-retries",
        Kind::Count(1, 255),
        "7",
        "attempts at an RTS, or at a frame without one, before the link is said to have failed",
    ),
    optional("long-retries", Kind::Count(1, 255), "4", "attempts at a frame behind RTS and CTS"),
    optional(
        "queue",
        Kind::Count(1, 100_000),
        "50",
        "packets that wait at a station, of routing, of acknowledgements and of data each",
    ),
    optional("reach", Kind::Real(1.0, 1e5), "250", "metres over which a frame can be decoded"),
    optional("sense-reach", Kind::Real(1.0, 1e5), "550", "metres over which it is sensed"),
    optional(
        "capture",
        Kind::Real(1.0, 1e9),
        "10",
        "how many times stronger a frame must be than a later one that it is to survive",
    ),
    optional(
        "loss",
        Kind::Share,
        "0%",
        "of messages, at each hop, once the MAC has acknowledged them: nothing sends them again",
    ),
    optional("frame-loss", Kind::Share, "0%", "of frames: the MAC sends them again"),
    optional(
        "spare-routing",
        Kind::Flag,
        "false",
        "whether loss spares packets of routing and ARP",
    ),
    optional(
        "routing",
        Kind::Word(&["dsr", "smr", "mtcp"]),
        "dsr",
        "dynamic source routing, split multipath routing, or M-TCP's; every key below changes one part of it",
    ),
    optional(
        "routes",
        Kind::Word(&["shortest", "copies", "copies-if-lossy", "scatter", "backup"]),
        AS_ROUTING,
        "what a source does with two routes: nothing, a copy of each packet on either, the same while it measures loss, \
         packets by turns, or one until it fails",
    ),
    optional("jitter", Kind::Time, "10ms", "copies leave later by so much at most, uniform"),
    optional(
        "lossy-above",
        Kind::Share,
        "10%",
        "copies-if-lossy: the share of packets without an acknowledgement from which on copies are sent, until it is below \
         half of this",
    ),
    optional(
        "separation",
        Kind::Word(&["stations", "two-hops"]),
        AS_ROUTING,
        "how far apart two routes are that are used together: no common station, or none within reach of the other's either",
    ),
    optional(
        "renewal",
        Kind::Word(&["no-route", "one-route"]),
        "no-route",
        "when a source of several routes searches again: with none left, or with one, every 2s at most",
    ),
    optional(
        "forwarding",
        Kind::Word(&["first", "fewer-hops", "other-link"]),
        AS_ROUTING,
        "which copies of a route request stations send on",
    ),
    optional(
        "answers",
        Kind::Word(&["every", "disjoint", "maximally-disjoint"]),
        AS_ROUTING,
        "which copies of a request its destination answers: every one; the first and those that share no station with it; \
         the first and, after answer-wait, the one that shares least with it",
    ),
    optional("answer-wait", Kind::Time, "100ms", "maximally-disjoint: the wait for the second"),
    optional("neighbour-lists", Kind::Flag, AS_ROUTING, "whether replies tell who hears whom"),
    optional(
        "acknowledgements",
        Kind::Word(&["shortest", "arrival", "like-data"]),
        "shortest",
        "the route of a receiver's packets: the shortest it knows, the way back of the last arrival, or as data",
    ),
    optional(
        "drop-copies",
        Kind::Flag,
        "false",
        "whether destinations tell copies from retransmissions, and drop them",
    ),
    optional(
        "neighbours-first",
        Kind::Time,
        AS_ROUTING,
        "how long a search asks the neighbours alone; 0s: everybody at once",
    ),
    optional(
        "reply-from-cache",
        Kind::Flag,
        AS_ROUTING,
        "whether stations on the way answer requests",
    ),
    optional("shorten", Kind::Flag, AS_ROUTING, "whether stations tell sources of shorter routes"),
    optional("overhear", Kind::Flag, "true", "whether stations learn from packets for others"),
    optional(
        "salvage",
        Kind::Flag,
        "true",
        "whether packets that meet a failed link get another route",
    ),
    optional("arp", Kind::Flag, "true", "whether MAC addresses have to be found first"),
    optional(
        "send-buffer",
        Kind::Count(1, 10_000),
        "64",
        "packets that wait for a route at a station",
    ),
    optional("send-buffer-timeout", Kind::Time, "30s", "for how long they do"),
    optional(
        "release-gap",
        Kind::Time,
        "30ms",
        "the time between two of them once there is a route",
    ),
    optional(
        "request-period",
        Kind::Time,
        "500ms",
        "a search without a reply is repeated after four times this, then after four times as long each time",
    ),
    optional("most-request-period", Kind::Time, "10s", "the longest of those waits"),
    optional(
        "request-jitter",
        Kind::Time,
        "10ms",
        "requests, and replies of destinations, leave later by so much at most, uniform",
    ),
];

const AS_ROUTING: &str = "as routing";
