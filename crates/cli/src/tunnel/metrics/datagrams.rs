//! Metrics of UDP datagrams.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anabranch_forward::{DatagramCounters, DatagramCounts};

use super::introduce;

/// Name, kind and help of a figure, and its values, each with a further label where it has several.
type Figure =
    (&'static str, &'static str, &'static str, fn(&DatagramCounts) -> Vec<(&'static str, u64)>);

const FIGURES: &[Figure] = &[
    ("udp_flows", "gauge", "Addresses whose UDP datagrams are carried.", |of| vec![("", of.flows)]),
    ("udp_datagrams_total", "counter", "UDP datagrams carried.", |of| {
        vec![(SEND, of.sent), (RECEIVE, of.received)]
    }),
    ("udp_bytes_total", "counter", "Bytes of UDP datagrams carried.", |of| {
        vec![(SEND, of.sent_bytes), (RECEIVE, of.received_bytes)]
    }),
    ("udp_dropped_total", "counter", "UDP datagrams dropped at this side.", |of| {
        vec![
            (",reason=\"no-room\"", of.no_room),
            (",reason=\"not-connected\"", of.not_connected),
            (",reason=\"no-flow\"", of.no_flow),
            (",reason=\"failed\"", of.failed),
            (",reason=\"invalid\"", of.invalid),
        ]
    }),
];
const SEND: &str = ",direction=\"send\"";
const RECEIVE: &str = ",direction=\"receive\"";

/// Writes the figures of all forwards or peers, by their label.
pub(super) fn exposition(out: &mut String, all: &BTreeMap<String, DatagramCounters>) {
    for (name, kind, help, values) in FIGURES {
        introduce(out, (name, kind, help));
        for (label, counters) in all {
            for (further, value) in values(&counters.counts()) {
                let _ = writeln!(out, "anabranch_{name}{{{label}{further}}} {value}");
            }
        }
    }
}
