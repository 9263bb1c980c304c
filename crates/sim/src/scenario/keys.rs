//! The descriptions of all keys of a scenario file.

mod claims;
mod links;
mod mesh;

pub use claims::*;
pub use links::*;
pub use mesh::*;

use anabranch_policy::Axis;

use super::spec::{KeySpec, Kind, needed, optional};

const INFINITE: f64 = f64::INFINITY;
/// The values of keys for traffic classes.
const CLASS: Kind = Kind::Word(&["interactive", "live", "bulk"]);

/// The top-level keys of a file.
pub const SCENARIO: &[KeySpec] = &[
    needed("name", Kind::Name, "its name in results"),
    optional("title", Kind::Text, "the name", "one line, used as the figures' title"),
    optional("description", Kind::Text, "none", "what is shown and why; any length"),
    optional("base", Kind::Text, "none", "scenario beside this one that it starts from"),
    optional("set", Kind::Settings, "none", "keys of the base that are changed, with their values"),
    optional("quick", Kind::Settings, "none", "keys that --quick changes, with their values"),
    optional("item", Kind::Text, "none", "id of the published result that claims are about"),
    optional("result", Kind::Tables(RESULT), "none", "what those results are, in words"),
    needed("duration", Kind::Time, "virtual time of a run, above zero"),
    optional("warm-up", Kind::Time, "0s", "time from the start that measures nothing"),
    optional(
        "stop",
        Kind::Word(&["time", "done"]),
        "time",
        "when a run ends: at its duration, or as soon as every finite transfer is complete",
    ),
    optional("seeds", Kind::Seeds, "1", "how many seeds, from 1 on, or which ones"),
    optional("vars", Kind::Free("numbers and texts"), "none", "variables for {NAME}"),
    optional("link", Kind::Tables(LINK), "none", "links between nodes"),
    optional("path", Kind::Tables(PATH), "none", "routes that flows use side by side"),
    optional("mesh", Kind::Table(MESH), "none", "stations with radios instead of links and paths"),
    optional("correlation", Kind::Tables(CORRELATION), "none", "links with correlated losses"),
    optional("flow", Kind::Tables(FLOW), "none", "transport connections"),
    optional("load", Kind::Tables(LOAD), "none", "datagrams without congestion control"),
    optional("event", Kind::Tables(EVENT), "none", "paths that come, go and move"),
    optional("probe", Kind::Tables(PROBE), "none", "figures over time, and samples"),
    optional("sweep", Kind::Tables(SWEEP), "none", "keys that take several values"),
    optional("variant", Kind::Tables(VARIANT), "none", "alternatives with names"),
    optional("variants", Kind::Names("variants"), "all", "which variants run"),
    optional("claim", Kind::Tables(CLAIM), "none", "what the results must show"),
    optional("expect", Kind::Tables(CLAIM), "none", "older name of claim"),
    optional("measure", Kind::Tables(MEASURE), "none", "what is reported without being judged"),
    optional(
        "figure",
        Kind::Tables(FIGURE),
        "none",
        "curves of the results, beside published ones",
    ),
];

/// The keys of `[[correlation]]`.
pub const CORRELATION: &[KeySpec] = &[
    needed(
        "links",
        Kind::Names("links, paths with links of their own"),
        "links with correlated losses, in order",
    ),
    needed("theta", Kind::Share, "correlation of neighbours; of the i-th and the j-th theta^|i-j|"),
    optional(
        "method",
        Kind::Word(&["chain", "park"]),
        "chain",
        "how it is made: chain passes draws from link to link, for any loss; park uses Park, Park and Shin's components, for constant losses",
    ),
    optional("slot", Kind::Time, "1ms", "how long a draw holds: about the time of one packet"),
    optional(
        "states",
        Kind::Time,
        "none",
        "chain: time for which a link takes its neighbour's states, with probability theta; without it links change state independently",
    ),
];

/// The keys of `[[flow]]`.
pub const FLOW: &[KeySpec] = &[
    needed("name", Kind::Name, "its name in reports"),
    optional("count", Kind::Count(0, 100_000), "1", "how many of them; {i} in texts is the number"),
    needed("profile", Kind::Text, "the protocol: anabranch, uncoded, tcp:sack, …"),
    optional("only", Kind::Names("variants"), "all", "the variants that have it"),
    optional("from", Kind::Name, "sender, or from paths", "node of the sender"),
    optional("to", Kind::Name, "receiver, or from paths", "node of the receiver"),
    optional("paths", Kind::Names("paths, groups of paths"), "all paths", "the paths it may use"),
    optional(
        "per-path",
        Kind::Flag,
        "false",
        "whether there is a flow for each path, on that path alone",
    ),
    optional(
        "resequencing-buffer",
        Kind::Size,
        "a stream for each path",
        "with per-path, of core profiles: one endless stream over the flows of all paths in chunks of 4 KiB, put into order in a buffer of this size",
    ),
    optional("start", Kind::Time, "0s", "when it begins"),
    optional(
        "start-jitter",
        Kind::Time,
        "0s",
        "random wait before each starts, uniform from zero to this",
    ),
    optional("traffic", Kind::Part(TRAFFIC_FORM, TRAFFIC), "bulk", "what the application sends"),
    optional(
        "messages",
        Kind::Table(MESSAGES),
        "none",
        "messages in addition, of core profiles: each is a datagram frame",
    ),
    optional("class", CLASS, "bulk", "how urgent the streams of core profiles are"),
    optional("stop", Kind::Time, "never", "when the application stops; what it wrote is delivered"),
    optional(
        "host",
        Kind::Name,
        "one of its own",
        "core flows of one host share an endpoint at either end, and use the same paths",
    ),
    optional(
        "policy",
        Kind::Table(POLICY),
        "as the profile",
        "choices on the axes of core profiles",
    ),
    optional("transport", Kind::Table(TRANSPORT), "defaults", "limits of core profiles"),
    optional("tcp", Kind::Table(TCP), "as the profile", "options of tcp profiles"),
];

const TRAFFIC_FORM: &str = "bulk, or size:1MB for one transfer of so much";

/// The keys of `traffic = { … }`.
pub const TRAFFIC: &[KeySpec] = &[
    needed(
        "kind",
        Kind::Word(&["bulk", "size", "poisson", "on-off", "messages", "none"]),
        "the pattern",
    ),
    optional(
        "size",
        Kind::Size,
        "none",
        "size, poisson: bytes of a transfer; messages: of each, 16B to 1000B",
    ),
    optional("repeat", Kind::Count(1, 1_000_000), "1", "size: transfers one after the other"),
    optional(
        "interval",
        Kind::Time,
        "none",
        "poisson: mean time between two starts; messages: time between two",
    ),
    optional("on", Kind::Time, "none", "on-off: mean time of sending, exponential"),
    optional("off", Kind::Time, "none", "on-off: mean time of silence, exponential"),
    optional("rate", Kind::Rate, "none", "on-off: bytes offered while sending"),
    optional("count", Kind::Count(1, 1_000_000), "1000000", "messages: how many, at most"),
    optional("class", CLASS, "interactive", "messages: how urgent they are, for core profiles"),
];

/// The keys of `messages = { … }`.
pub const MESSAGES: &[KeySpec] = &[
    needed("interval", Kind::Time, "time between two"),
    needed("size", Kind::Size, "bytes of each, 16B to 1000B"),
    optional("count", Kind::Count(1, 1_000_000), "1000000", "how many, at most"),
    optional("class", CLASS, "interactive", "how urgent they are"),
];

/// The keys of `[[event]]`.
pub const EVENT: &[KeySpec] = &[
    needed("at", Kind::Time, "when"),
    needed("path", Kind::Text, "a path of [[path]]; the event is about every flow that uses it"),
    needed(
        "what",
        Kind::Word(&[
            "down",
            "up",
            "backup",
            "regular",
            "move",
            "rebind",
            "strip-options",
            "pass-options",
        ]),
        "the sender's interface goes, comes back, is used only when no other is, or like the others again, gets another address; or a NAT forgets the sender; or a middlebox begins or ceases to remove the options of multipath TCP",
    ),
    optional("count", Kind::Count(1, 10_000), "1", "how many of them; {i} in texts is the number"),
];

const fn choice(axis: Axis) -> KeySpec {
    optional(axis.name(), Kind::Text, "as the profile", axis.summary())
}

/// The keys of `policy = { … }`: the policy axes of core profiles.
pub const POLICY: &[KeySpec] = &[
    choice(Axis::Congestion),
    choice(Axis::LossDetector),
    choice(Axis::LossEstimator),
    choice(Axis::Scheduler),
    choice(Axis::Code),
    choice(Axis::Redundancy),
    choice(Axis::Recovery),
    choice(Axis::Ack),
];

/// The keys of `transport = { … }`: the limits of core profiles.
pub const TRANSPORT: &[KeySpec] = &[
    optional("packet", Kind::Count(300, 9000), "1232", "most bytes of UDP payload in a packet"),
    optional(
        "mtu-limit",
        Kind::Count(68, 65_535),
        "none: no discovery",
        "longest IP packet that path MTU discovery tries",
    ),
    optional(
        "receive-buffer",
        Kind::Size,
        "defaults",
        "unread bytes that the receiver grants; they do not grow",
    ),
    optional("send-buffer", Kind::Size, "defaults", "bytes written ahead of sending"),
    optional(
        "receive-symbols",
        Kind::Count(16, 1 << 20),
        "16384",
        "decoder credit, symbols; it does not grow",
    ),
    optional("max-ack-delay", Kind::Time, "25ms", "longest delay of an acknowledgement"),
    optional("idle-timeout", Kind::Time, "30s", "silence that ends the connection; 0s: never"),
    optional(
        "overhead",
        Kind::Real(-1000.0, 1000.0),
        "28",
        "header bytes that count for a packet on the wire beyond its UDP payload",
    ),
    optional("ecn", Kind::Flag, "true", "whether packets are ECN-capable"),
    optional(
        "whole-blocks",
        Kind::Flag,
        "false",
        "whether the receiving application is given blocks as a whole, in order; else each symbol as it arrives",
    ),
    optional(
        "key-limit",
        Kind::Count(1, 1_000_000_000),
        "as much as is safe",
        "packets that one key seals before it is changed",
    ),
];

/// The keys of `tcp = { … }`: the options of TCP profiles.
pub const TCP: &[KeySpec] = &[
    optional("congestion", Kind::Text, PROFILE, "congestion control, by name as in policies"),
    optional("mss", Kind::Count(1, 65_535), PROFILE, "payload of a segment, bytes"),
    optional("header", Kind::Count(0, 1_000), PROFILE, "IP and TCP headers on the wire, bytes"),
    optional("timestamp-bytes", Kind::Count(0, 100), PROFILE, "what the timestamps option adds"),
    optional(
        "sack-bytes",
        Kind::Count(0, 100),
        PROFILE,
        "what each SACK block adds; 0: nothing at all",
    ),
    optional("min-rto", Kind::Time, PROFILE, "least retransmission timeout"),
    optional("max-rto", Kind::Time, PROFILE, "largest retransmission timeout"),
    optional("initial-rto", Kind::Time, PROFILE, "timeout before the first measurement"),
    optional(
        "granularity",
        Kind::Time,
        PROFILE,
        "resolution of the clock that measures round trips",
    ),
    optional(
        "give-up-after",
        Kind::Count(1, 1_000),
        "never",
        "timeouts in a row that end the connection",
    ),
    optional("timestamps", Kind::Flag, PROFILE, "RFC 7323 timestamps; without, Karn's rule"),
    optional("sack", Kind::Flag, PROFILE, "selective acknowledgements; without, NewReno"),
    optional(
        "dup-threshold",
        Kind::Count(1, 100),
        PROFILE,
        "duplicate acknowledgements that make a loss",
    ),
    optional("limited-transmit", Kind::Flag, PROFILE, "RFC 3042"),
    optional("ecn", Kind::Flag, PROFILE, "explicit congestion notification, RFC 3168"),
    optional("prr", Kind::Flag, PROFILE, "proportional rate reduction, RFC 9937"),
    optional("rack", Kind::Flag, PROFILE, "RACK-TLP, RFC 8985"),
    optional(
        "undo",
        Kind::Flag,
        PROFILE,
        "window cuts are undone after spurious retransmissions, RFC 4015",
    ),
    optional(
        "loss-notices",
        Kind::Flag,
        "false",
        "the sender is told of a random loss by the acknowledgement that shows the gap, or after a round trip; congestion control `eln` heeds it",
    ),
    optional(
        "send-jitter",
        Kind::Time,
        "0s",
        "random delay before a host sends, uniform from zero to this: keeps equal flows from running in step",
    ),
    optional(
        "scheduler",
        Kind::Text,
        PROFILE,
        "several paths: the scheduler, by name as in policies",
    ),
    optional(
        "recovery",
        Kind::Text,
        PROFILE,
        "several paths: the recovery policy, by name as in policies",
    ),
    optional(
        "join",
        Kind::Word(&["after-first", "all-at-once", "before-data"]),
        PROFILE,
        "several paths: whether the other subflows open after the first is established, all at once, or all before any data",
    ),
    optional("coupled", Kind::Flag, PROFILE, "several paths: controllers read their siblings"),
    optional(
        "couple-shared",
        Kind::Flag,
        "false",
        "several paths: controllers read those siblings that are found to share a bottleneck with them; what each subflow \
         sends swings by 8 % at times to find out",
    ),
    optional(
        "backup",
        Kind::Names("paths of the flow"),
        "none",
        "several paths: those that are used only when no other works, RFC 8684 §3.3.8",
    ),
    optional(
        "strip-options",
        Kind::Names("paths of the flow"),
        "none",
        "several paths: where a middlebox removes MPTCP's options. The first path: the connection falls back to TCP; \
         another: it does not join",
    ),
    optional(
        "buffers-per-subflow",
        Kind::Flag,
        "false",
        "several paths: both buffers have their size for each subflow that has opened, n·B in pTCP; they do not shrink when \
         one leaves",
    ),
    optional(
        "autotune",
        Kind::Flag,
        PROFILE,
        "several paths: both buffers grow with the transfer up to their sizes, as Linux tunes them",
    ),
    optional(
        "initial-receive-buffer",
        Kind::Size,
        "64KiB",
        "with autotune: what the receive buffer begins with",
    ),
    optional(
        "close",
        Kind::Flag,
        "false",
        "several paths: once all data has been acknowledged, every subflow closes with a FIN and its acknowledgement, and a \
         transfer ends with the last; else a connection is forgotten as it is",
    ),
    optional(
        "most-subflows",
        Kind::Count(1, 16),
        "no limit",
        "several paths: how many subflows the receiving side agrees to; the sender opens no more",
    ),
    optional(
        "resequencing-buffer",
        Kind::Size,
        "0B",
        "striping applications: the receiver's buffer for packets beyond the next in sequence",
    ),
    optional(
        "path-receive-buffer",
        Kind::Free("sizes, by path"),
        "receive-buffer",
        "striping applications: bytes that the receiver's socket on a path can hold",
    ),
    optional(
        "path-send-buffer",
        Kind::Free("sizes, by path"),
        "send-buffer",
        "striping applications: bytes written to the socket on a path and not acknowledged",
    ),
    optional(
        "low-water",
        Kind::Size,
        "one segment",
        "striping applications: free bytes of a send buffer at which a socket that was full is written to again",
    ),
    optional(
        "estimator",
        Kind::Word(&["link", "link-blackouts", "window", "acknowledged"]),
        "link",
        "tcp:smart: how it estimates a path's rate: by that of its slowest link, with or without blackouts; its congestion \
         window over its round-trip time; or what was acknowledged since the last estimate",
    ),
    optional(
        "estimate-interval",
        Kind::Time,
        "10s",
        "tcp:smart: estimates are made at multiples of this time",
    ),
    optional(
        "estimate-within-buffers",
        Kind::Flag,
        "false",
        "tcp:smart: whether a rate counts only as far as a socket's smaller buffer over the least round-trip time",
    ),
    optional(
        "initial-persist",
        Kind::Time,
        "profile, or retransmission timeout",
        "time until a shut window is first probed, then doubled from probe to probe",
    ),
    optional("max-persist", Kind::Time, "profile, or max-rto", "longest time between two probes"),
    optional(
        "window-updates",
        Kind::Word(&["each", "opening"]),
        PROFILE,
        "when a receiver sends window updates: for each two segments or half a buffer read, or once when a shut window opens",
    ),
    optional("handshake", Kind::Flag, PROFILE, "a SYN exchange before the first data"),
    optional(
        "rate-samples",
        Kind::Flag,
        PROFILE,
        "measures delivery rates also for controllers that do not need them",
    ),
    optional("delayed-ack", Kind::Count(1, 100), PROFILE, "segments per acknowledgement"),
    optional("ack-timer", Kind::Time, PROFILE, "longest delay of an acknowledgement"),
    optional(
        "receive-buffer",
        Kind::Size,
        PROFILE,
        "bytes that the receiver can hold, over all paths, or in each socket of a striping application",
    ),
    optional(
        "send-buffer",
        Kind::Size,
        PROFILE,
        "bytes written and not acknowledged, over all paths, or in each socket of a striping application",
    ),
];

const PROFILE: &str = "as the profile";

/// The keys of `[[load]]`.
pub const LOAD: &[KeySpec] = &[
    needed("name", Kind::Name, "its name in reports"),
    optional("count", Kind::Count(0, 10_000), "1", "how many of them"),
    optional("only", Kind::Names("variants"), "all", "the variants that have it"),
    optional("from", Kind::Name, "sender, or from paths", "node of the source"),
    optional("to", Kind::Name, "receiver, or from paths", "node of the sink"),
    optional("paths", Kind::Names("paths, groups of paths"), "none", "one load on each of them"),
    needed("rate", Kind::Rate, "sent while on, all headers included"),
    optional("packet", Kind::Count(28, 65_535), "1000", "bytes of a packet on the wire"),
    optional("on", Kind::Time, "always", "mean time of sending, exponential"),
    optional("off", Kind::Time, "never", "mean time of silence, exponential"),
    optional("start", Kind::Time, "0s", "when it begins"),
    optional("stop", Kind::Time, "the end", "when it ends"),
];
