//! The results, arranged as iperf3's JSON: start, intervals, end; with paths beside the streams.

use std::net::SocketAddr;

use anabranch::paths::NamedPath;
use rustix::system::uname;
use serde::Serialize;

use super::args::ClientArgs;
use super::intervals::{Datagrams, Interval, PathSpan, Span, share_out};
use super::latency::Latency;
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

/// Conditions of the measurement.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Start {
    pub(super) version: String,
    /// The kernel's name, host, release, version and processor, as `uname -a` prints them.
    pub(super) system_info: String,
    pub(super) timestamp: Timestamp,
    pub(super) connected: Vec<Connected>,
    pub(super) test_start: TestStart,
}

/// Time of the report.
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

/// Parameters of the measurement.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TestStart {
    pub(super) protocol: &'static str,
    pub(super) profile: String,
    pub(super) settings: Vec<String>,
    pub(super) num_streams: u16,
    pub(super) blksize: usize,
    pub(super) udp_payload: u16,
    pub(super) duration: f64,
    pub(super) omit: f64,
    pub(super) bytes: u64,
    /// Bits per second of each direction at most; 0 for as fast as it goes.
    pub(super) target_bitrate: u64,
    /// The data were datagrams.
    pub(super) udp: bool,
    pub(super) reverse: bool,
    pub(super) bidir: bool,
    pub(super) loopback: bool,
}

/// Results over the whole measurement.
#[derive(Clone, Debug, Serialize)]
pub(super) struct End {
    pub(super) streams: Vec<StreamEnd>,
    pub(super) paths: Vec<PathSpan>,
    /// The direction from this side to the other: bytes written here, and bytes read there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) upload: Option<Direction>,
    /// Direction from the other side to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) download: Option<Direction>,
    /// iperf3's sums: the direction from client to server, or the only one that was measured.
    pub(super) sum_sent: Span,
    pub(super) sum_received: Span,
    /// How datagrams were received in the direction of `sum_sent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum: Option<Span>,
    /// Round-trip times of small messages, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency: Option<Latency>,
    /// CPU seconds per gigabyte received, over both directions; absent where the system does not tell.
    pub(super) cpu_seconds_per_gb: Option<CpuShare>,
}

/// Figures of both ends of a stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct StreamEnd {
    pub(super) sender: Span,
    pub(super) receiver: Span,
    /// For datagrams, the receiver's figures under the key that iperf3 uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) udp: Option<Span>,
}

/// Figures of one direction.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Direction {
    pub(super) sent: Span,
    pub(super) received: Span,
    /// Repairs among the symbols sent.
    pub(super) repair_share: f64,
    pub(super) lost_packets: u64,
}

/// CPU seconds of each side per gigabyte received.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CpuShare {
    pub(super) local: f64,
    pub(super) remote: f64,
}

/// Figures of a measurement, from which the report is made.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) intervals: Vec<Interval>,
    /// The totals when counting began.
    pub(super) base: Interval,
    pub(super) ours: Figures,
    pub(super) theirs: Figures,
    pub(super) latency: Option<Latency>,
}

impl Report {
    /// Makes the report from both sides' figures.
    pub(super) fn new(
        args: &ClientArgs,
        request: &Request,
        paths: &[NamedPath],
        measured: Measurement,
    ) -> Self {
        let Measurement { intervals, base, ours, theirs, latency } = measured;
        let whole = ours.sent_seconds.max(ours.received_seconds);
        let end = End::new(request, base.paths_since(paths, whole), &ours, &theirs);
        let end = End { latency, ..end };
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
                omit: request.omit,
                bytes: request.bytes.unwrap_or(0),
                target_bitrate: request.bitrate.unwrap_or(0),
                udp: request.datagrams,
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
        let udp = request.datagrams;
        let upload = request.upload.then(|| Direction::new(ours, theirs, udp));
        let download = request.download.then(|| Direction::new(theirs, ours, udp));
        let rate = |direction: Option<Direction>| {
            direction.map_or(0.0, |direction| direction.received.bits_per_second)
        };
        share_out(&mut paths, (rate(upload), rate(download)));
        let (sender, receiver) = if request.upload { (ours, theirs) } else { (theirs, ours) };
        let main = Direction::new(sender, receiver, udp);
        let streams =
            sender.sent.iter().zip(&receiver.received).map(|(sent, received)| StreamEnd {
                sender: Span::new(0.0, sender.sent_seconds, *sent),
                receiver: Span::new(0.0, receiver.received_seconds, *received),
                udp: udp.then_some(main.received),
            });
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
            sum: udp.then_some(main.received),
            latency: None,
            cpu_seconds_per_gb: known.then(|| CpuShare {
                local: per_gb(ours.cpu_seconds),
                remote: per_gb(theirs.cpu_seconds),
            }),
        }
    }
}

impl Direction {
    fn new(sender: &Figures, receiver: &Figures, udp: bool) -> Self {
        let sent = udp.then(|| Datagrams::sent(sender.datagrams_sent));
        let seen = udp.then(|| Datagrams::seen(&receiver.datagrams_seen));
        let span = |seconds, bytes: &[u64]| Span::new(0.0, seconds, bytes.iter().sum());
        Direction {
            sent: span(sender.sent_seconds, &sender.sent).with(sent),
            received: span(receiver.received_seconds, &receiver.received).with(seen),
            repair_share: sender.repairs as f64 / (sender.symbols.max(1)) as f64,
            lost_packets: sender.lost_packets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let request = r#"{"version":1,"seconds":1.0,"streams":2,"upload":true,"download":false}"#;
        let request: Request = serde_json::from_str(request).unwrap();
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
