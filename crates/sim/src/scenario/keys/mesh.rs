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
    optional("rate", Kind::Rate, "2mbit", "of data frames"),
    optional("basic-rate", Kind::Rate, "1mbit", "of RTS, CTS, ACK and broadcasts"),
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
        "dynamic source routing, split multipath routing, or M-TCP's",
    ),
    optional(
        "routes",
        Kind::Word(&["shortest", "copies", "scatter", "backup"]),
        "as routing",
        "what a source does with two routes: nothing, a copy of each packet on either, packets by turns, or one \
         until it fails",
    ),
    optional("jitter", Kind::Time, "10ms", "copies leave later by so much at most, uniform"),
    optional(
        "forwarding",
        Kind::Word(&["first", "fewer-hops", "other-link"]),
        "as routing",
        "which copies of a route request stations send on",
    ),
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
];
