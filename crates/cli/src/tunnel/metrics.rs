//! Figures for Prometheus: text exposition format 0.0.4 over the least of HTTP/1.1.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch::{Connection, ConnectionStats, PathStats, StreamWaits};
use anabranch_policy::view::PathState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::Failure;

/// Longest request that is read.
const MAX_REQUEST: usize = 4096;
/// Time for a request to arrive and its answer to leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// The connections whose figures are told.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

impl Metrics {
    /// Tells a connection's figures from now on, under a number of its own.
    pub(super) fn watch(&self, connection: &Connection) -> u64 {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.next += 1;
        let number = watched.next;
        watched.connections.insert(number, connection.clone());
        number
    }

    /// Tells them no more.
    pub(super) fn forget(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).connections.remove(&number);
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
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stats: Vec<Figures> = watched
            .connections
            .iter()
            .filter_map(|(number, connection)| {
                let peer = connection.peer().to_string();
                let (stats, waits) = (connection.stats()?, connection.stream_waits());
                Some(Figures { number: *number, peer, stats, waits })
            })
            .collect();
        drop(watched);
        exposition(&stats)
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
    let (status, body) = match line.split(|byte| *byte == b' ').collect::<Vec<_>>().as_slice() {
        [b"GET", b"/metrics", _] => ("200 OK", metrics.text()),
        [b"GET", ..] => ("404 Not Found", "figures are under /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    tcp.write_all(head.as_bytes()).await?;
    tcp.write_all(body.as_bytes()).await?;
    tcp.shutdown().await
}

/// Name, kind and help of a figure about a path, and what it is; some are told per direction.
type PathFigure =
    (&'static str, &'static str, &'static str, fn(&PathStats) -> Vec<(&'static str, f64)>);

const PATH_FIGURES: &[PathFigure] = &[
    ("path_up", "gauge", "1 while the path is in use.", |path| {
        let up = matches!(path.state, PathState::Active | PathState::Probation);
        vec![("", f64::from(u8::from(up)))]
    }),
    ("path_rtt_seconds", "gauge", "Smoothed round-trip time.", |path| {
        vec![("", path.rtt.smoothed.as_secs_f64())]
    }),
    ("path_min_rtt_seconds", "gauge", "Least round-trip time of late.", |path| {
        vec![("", path.rtt.min.as_secs_f64())]
    }),
    ("path_queue_seconds", "gauge", "Queue standing on the way to the peer.", |path| {
        vec![("send", path.rtt.queue.as_secs_f64())]
    }),
    ("path_loss_ratio", "gauge", "Estimated loss on the way to the peer.", |path| {
        vec![("send", path.loss.mean)]
    }),
    ("path_shared_bottleneck_paths", "gauge", "Paths that share a bottleneck with it.", |path| {
        vec![("send", f64::from(path.shares.count_ones()))]
    }),
    ("path_mtu_bytes", "gauge", "Longest IP packet that is sent.", |path| {
        vec![("send", f64::from(path.mtu))]
    }),
    ("path_congestion_window_bytes", "gauge", "Congestion window.", |path| {
        vec![("send", path.cwnd as f64)]
    }),
    ("path_bytes_in_flight", "gauge", "Bytes sent and not accounted for.", |path| {
        vec![("send", path.bytes_in_flight as f64)]
    }),
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

/// What is known of a connection.
struct Figures {
    /// Its own, so that two of one peer stay apart.
    number: u64,
    peer: String,
    stats: ConnectionStats,
    waits: StreamWaits,
}

/// Name, kind and help of a figure about a connection, and what it is.
type ConnectionFigure = (&'static str, &'static str, &'static str, fn(&Figures) -> u64);

const CONNECTION_FIGURES: &[ConnectionFigure] = &[
    ("decoded_symbols_total", "counter", "Symbols recovered without being sent again.", |of| {
        of.stats.decoded
    }),
    (
        "refused_packets_total",
        "counter",
        "Packets that did not authenticate or were not due.",
        |of| of.stats.dropped.unopened + of.stats.dropped.refused,
    ),
    (
        "streams_waiting",
        "gauge",
        "Streams that wait, as the peer allows no more at a time.",
        |of| of.waits.waiting,
    ),
    ("stream_waits_total", "counter", "Streams that had to wait for that.", |of| of.waits.total),
];

/// The figures of all connections. Each has a number, so that two of one peer stay apart.
fn exposition(stats: &[Figures]) -> String {
    let mut out = String::new();
    let gauge =
        "# HELP anabranch_connections Connections open.\n# TYPE anabranch_connections gauge\n";
    let _ = writeln!(out, "{gauge}anabranch_connections {}", stats.len());
    for (name, kind, help, figure) in PATH_FIGURES {
        let _ = write!(out, "# HELP anabranch_{name} {help}\n# TYPE anabranch_{name} {kind}\n");
        for Figures { number, peer, stats, .. } in stats {
            for path in &stats.paths {
                for (direction, value) in figure(path) {
                    let id = path.id.0;
                    let _ = write!(
                        out,
                        "anabranch_{name}{{peer=\"{peer}\",connection=\"{number}\",path=\"{id}\""
                    );
                    if !direction.is_empty() {
                        let _ = write!(out, ",direction=\"{direction}\"");
                    }
                    let _ = writeln!(out, "}} {value}");
                }
            }
        }
    }
    for (name, kind, help, figure) in CONNECTION_FIGURES {
        let _ = write!(out, "# HELP anabranch_{name} {help}\n# TYPE anabranch_{name} {kind}\n");
        for figures @ Figures { number, peer, .. } in stats {
            let value = figure(figures);
            let _ = writeln!(
                out,
                "anabranch_{name}{{peer=\"{peer}\",connection=\"{number}\"}} {value}"
            );
        }
    }
    out
}
