//! What each path of a connection carries.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch::transfer::Role;
use anabranch::{Connection, PathStats};
use serde::Serialize;

use crate::{format, machine};

/// A path, and what it has carried in the direction of the files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PathShare {
    /// This side's interface, or the peer's address, whichever tells the paths apart.
    pub(super) name: String,
    /// Local address.
    pub(super) local: Option<SocketAddr>,
    /// The peer's address.
    pub(super) remote: SocketAddr,
    /// Bytes on the wire, headers and repairs included.
    pub(super) bytes: u64,
    /// Of all the paths' bytes.
    pub(super) share: f64,
    /// Smoothed round-trip time, if it was measured.
    pub(super) rtt_ms: Option<f64>,
}

/// The paths of `connection`, as of now or of its end.
pub(super) fn shares(connection: &Connection, role: Role) -> Vec<PathShare> {
    let paths = connection.stats().map(|stats| stats.paths).unwrap_or_default();
    let list = machine::interfaces().unwrap_or_default();
    let mut found: Vec<PathShare> = Vec::new();
    for path in &paths {
        let local = connection.local_addr(path.address.socket);
        let interface = local.and_then(|local| machine::interface_of(&list, local.ip()));
        let remote = path.address.remote;
        found.push(PathShare {
            name: interface.map_or_else(|| remote.ip().to_string(), |i| i.name.clone()),
            local,
            remote,
            bytes: carried(path, role),
            share: 0.0,
            rtt_ms: rtt(path).map(|rtt| rtt.as_secs_f64() * 1e3),
        });
    }
    let names: Vec<String> = found.iter().map(|path| path.name.clone()).collect();
    let all: u64 = found.iter().map(|path| path.bytes).sum();
    for path in &mut found {
        path.share = path.bytes as f64 / all.max(1) as f64;
        if names.iter().filter(|name| **name == path.name).count() > 1 {
            path.name = format!("{}@{}", path.name, path.remote.ip());
        }
    }
    found
}

fn carried(path: &PathStats, role: Role) -> u64 {
    match role {
        Role::Offers => path.counters.sent_bytes,
        Role::Takes => path.counters.received_bytes,
    }
}

fn rtt(path: &PathStats) -> Option<Duration> {
    (path.rtt.samples > 0).then_some(path.rtt.smoothed)
}

/// `wlan0 60 %, wwan0 40 %`.
pub(super) fn line(paths: &[PathShare]) -> String {
    let one = |path: &PathShare| format!("{} {}", path.name, format::percent(path.share));
    paths.iter().map(one).collect::<Vec<_>>().join(", ")
}
