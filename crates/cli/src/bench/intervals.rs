//! Bytes carried in an interval, by stream and by path.

use std::collections::BTreeMap;

use anabranch::paths::NamedPath;
use serde::Serialize;

use super::inbox::Seen;

/// Figures of one interval.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Interval {
    pub(super) streams: Vec<Span>,
    pub(super) paths: Vec<PathSpan>,
    pub(super) sum: Span,
    pub(super) sum_received: Span,
    #[serde(skip)]
    totals: Totals,
    #[serde(skip)]
    path_totals: BTreeMap<String, PathTotals>,
}

/// Data carried by this side so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Bytes sent and received of each stream.
    pub(super) streams: Vec<(u64, u64)>,
    /// If the data are datagrams: the number sent, and the statistics of those received.
    pub(super) datagrams: Option<(u64, Seen)>,
}

/// Bytes carried between two times; the times are in seconds since the start.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Span {
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) bits_per_second: f64,
    /// The span is left out of the results, as `--omit` asks.
    pub(super) omitted: bool,
    #[serde(flatten)]
    pub(super) datagrams: Option<Datagrams>,
}

/// Datagrams sent, or received and missed, under iperf3's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Datagrams {
    /// Datagrams sent; at the receiver, as far as it knows.
    pub(super) packets: u64,
    #[serde(flatten)]
    pub(super) seen: Option<Reception>,
}

/// How datagrams were received.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Reception {
    pub(super) lost_packets: u64,
    pub(super) lost_percent: f64,
    pub(super) out_of_order: u64,
    /// Interarrival jitter (RFC 3550, section 6.4.1), milliseconds.
    pub(super) jitter_ms: f64,
}

/// Figures of a path over a time; bytes are those on the wire.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PathSpan {
    /// The path's interface, or the name that it was given.
    pub(super) path: String,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// The path's share of the streams' rate; the shares of all paths add up to the whole.
    pub(super) bits_per_second: f64,
    /// Rate on the wire, with headers, repairs and what was lost.
    pub(super) wire_bits_per_second: f64,
    pub(super) packets: u64,
    pub(super) lost_packets: u64,
    /// Smoothed round-trip time, microseconds.
    pub(super) rtt_us: u64,
    /// Congestion window, bytes.
    pub(super) snd_cwnd: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathTotals {
    sent: u64,
    received: u64,
    packets: u64,
    lost: u64,
}

impl Span {
    pub(super) fn new(start: f64, end: f64, bytes: u64) -> Self {
        let seconds = (end - start).max(0.0);
        let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Span { start, end, seconds, bytes, bits_per_second: rate, ..Span::default() }
    }

    /// Adds figures of datagrams to the span.
    pub(super) fn with(self, datagrams: Option<Datagrams>) -> Self {
        Span { datagrams, ..self }
    }
}

impl Datagrams {
    /// Figures of the sender.
    pub(super) fn sent(packets: u64) -> Self {
        Datagrams { packets, seen: None }
    }

    /// Figures of the receiver.
    pub(super) fn seen(seen: &Seen) -> Self {
        let packets = seen.received + seen.lost;
        let reception = Reception {
            lost_packets: seen.lost,
            lost_percent: 100.0 * seen.lost as f64 / packets.max(1) as f64,
            out_of_order: seen.out_of_order,
            jitter_ms: seen.jitter * 1e3,
        };
        Datagrams { packets, seen: Some(reception) }
    }
}

impl Interval {
    /// The totals before the first interval.
    pub(super) fn start(totals: Totals, paths: &[NamedPath]) -> Self {
        Interval { totals, path_totals: path_totals(paths), ..Interval::default() }
    }

    /// The interval from this one's end to `now`.
    pub(super) fn next(&self, now: f64, totals: Totals, paths: &[NamedPath]) -> Interval {
        let start = self.sum.end;
        let moved = || {
            let before = self.totals.streams.iter().chain(std::iter::repeat(&(0, 0)));
            totals.streams.iter().zip(before).map(|(now, before)| {
                (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
            })
        };
        let (sent, seen) = datagrams(&totals, &self.totals);
        let sum = Span::new(start, now, moved().map(|(sent, _)| sent).sum()).with(sent);
        let received = moved().map(|(_, received)| received).sum();
        let sum_received = Span::new(start, now, received).with(seen);
        let mut spans = self.paths_since(paths, now - start);
        share_out(&mut spans, (sum.bits_per_second, sum_received.bits_per_second));
        Interval {
            streams: moved().map(|(sent, got)| Span::new(start, now, sent.max(got))).collect(),
            paths: spans,
            sum,
            sum_received,
            path_totals: path_totals(paths),
            totals,
        }
    }

    /// Marks the interval as left out of the results.
    pub(super) fn omitted(self) -> Self {
        let omitted = |span: Span| Span { omitted: true, ..span };
        Interval {
            streams: self.streams.into_iter().map(omitted).collect(),
            sum: omitted(self.sum),
            sum_received: omitted(self.sum_received),
            ..self
        }
    }

    /// Figures of each path since this interval, over this many seconds.
    pub(super) fn paths_since(&self, paths: &[NamedPath], seconds: f64) -> Vec<PathSpan> {
        let before = |path: &NamedPath| self.path_totals.get(&path.name).copied();
        let spans =
            paths.iter().map(|path| PathSpan::new(path, before(path).unwrap_or_default(), seconds));
        spans.collect()
    }
}

/// Datagrams sent and received after `before`.
fn datagrams(now: &Totals, before: &Totals) -> (Option<Datagrams>, Option<Datagrams>) {
    let Some((sent, seen)) = &now.datagrams else { return (None, None) };
    let (sent_before, seen_before) = before.datagrams.unwrap_or_default();
    let sent = sent.saturating_sub(sent_before);
    (Some(Datagrams::sent(sent)), Some(Datagrams::seen(&seen.since(&seen_before))))
}

fn path_totals(paths: &[NamedPath]) -> BTreeMap<String, PathTotals> {
    let totals = paths.iter().map(|path| {
        let counters = &path.stats.counters;
        let totals = PathTotals {
            sent: counters.sent_bytes,
            received: counters.received_bytes,
            packets: counters.sent_packets,
            lost: counters.lost_packets,
        };
        (path.name.clone(), totals)
    });
    totals.collect()
}

/// Gives each path its part of what was carried, bits per second, sent and received.
pub(super) fn share_out(paths: &mut [PathSpan], (sent, received): (f64, f64)) {
    let all_sent: f64 = paths.iter().map(PathSpan::arrived).sum();
    let all_received: u64 = paths.iter().map(|path| path.received_bytes).sum();
    for path in paths {
        path.bits_per_second = sent * path.arrived() / all_sent.max(1.0)
            + received * path.received_bytes as f64 / all_received.max(1) as f64;
    }
}

impl PathSpan {
    fn new(path: &NamedPath, before: PathTotals, seconds: f64) -> Self {
        let counters = &path.stats.counters;
        let sent = counters.sent_bytes.saturating_sub(before.sent);
        let received = counters.received_bytes.saturating_sub(before.received);
        let wire = (sent + received) as f64 * 8.0;
        PathSpan {
            path: path.name.clone(),
            sent_bytes: sent,
            received_bytes: received,
            bits_per_second: 0.0,
            wire_bits_per_second: if seconds > 0.0 { wire / seconds } else { 0.0 },
            packets: counters.sent_packets.saturating_sub(before.packets),
            lost_packets: counters.lost_packets.saturating_sub(before.lost),
            rtt_us: path.stats.rtt.smoothed.as_micros() as u64,
            snd_cwnd: path.stats.cwnd,
        }
    }

    /// Bytes sent less an estimate of those lost.
    fn arrived(&self) -> f64 {
        let lost = self.lost_packets as f64 / self.packets.max(1) as f64;
        self.sent_bytes as f64 * (1.0 - lost).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(streams: &[(u64, u64)]) -> Totals {
        Totals { streams: streams.to_vec(), datagrams: None }
    }

    #[test]
    fn rates_are_bits_over_seconds() {
        let span = Span::new(1.0, 3.0, 1_000_000);
        assert_eq!((span.seconds, span.bits_per_second), (2.0, 4e6));
        assert_eq!(Span::new(1.0, 1.0, 5).bits_per_second, 0.0);
    }

    #[test]
    fn intervals_count_what_is_new() {
        let start = Interval::start(totals(&[(10, 0), (0, 0)]), &[]);
        let first = start.next(1.0, totals(&[(110, 5), (50, 0)]), &[]);
        assert_eq!((first.sum.bytes, first.sum_received.bytes), (150, 5));
        let second = first.next(3.0, totals(&[(110, 5), (80, 7)]), &[]);
        assert_eq!((second.sum.start, second.sum.seconds), (1.0, 2.0));
        assert_eq!((second.sum.bytes, second.sum_received.bytes), (30, 7));
        let streams: Vec<u64> = second.streams.iter().map(|span| span.bytes).collect();
        assert_eq!(streams, [0, 30]);
    }

    #[test]
    fn the_parts_of_paths_make_the_whole() {
        let path = |sent_bytes, lost_packets, received_bytes| PathSpan {
            sent_bytes,
            lost_packets,
            received_bytes,
            packets: 100,
            ..PathSpan::default()
        };
        let mut paths = [path(300, 0, 5), path(200, 50, 15), path(0, 0, 0)];
        share_out(&mut paths, (40.0, 8.0));
        let parts: Vec<f64> = paths.iter().map(|path| path.bits_per_second).collect();
        assert_eq!(parts, [32.0, 16.0, 0.0]);
    }

    #[test]
    fn datagrams_are_counted_by_intervals() {
        let seen = |received, lost| Seen { received, lost, out_of_order: 0, jitter: 0.002 };
        let totals = |sent, seen| Totals { streams: vec![], datagrams: Some((sent, seen)) };
        let start = Interval::start(totals(10, seen(5, 1)), &[]);
        let next = start.next(1.0, totals(30, seen(14, 2)), &[]);
        assert_eq!(next.sum.datagrams, Some(Datagrams::sent(20)));
        let received = next.sum_received.datagrams.unwrap();
        let reception = received.seen.unwrap();
        assert_eq!((received.packets, reception.lost_packets), (10, 1));
        assert_eq!((reception.lost_percent, reception.jitter_ms), (10.0, 2.0));
        let json = serde_json::to_value(next.omitted().sum_received).unwrap();
        assert_eq!((&json["packets"], &json["omitted"]), (&10.into(), &true.into()));
        assert_eq!(json["jitter_ms"], 2.0);
        let without = serde_json::to_value(Span::new(0.0, 1.0, 5)).unwrap();
        assert!(without.get("packets").is_none() && without.get("jitter_ms").is_none());
    }
}
