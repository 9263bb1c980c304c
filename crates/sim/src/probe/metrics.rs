//! The table of all metrics (figures) that a run can report.

/// A metric: its name, its subject, the forms in which it exists, and its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name, with the unit at its end.
    pub name: &'static str,
    /// The kind of subject that the metric describes.
    pub about: About,
    /// Whether runs report the metric as a single figure.
    pub scalar: bool,
    /// Whether the single figure is costly, so that it is measured only if a probe or an
    /// expectation asks for it.
    pub on_request: bool,
    /// Whether a probe can follow the metric over time.
    pub series: bool,
    /// Whether a probe can record every single value.
    pub samples: bool,
    /// The definition. Everything is counted from the end of the warm-up on.
    pub what: &'static str,
}

/// The kinds of subjects that metrics describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Flows, groups of flows and `all` flows together. For several flows, the figure is the sum,
    /// or the mean if its definition says so.
    Flow,
    /// Flows and each of their paths (`FLOW/PATH`), groups of flows and `all` flows together.
    Path,
    /// Links, as `link.NAME`.
    Link,
    /// All stations of a radio network together, as `mesh`.
    Mesh,
}

const fn metric(
    name: &'static str,
    about: About,
    forms: &'static str,
    what: &'static str,
) -> Metric {
    let forms = forms.as_bytes();
    let [mut scalar, mut on_request, mut series, mut samples] = [false; 4];
    let mut at = 0;
    while at < forms.len() {
        match forms[at] {
            b'1' => scalar = true,
            b'?' => on_request = true,
            b't' => series = true,
            _ => samples = true,
        }
        at += 1;
    }
    Metric { name, about, scalar, on_request, series, samples, what }
}

/// All metrics, in the order of the documentation. The third argument lists the forms: `1` for a
/// single figure, `?` for one that is measured only on request, `t` for values over time, `n` for
/// samples.
pub const METRICS: &[Metric] = &[
    metric(
        "goodput_mbps",
        About::Flow,
        "1t",
        "in-order, unique application bytes that the receiver took, per time; headers excluded",
    ),
    metric(
        "throughput_mbps",
        About::Path,
        "1t",
        "bytes on the wire that arrived at the receiver, per time: headers, repairs and duplicates \
         included; for a load, what reached its sink",
    ),
    metric(
        "delivered_bytes",
        About::Flow,
        "1t",
        "in-order, unique application bytes taken; over time, those since the start",
    ),
    metric(
        "elapsed_s",
        About::Flow,
        "1",
        "time over which goodput and throughput are taken: from the end of the warm-up, or from the start \
         if that is later, to the end of the run, or to the last byte if the flow is finite and complete; \
         of a group, from the first start to the last end",
    ),
    metric(
        "jain",
        About::Flow,
        "1",
        "of a group, Jain's index (sum x)^2 / (n sum x^2) of its flows' goodputs; of all, of every \
         flow's",
    ),
    metric(
        "ofo_count",
        About::Flow,
        "1",
        "data arrivals beyond the next expected byte, each once, duplicates excluded",
    ),
    metric("timeouts", About::Flow, "1t", "retransmission or probe timers that fired"),
    metric(
        "recoveries",
        About::Flow,
        "1",
        "fast recoveries that duplicate acknowledgements started; of TCP flows",
    ),
    metric("rto_rate", About::Flow, "1", "timeouts per data packet sent, retransmissions included"),
    metric(
        "data_packets",
        About::Flow,
        "1",
        "data packets sent, retransmissions and repairs included",
    ),
    metric(
        "retransmissions",
        About::Flow,
        "1t",
        "data packets sent again, on any path; of coded flows, source symbols sent again",
    ),
    metric(
        "duplicate_bytes",
        About::Flow,
        "1",
        "bytes of data that the receiver had already; of coded flows, in source symbols",
    ),
    metric("redundancy", About::Flow, "1", "repair symbols sent per source symbol; of core flows"),
    metric(
        "ecn_responses",
        About::Flow,
        "1",
        "window reductions because of congestion marks; of TCP flows",
    ),
    metric("blocks", About::Flow, "1", "coding blocks opened; of core flows"),
    metric("wraps", About::Flow, "1", "coding blocks whose repairs ran out; of core flows"),
    metric(
        "repair_rounds",
        About::Flow,
        "1",
        "rounds of repairs for symbols that coding blocks lack; those within a round trip count as one; of core flows",
    ),
    metric(
        "loss_before_repair",
        About::Flow,
        "1",
        "share of the source symbols that lost every copy sent before the first of these losses was known; of core flows",
    ),
    metric(
        "live_blocks_mean",
        About::Flow,
        "1",
        "mean number of coding blocks not yet recovered when a new one opens; of core flows",
    ),
    metric(
        "packet_delay_mean_s",
        About::Flow,
        "1?",
        "mean time from the first transmission of a data packet to its delivery in order, decoding \
         included",
    ),
    metric("packet_delay_std_s", About::Flow, "1?", "standard deviation of the same"),
    metric("packet_delay_p50_s", About::Flow, "1?", "its median"),
    metric("packet_delay_p99_s", About::Flow, "1?", "its 99th percentile"),
    metric("packet_delay_s", About::Flow, "n", "each packet's delay, as above"),
    metric(
        "block_delay_mean_s",
        About::Flow,
        "1?",
        "mean time from the first transmission of a block to the arrival or decoding of its last missing part; \
         blocks are slices of the stream, for coded and uncoded flows alike, unless a probe wants coding blocks",
    ),
    metric("block_delay_std_s", About::Flow, "1?", "jitter: standard deviation of the same"),
    metric(
        "block_delay_step_s",
        About::Flow,
        "1?",
        "jitter, second form: mean absolute difference of the delays of neighbouring blocks",
    ),
    metric("block_delay_p99_s", About::Flow, "1?", "99th percentile of the blocks' delays"),
    metric("block_delay_max_s", About::Flow, "1?", "the longest delay of a block"),
    metric(
        "block_delay_s",
        About::Flow,
        "tn",
        "each block's delay, as above; over time, the longest of the blocks that have become known since the last point, and \
         no point if there are none",
    ),
    metric(
        "block_order_mean_s",
        About::Flow,
        "1?",
        "mean time from the first transmission of a block until it and all before it have arrived or been decoded",
    ),
    metric("block_order_std_s", About::Flow, "1?", "standard deviation of the same"),
    metric("block_order_max_s", About::Flow, "1?", "the longest of the same"),
    metric("block_order_s", About::Flow, "n", "each block's time, as above"),
    metric(
        "block_losses_mean",
        About::Flow,
        "1?",
        "mean number of a block's data packets that were lost, retransmissions included; of TCP flows and, in symbols, of coding blocks",
    ),
    metric("block_losses_0", About::Flow, "1?", "share of the blocks that lost no packet"),
    metric("block_losses_1", About::Flow, "1?", "share of the blocks that lost at most one packet"),
    metric(
        "block_losses_2",
        About::Flow,
        "1?",
        "share of the blocks that lost at most two packets",
    ),
    metric(
        "block_losses_3",
        About::Flow,
        "1?",
        "share of the blocks that lost at most three packets",
    ),
    metric("block_losses", About::Flow, "n", "each block's losses, as above"),
    metric("transfers", About::Flow, "1", "transfers completed"),
    metric(
        "fct_mean_s",
        About::Flow,
        "1",
        "mean time from a transfer's opening to its last byte's delivery; completed transfers only",
    ),
    metric("fct_std_s", About::Flow, "1", "standard deviation of the same"),
    metric("fct_s", About::Flow, "n", "each completed transfer's time, as above"),
    metric("messages", About::Flow, "1", "messages sent since the start of the run"),
    metric(
        "messages_missing",
        About::Flow,
        "1",
        "messages that had not arrived when the run ended",
    ),
    metric(
        "message_delay_mean_s",
        About::Flow,
        "1",
        "mean time from a message's sending to its delivery, of those that arrived",
    ),
    metric("message_delay_std_s", About::Flow, "1", "standard deviation of the same"),
    metric("message_delay_p50_s", About::Flow, "1", "their median"),
    metric("message_delay_p95_s", About::Flow, "1", "95th percentile of those that arrived"),
    metric("message_delay_p99_s", About::Flow, "1", "99th percentile of those that arrived"),
    metric("message_delay_s", About::Flow, "n", "each message's delay, as above"),
    metric(
        "longest_gap_s",
        About::Flow,
        "1",
        "longest time without a byte delivered; of a group, the largest",
    ),
    metric("failed", About::Flow, "1", "flows that ended by a protocol error or a timeout"),
    metric(
        "shut_window_s",
        About::Path,
        "1",
        "time in which data waited for the receiver's window to open, with nothing in flight; of TCP flows without shared buffers; summed over several",
    ),
    metric("window_probes", About::Path, "1", "probes of shut windows; of the same flows"),
    metric(
        "sequence_bytes",
        About::Path,
        "t",
        "first byte of the stream that has not been sent; of TCP, where each path has a stream; of a flow, added up over its \
         paths; of a group, the mean",
    ),
    metric(
        "acknowledged_bytes",
        About::Path,
        "t",
        "first byte of the stream that has not been acknowledged; the same",
    ),
    metric("cwnd_bytes", About::Path, "t", "congestion window; of a group, the mean of its flows"),
    metric("srtt_s", About::Path, "t", "smoothed round-trip time; of a group, the mean"),
    metric(
        "loss_estimate",
        About::Path,
        "t",
        "the sender's estimate of a path's loss, a share; of a group, the mean",
    ),
    metric(
        "utilisation",
        About::Link,
        "1",
        "bits serialised over what the rate, blackouts taken out, would have allowed",
    ),
    metric(
        "sent_mbps",
        About::Link,
        "t",
        "bytes offered to the link, per time; what it dropped counts too",
    ),
    metric("sent_packets", About::Link, "1", "packets offered to the link"),
    metric("delivered_packets", About::Link, "1", "packets that arrived at its far end"),
    metric("marks", About::Link, "1t", "packets marked as having met congestion"),
    metric(
        "drops_queue",
        About::Link,
        "1t",
        "packets dropped because the queue was full or by its discipline",
    ),
    metric("drops_blackout", About::Link, "1", "packets dropped because the link was dark"),
    metric(
        "drops_policed",
        About::Link,
        "1",
        "packets dropped because they came faster than the policer allows",
    ),
    metric("drops_mtu", About::Link, "1", "packets dropped because they were longer than the MTU"),
    metric("losses", About::Link, "1t", "packets lost at random after serialisation"),
    metric("loss_share", About::Link, "1", "losses per packet serialised"),
    metric(
        "queue_mean_packets",
        About::Link,
        "1?",
        "packets waiting, averaged over samples 10 ms apart",
    ),
    metric("queue_packets", About::Link, "t", "packets waiting, excluding the one in service"),
    metric("queue_bytes", About::Link, "t", "bytes waiting"),
    metric(
        "queue_delay_s",
        About::Link,
        "t",
        "time that the last packet taken from the queue had waited; of a drop-tail link of constant rate and delay, the bytes that wait over the rate",
    ),
    metric(
        "routing_packets",
        About::Mesh,
        "1",
        "routing packets handed to a MAC, counted at each station on the way",
    ),
    metric("routing_bytes", About::Mesh, "1", "their bytes"),
    metric("route_requests", About::Mesh, "1", "route searches that stations began or repeated"),
    metric(
        "forwarded_requests",
        About::Mesh,
        "1",
        "route requests that stations forwarded for others",
    ),
    metric("link_failures", About::Mesh, "1", "packets that a MAC has given up"),
    metric("copies", About::Mesh, "1", "data packets sent a second time, along a second route"),
    metric("x_m", About::Mesh, "t", "metres to the east at which each station is, as `station.N`"),
    metric("y_m", About::Mesh, "t", "metres to the north at which each station is, as `station.N`"),
    metric(
        "hop_packets",
        About::Mesh,
        "t",
        "data packets that arrived over each hop since the last point, as `hop.FROM-TO`; no point where none did",
    ),
    metric(
        "hop_losses",
        About::Mesh,
        "t",
        "data packets lost on each hop since the last point, at random above the MAC or given up by it, as `hop.FROM-TO`; no point where none was",
    ),
];

impl Metric {
    /// The metric of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_forms_given() {
        for (index, metric) in METRICS.iter().enumerate() {
            assert!(metric.scalar || metric.series || metric.samples, "{}", metric.name);
            assert!(METRICS.iter().skip(index + 1).all(|other| other.name != metric.name));
        }
    }
}
