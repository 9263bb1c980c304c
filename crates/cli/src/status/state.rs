//! The state that a running command reports.

use std::net::SocketAddr;

use anabranch::Connection;
use anabranch::types::escaped;
use serde::{Deserialize, Serialize};

use crate::format;

/// A running command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// `serve` or `connect`.
    pub command: String,
    pub version: String,
    pub pid: u32,
    /// Public key of this side.
    pub public_key: String,
    pub listening: Vec<SocketAddr>,
    pub peers: Vec<Peer>,
    pub forwards: Forwards,
}

/// A peer of the settings, or a connection with one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// The peer's name in the configuration.
    pub name: Option<String>,
    pub public_key: String,
    /// The connection's number; none while there is no connection.
    pub connection: Option<u64>,
    /// Time since a packet of the peer last arrived.
    #[serde(serialize_with = "format::maybe_three_decimals")]
    pub last_heard_seconds: Option<f64>,
    pub paths: Vec<Path>,
}

/// A path of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    pub name: String,
    pub state: String,
    pub local: Option<SocketAddr>,
    pub remote: SocketAddr,
    #[serde(serialize_with = "format::maybe_three_decimals")]
    pub rtt_ms: Option<f64>,
    /// Estimated share of the packets sent that is lost.
    #[serde(serialize_with = "format::three_decimals")]
    pub loss: f64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// TCP connections that are, or were, carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forwards {
    pub opened: u64,
    /// Connections that ended normally.
    pub closed: u64,
    /// Connections that were refused or broke.
    pub failed: u64,
    /// Bytes of the connections that ended normally.
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

impl State {
    /// The state with all text escaped, so that it may be shown.
    pub fn escaped(self) -> Self {
        let plain = |text: String| escaped(&text).to_string();
        let path = |path: Path| Path { name: plain(path.name), state: plain(path.state), ..path };
        let peer = |peer: Peer| Peer {
            name: peer.name.map(plain),
            public_key: plain(peer.public_key),
            paths: peer.paths.into_iter().map(path).collect(),
            ..peer
        };
        State {
            command: plain(self.command),
            version: plain(self.version),
            public_key: plain(self.public_key),
            peers: self.peers.into_iter().map(peer).collect(),
            ..self
        }
    }
}

impl Peer {
    /// A peer without a connection.
    pub fn absent(name: Option<String>, public_key: String) -> Self {
        let (connection, last_heard_seconds) = (None, None);
        Peer { name, public_key, connection, last_heard_seconds, paths: Vec::new() }
    }

    /// A peer with a connection of this number.
    pub fn of(name: Option<String>, number: u64, connection: &Connection) -> Self {
        let paths = connection.named_paths().into_iter().map(|path| {
            let (stats, counters) = (&path.stats, &path.stats.counters);
            Path {
                state: path.status.name().to_owned(),
                local: path.local,
                remote: stats.address.remote,
                rtt_ms: (stats.rtt.samples > 0).then_some(stats.rtt.smoothed.as_secs_f64() * 1e3),
                loss: stats.loss.mean,
                sent_bytes: counters.sent_bytes,
                received_bytes: counters.received_bytes,
                name: path.name,
            }
        });
        Peer {
            name,
            public_key: connection.peer().to_string(),
            connection: Some(number),
            last_heard_seconds: connection.last_heard().map(|time| time.as_secs_f64()),
            paths: paths.collect(),
        }
    }
}
