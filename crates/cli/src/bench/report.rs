//! The figures, arranged as iperf3's JSON: start, intervals, end; with paths beside the streams.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anabranch::paths::NamedPath;
use rustix::system::uname;
use serde::Serialize;

use super::args::ClientArgs;
use super::protocol::{Figures, Request};
use super::traffic::PIECE;
use crate::clock;

/// A measurement.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) start: Start,
    pub(super) intervals: Vec<Interval>,
    pub(super) end: End,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Start {
    pub(super) version: String,
    /// The kernel's name, host, release, version and processor, as `uname -a` prints them.
    pub(super) system_info: String,
    pub(super) timestamp: Timestamp,
    pub(super) connected: Vec<Connected>,
    pub(super) test_start: TestStart,
}

/// When it was measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Timestamp {
    /// Universal time (RFC 3339).
    pub(super) time: String,
    /// Seconds since 1970.
    pub(super) timesecs: u64,
}

/// A path as it stood at the end.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Connected {
    pub(super) path: String,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: SocketAddr,
}

/// What was asked for.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TestStart {
    pub(super) protocol: &'static str,
    pub(super) profile: String,
    pub(super) settings: Vec<String>,
    pub(super) num_streams: u16,
    pub(super) blksize: usize,
    pub(super) udp_payload: u16,
    pub(super) duration: f64,
    pub(super) bytes: u64,
    pub(super) reverse: bool,
    pub(super) bidir: bool,
    pub(super) loopback: bool,
}

/// One interval.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Interval {
    pub(super) streams: Vec<Span>,
    pub(super) paths: Vec<PathSpan>,
    pub(super) sum: Span,
    pub(super) sum_received: Span,
    #[serde(skip)]
    totals: Vec<(u64, u64)>,
    #[serde(skip)]
    path_totals: BTreeMap<String, PathTotals>,
}

/// Bytes over a time, seconds since the start.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Span {
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) bits_per_second: f64,
}

/// What a path carried over a time; bytes are those on the wire.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PathSpan {
    /// Its interface, or the name that it was given.
    pub(super) path: String,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// Its part of what the streams carried: the parts of all paths make the whole.
    pub(super) bits_per_second: f64,
    /// With headers, repairs and what was lost.
    pub(super) wire_bits_per_second: f64,
    pub(super) packets: u64,
    pub(super) lost_packets: u64,
    /// Smoothed round-trip time, microseconds.
    pub(super) rtt_us: u64,
    /// Congestion window, bytes.
    pub(super) snd_cwnd: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct PathTotals {
    sent: u64,
    received: u64,
    packets: u64,
    lost: u64,
}

/// The whole time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct End {
    pub(super) streams: Vec<StreamEnd>,
    pub(super) paths: Vec<PathSpan>,
    /// From this side to the other: as written here, and as read there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upload: Option<Direction>,
    /// From the other side to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) download: Option<Direction>,
    /// As iperf3 has it: of the direction from client to server, or of the only one there is.
    pub(super) sum_sent: Span,
    pub(super) sum_received: Span,
    /// CPU seconds per gigabyte received, over both directions; absent where the system does not tell.
    pub(super) cpu_seconds_per_gb: Option<CpuShare>,
}

/// Both ends of a stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct StreamEnd {
    pub(super) sender: Span,
    pub(super) receiver: Span,
}

/// One direction.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Direction {
    pub(super) sent: Span,
    pub(super) received: Span,
    /// Repairs among the symbols sent.
    pub(super) repair_share: f64,
    pub(super) lost_packets: u64,
}

/// Where the CPU time went.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CpuShare {
    pub(super) local: f64,
    pub(super) remote: f64,
}

impl Span {
    fn new(start: f64, end: f64, bytes: u64) -> Self {
        let seconds = (end - start).max(0.0);
        let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Span { start, end, seconds, bytes, bits_per_second: rate }
    }
}

impl Interval {
    /// What stood before the first interval.
    pub(super) fn start(totals: Vec<(u64, u64)>, paths: &[NamedPath]) -> Self {
        Interval { totals, path_totals: path_totals(paths), ..Interval::default() }
    }

    /// The interval from this one's end to `now`.
    pub(super) fn next(&self, now: f64, totals: Vec<(u64, u64)>, paths: &[NamedPath]) -> Interval {
        let start = self.sum.end;
        let moved = || {
            let before = self.totals.iter().chain(std::iter::repeat(&(0, 0)));
            totals.iter().zip(before).map(|(now, before)| {
                (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
            })
        };
        let sum = Span::new(start, now, moved().map(|(sent, _)| sent).sum());
        let sum_received = Span::new(start, now, moved().map(|(_, received)| received).sum());
        let mut spans: Vec<PathSpan> = paths
            .iter()
            .map(|path| {
                let before = self.path_totals.get(&path.name).copied().unwrap_or_default();
                PathSpan::new(path, before, now - start)
            })
            .collect();
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
fn share_out(paths: &mut [PathSpan], (sent, received): (f64, f64)) {
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

impl Report {
    /// From both sides' figures.
    pub(super) fn new(
        args: &ClientArgs,
        request: &Request,
        intervals: Vec<Interval>,
        paths: &[NamedPath],
        (ours, theirs): (Figures, Figures),
    ) -> Self {
        let whole = ours.sent_seconds.max(ours.received_seconds);
        let spans = paths.iter().map(|path| PathSpan::new(path, PathTotals::default(), whole));
        let end = End::new(request, spans.collect(), &ours, &theirs);
        Report { start: Start::new(args, request, paths), intervals, end }
    }
}

impl Start {
    fn new(args: &ClientArgs, request: &Request, paths: &[NamedPath]) -> Self {
        let connected = paths.iter().map(|path| Connected {
            path: path.name.clone(),
            local: path.local,
            remote: path.stats.address.remote,
        });
        let settings = &args.settings;
        let timesecs = clock::seconds() as u64;
        Start {
            version: format!("anabranch {}", env!("CARGO_PKG_VERSION")),
            system_info: system_info(),
            timestamp: Timestamp { time: clock::utc(timesecs), timesecs },
            connected: connected.collect(),
            test_start: TestStart {
                protocol: "anabranch",
                profile: args.profile.clone(),
                settings: settings.iter().map(|s| format!("{}={}", s.axis, s.policy)).collect(),
                num_streams: request.streams,
                blksize: PIECE,
                udp_payload: args.payload,
                duration: if request.bytes.is_some() { 0.0 } else { request.seconds },
                bytes: request.bytes.unwrap_or(0),
                reverse: args.reverse,
                bidir: args.bidir,
                loopback: args.loopback,
            },
        }
    }
}

fn system_info() -> String {
    let system = uname();
    let words =
        [system.sysname(), system.nodename(), system.release(), system.version(), system.machine()];
    words.map(|word| word.to_string_lossy().into_owned()).join(" ")
}

impl End {
    fn new(request: &Request, mut paths: Vec<PathSpan>, ours: &Figures, theirs: &Figures) -> Self {
        let upload = request.upload.then(|| Direction::new(ours, theirs));
        let download = request.download.then(|| Direction::new(theirs, ours));
        let rate = |direction: Option<Direction>| {
            direction.map_or(0.0, |direction| direction.received.bits_per_second)
        };
        share_out(&mut paths, (rate(upload), rate(download)));
        let (sender, receiver) = if request.upload { (ours, theirs) } else { (theirs, ours) };
        let streams =
            sender.sent.iter().zip(&receiver.received).map(|(sent, received)| StreamEnd {
                sender: Span::new(0.0, sender.sent_seconds, *sent),
                receiver: Span::new(0.0, receiver.received_seconds, *received),
            });
        let main = Direction::new(sender, receiver);
        let received = ours.received.iter().chain(&theirs.received).sum::<u64>();
        let per_gb = |seconds: f64| seconds / (received as f64 * 1e-9);
        let known = ours.cpu_seconds > 0.0 && theirs.cpu_seconds > 0.0 && received > 0;
        End {
            streams: streams.collect(),
            paths,
            upload,
            download,
            sum_sent: main.sent,
            sum_received: main.received,
            cpu_seconds_per_gb: known.then(|| CpuShare {
                local: per_gb(ours.cpu_seconds),
                remote: per_gb(theirs.cpu_seconds),
            }),
        }
    }
}

impl Direction {
    fn new(sender: &Figures, receiver: &Figures) -> Self {
        Direction {
            sent: Span::new(0.0, sender.sent_seconds, sender.sent.iter().sum()),
            received: Span::new(0.0, receiver.received_seconds, receiver.received.iter().sum()),
            repair_share: sender.repairs as f64 / (sender.symbols.max(1)) as f64,
            lost_packets: sender.lost_packets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_over_seconds() {
        let span = Span::new(1.0, 3.0, 1_000_000);
        assert_eq!((span.seconds, span.bits_per_second), (2.0, 4e6));
        assert_eq!(Span::new(1.0, 1.0, 5).bits_per_second, 0.0);
    }

    #[test]
    fn intervals_count_what_is_new() {
        let start = Interval::start(vec![(10, 0), (0, 0)], &[]);
        let first = start.next(1.0, vec![(110, 5), (50, 0)], &[]);
        assert_eq!((first.sum.bytes, first.sum_received.bytes), (150, 5));
        let second = first.next(3.0, vec![(110, 5), (80, 7)], &[]);
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
    fn directions_join_both_sides() {
        let ours = Figures {
            sent: vec![4, 6],
            received: vec![0, 0],
            sent_seconds: 1.0,
            cpu_seconds: 1.0,
            symbols: 100,
            repairs: 5,
            ..Figures::default()
        };
        let theirs = Figures {
            sent: vec![0, 0],
            received: vec![4, 6],
            received_seconds: 2.0,
            cpu_seconds: 0.5,
            ..Figures::default()
        };
        let request = Request {
            version: 1,
            seconds: 1.0,
            bytes: None,
            streams: 2,
            upload: true,
            download: false,
        };
        let end = End::new(&request, Vec::new(), &ours, &theirs);
        assert!(end.download.is_none());
        let upload = end.upload.unwrap();
        assert_eq!((upload.sent.bytes, upload.received.bytes), (10, 10));
        assert_eq!(upload.received.bits_per_second, 40.0);
        assert_eq!(upload.repair_share, 0.05);
        assert_eq!(end.streams.len(), 2);
        assert!((end.cpu_seconds_per_gb.unwrap().local - 1e8).abs() < 1.0);
    }
}
