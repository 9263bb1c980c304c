//! Metrics for Prometheus: text exposition format 0.0.4 over a minimal HTTP/1.1 server.

mod datagrams;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch::paths::{NamedPath, PathStatus};
use anabranch::{Connection, ConnectionStats, PathStats, PublicKey, StreamWaits};
use anabranch_forward::{DatagramCounters, ForwardEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::Failure;
use crate::status::{Forwards, Peer, State, Telling};

/// Longest request that is read.
const MAX_REQUEST: usize = 4096;
/// Time for a request to arrive and its answer to leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// The connections whose metrics are served.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    next: u64,
    connections: BTreeMap<u64, Connection>,
    /// The peers of the settings, connected or not, with their names.
    peers: Vec<(PublicKey, Option<String>)>,
    forwards: Forwards,
    /// Counters of UDP datagrams, by the label of a forward with `connect` and of a peer with
    /// `serve`.
    datagrams: BTreeMap<String, DatagramCounters>,
}

/// This side, as `anabranch status` shows it.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) command: &'static str,
    pub(super) public_key: PublicKey,
    pub(super) listening: Vec<SocketAddr>,
}

impl Metrics {
    /// Metrics with the peers of the settings, so that one that is not connected shows too.
    pub(super) fn of(peers: impl IntoIterator<Item = (PublicKey, Option<String>)>) -> Self {
        let peers = peers.into_iter().collect();
        Metrics(Arc::new(Mutex::new(Watched { peers, ..Watched::default() })))
    }

    /// Replaces the peers whose metrics are served.
    pub(super) fn set_peers(&self, peers: impl IntoIterator<Item = (PublicKey, Option<String>)>) {
        self.lock().peers = peers.into_iter().collect();
    }

    /// The connections that are open with a peer.
    pub(super) fn connections_of(&self, peer: &PublicKey) -> Vec<Connection> {
        let watched = self.lock();
        watched.connections.values().filter(|open| open.peer() == *peer).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what happens to TCP connections that are carried.
    pub(super) fn count(&self, event: &ForwardEvent) {
        let forwards = &mut self.lock().forwards;
        match event {
            ForwardEvent::Opened(_) => forwards.opened += 1,
            ForwardEvent::Closed(_, sent, received) => {
                forwards.closed += 1;
                forwards.sent_bytes += sent;
                forwards.received_bytes += received;
            }
            ForwardEvent::Failed(..) => forwards.failed += 1,
            _ => {}
        }
    }

    /// Serves the datagram counters of the forward or the peer (`kind`) of this name.
    pub(super) fn count_datagrams(&self, kind: &str, name: &str, counters: DatagramCounters) {
        self.lock().datagrams.insert(datagram_label(kind, name), counters);
    }

    /// Stops serving the counters that [`count_datagrams`](Self::count_datagrams) added.
    pub(super) fn forget_datagrams(&self, kind: &str, name: &str) {
        self.lock().datagrams.remove(&datagram_label(kind, name));
    }

    /// The state for `anabranch status`: a peer for each connection, and those that have none.
    pub(super) fn state(&self, side: &Side) -> State {
        let watched = self.lock();
        let mut peers = Vec::new();
        for (key, name) in &watched.peers {
            let open = watched.connections.iter().filter(|(_, open)| open.peer() == *key);
            let before = peers.len();
            peers.extend(open.map(|(number, open)| Peer::of(name.clone(), *number, open)));
            if peers.len() == before {
                peers.push(Peer::absent(name.clone(), key.to_string()));
            }
        }
        State {
            command: side.command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            public_key: side.public_key.to_string(),
            listening: side.listening.clone(),
            peers,
            forwards: watched.forwards,
        }
    }

    /// Answers `anabranch status` for ever, if there is a socket for it.
    pub(super) async fn tell(&self, telling: Option<&Telling>, side: &Side) {
        match telling {
            Some(telling) => {
                if let Err(error) = telling.run(|| self.state(side)).await {
                    eprintln!("anabranch: `anabranch status` gets no answer: {error}");
                }
                std::future::pending().await
            }
            None => std::future::pending().await,
        }
    }

    /// Serves a connection's metrics from now on, under a number of its own.
    pub(super) fn watch(&self, connection: &Connection) -> u64 {
        let mut watched = self.lock();
        watched.next += 1;
        let number = watched.next;
        watched.connections.insert(number, connection.clone());
        number
    }

    /// Stops serving a connection's metrics.
    pub(super) fn forget(&self, number: u64) {
        self.lock().connections.remove(&number);
    }

    /// Answers requests on `address` from now on, if there is one.
    pub(super) async fn listen(&self, address: Option<SocketAddr>) -> Result<(), Failure> {
        let Some(address) = address else { return Ok(()) };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::cannot_listen(format_args!("{address}, --metrics"), &error)
        })?;
        let metrics = self.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((tcp, _)) => {
                        tokio::spawn(tokio::time::timeout(PATIENCE, answer(tcp, metrics.clone())));
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        });
        Ok(())
    }

    fn text(&self) -> String {
        let watched = self.lock();
        let connections = watched.connections.iter();
        let figures = connections.filter_map(|(number, connection)| {
            let peer = connection.peer().to_string();
            let (stats, waits) = (connection.stats()?, connection.stream_waits());
            Some(Figures { number: *number, peer, paths: connection.named_paths(), stats, waits })
        });
        let figures: Vec<Figures> = figures.collect();
        let mut out = about_this_side(&watched);
        datagrams::exposition(&mut out, &watched.datagrams);
        drop(watched);
        exposition(&mut out, &figures);
        out
    }
}

async fn answer(mut tcp: TcpStream, metrics: Metrics) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() >= MAX_REQUEST || tcp.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let path = words.get(1).and_then(|path| path.split(|byte| *byte == b'?').next());
    let (status, body) = match (words.first().copied(), path) {
        (Some(b"GET" | b"HEAD"), Some(b"/metrics")) => ("200 OK", metrics.text()),
        (Some(b"GET" | b"HEAD"), _) => ("404 Not Found", "metrics are under /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nAllow: GET, HEAD\r\n\
         Content-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    tcp.write_all(head.as_bytes()).await?;
    if words.first() != Some(&&b"HEAD"[..]) {
        tcp.write_all(body.as_bytes()).await?;
    }
    tcp.shutdown().await
}

/// Name, kind and help of a figure about a path, and its values; some have one for each direction.
type PathFigure =
    (&'static str, &'static str, &'static str, fn(&PathStats) -> Vec<(&'static str, f64)>);

const PATH_FIGURES: &[PathFigure] = &[
    ("path_rtt_seconds", "gauge", "Smoothed round-trip time.", |path| {
        vec![("", path.rtt.smoothed.as_secs_f64())]
    }),
    ("path_min_rtt_seconds", "gauge", "Least round-trip time measured recently.", |path| {
        vec![("", path.rtt.min.as_secs_f64())]
    }),
    ("path_queue_seconds", "gauge", "Queueing delay on the way to the peer.", |path| {
        vec![("send", path.rtt.queue.as_secs_f64())]
    }),
    ("path_loss_ratio", "gauge", "Estimated loss on the way to the peer.", |path| {
        vec![("send", path.loss.mean)]
    }),
    (
        "path_shared_bottleneck_paths",
        "gauge",
        "Paths that share a bottleneck with this one.",
        |path| vec![("send", f64::from(path.shares.count_ones()))],
    ),
    ("path_mtu_bytes", "gauge", "Longest IP packet that is sent.", |path| {
        vec![("send", f64::from(path.mtu))]
    }),
    ("path_congestion_window_bytes", "gauge", "Congestion window.", |path| {
        vec![("send", path.cwnd as f64)]
    }),
    (
        "path_bytes_in_flight",
        "gauge",
        "Bytes sent, neither acknowledged nor declared lost.",
        |path| vec![("send", path.bytes_in_flight as f64)],
    ),
    ("path_bytes_total", "counter", "Bytes, IP and UDP headers included.", |path| {
        let counters = &path.counters;
        vec![("send", counters.sent_bytes as f64), ("receive", counters.received_bytes as f64)]
    }),
    ("path_packets_total", "counter", "Packets.", |path| {
        let counters = &path.counters;
        vec![("send", counters.sent_packets as f64), ("receive", counters.received_packets as f64)]
    }),
    ("path_lost_packets_total", "counter", "Packets declared lost.", |path| {
        vec![("send", path.counters.lost_packets as f64)]
    }),
    ("path_ce_marks_total", "counter", "Congestion marks that the peer reported.", |path| {
        vec![("send", path.counters.ce_marks as f64)]
    }),
    ("path_timeouts_total", "counter", "Probe timeouts.", |path| {
        vec![("send", path.counters.timeouts as f64)]
    }),
];

/// State and counters of a connection.
struct Figures {
    /// Number of the connection, so that two of one peer stay apart.
    number: u64,
    peer: String,
    paths: Vec<NamedPath>,
    stats: ConnectionStats,
    waits: StreamWaits,
}

/// Name, kind and help of a figure about a connection, and its value.
type ConnectionFigure = (&'static str, &'static str, &'static str, fn(&Figures) -> u64);

const CONNECTION_FIGURES: &[ConnectionFigure] = &[
    ("decoded_symbols_total", "counter", "Packets recovered without being sent again.", |of| {
        of.stats.decoded
    }),
    (
        "refused_packets_total",
        "counter",
        "Packets dropped: not authenticated, repeated, or on a path that is not allowed.",
        |of| of.stats.dropped.unopened + of.stats.dropped.refused,
    ),
    (
        "streams_waiting",
        "gauge",
        "Streams that wait because of the peer's limit on concurrent streams.",
        |of| of.waits.waiting,
    ),
    (
        "stream_waits_total",
        "counter",
        "Streams that had to wait because of the peer's limit on concurrent streams.",
        |of| of.waits.total,
    ),
];

/// Writes the HELP and TYPE lines of a metric.
fn introduce(out: &mut String, (name, kind, help): (&str, &str, &str)) {
    let _ = write!(out, "# HELP anabranch_{name} {help}\n# TYPE anabranch_{name} {kind}\n");
}

/// Metrics that belong to no single connection.
fn about_this_side(watched: &Watched) -> String {
    let mut out = String::new();
    introduce(&mut out, ("build_info", "gauge", "Always 1, labelled with the program's version."));
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(out, "anabranch_build_info{{version=\"{version}\"}} 1");
    introduce(&mut out, ("connections", "gauge", "Connections open."));
    let _ = writeln!(out, "anabranch_connections {}", watched.connections.len());
    introduce(
        &mut out,
        ("peer_connections", "gauge", "Connections open with a peer of the settings."),
    );
    for (peer, _) in &watched.peers {
        let open = watched.connections.values().filter(|open| open.peer() == *peer).count();
        let peer = peer.to_string();
        let _ = writeln!(out, "anabranch_peer_connections{{peer=\"{peer}\"}} {open}");
    }
    let Forwards { opened, closed, failed, sent_bytes: sent, received_bytes: received } =
        watched.forwards;
    introduce(&mut out, ("forwards_opened_total", "counter", "TCP connections carried."));
    let _ = writeln!(out, "anabranch_forwards_opened_total {opened}");
    let help = "Carried TCP connections that ended normally.";
    introduce(&mut out, ("forwards_closed_total", "counter", help));
    let _ = writeln!(out, "anabranch_forwards_closed_total {closed}");
    introduce(&mut out, ("forwards_failed_total", "counter", "TCP connections refused or broken."));
    let _ = writeln!(out, "anabranch_forwards_failed_total {failed}");
    let help = "Bytes of TCP connections that ended normally.";
    introduce(&mut out, ("forwards_bytes_total", "counter", help));
    let _ = writeln!(out, "anabranch_forwards_bytes_total{{direction=\"send\"}} {sent}");
    let _ = writeln!(out, "anabranch_forwards_bytes_total{{direction=\"receive\"}} {received}");
    out
}

/// The metrics of all connections. Each has a number, so that two of one peer stay apart.
fn exposition(out: &mut String, figures: &[Figures]) {
    let labels = |of: &Figures, path: &NamedPath| {
        let (peer, number, path) = (&of.peer, of.number, escaped(&path.name));
        format!("peer=\"{peer}\",connection=\"{number}\",path=\"{path}\"")
    };
    let all = || figures.iter().flat_map(|of| of.paths.iter().map(move |path| (of, path)));
    introduce(out, ("path_up", "gauge", "1 while the path can be used, also as a backup."));
    for (of, path) in all() {
        let up = !matches!(path.status, PathStatus::Down | PathStatus::Probing);
        let _ = writeln!(out, "anabranch_path_up{{{}}} {}", labels(of, path), u8::from(up));
    }
    introduce(out, ("path_state", "gauge", "1 for the state that the path is in."));
    for (of, path) in all() {
        for state in PathStatus::ALL {
            let (labels, is) = (labels(of, path), u8::from(state == path.status));
            let _ =
                writeln!(out, "anabranch_path_state{{{labels},state=\"{}\"}} {is}", state.name());
        }
    }
    for (name, kind, help, figure) in PATH_FIGURES {
        introduce(out, (name, kind, help));
        for (of, path) in all() {
            for (direction, value) in figure(&path.stats) {
                let _ = write!(out, "anabranch_{name}{{{}", labels(of, path));
                if !direction.is_empty() {
                    let _ = write!(out, ",direction=\"{direction}\"");
                }
                let _ = writeln!(out, "}} {value}");
            }
        }
    }
    for (name, kind, help, figure) in CONNECTION_FIGURES {
        introduce(out, (name, kind, help));
        for figures @ Figures { number, peer, .. } in figures {
            let value = figure(figures);
            let _ = writeln!(
                out,
                "anabranch_{name}{{peer=\"{peer}\",connection=\"{number}\"}} {value}"
            );
        }
    }
}

/// The label of the datagram counters of a forward or a peer (`kind`) of this name.
fn datagram_label(kind: &str, name: &str) -> String {
    format!("{kind}=\"{}\"", escaped(name))
}

/// Escapes a label's value, since the name of an interface may contain almost any character.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_any_name() {
        assert_eq!(escaped(r#"wan"0\"#), r#"wan\"0\\"#);
    }
}
