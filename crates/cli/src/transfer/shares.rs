//! Bytes that each path carried over all connections of a transfer.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use anabranch::Connection;
use anabranch::paths::NamedPath;
use anabranch_transfer::Role;
use serde::Serialize;

use crate::watched::Direction;
use crate::{format, watched};

/// The direction of the files, as this side sees it.
pub(super) fn direction(role: Role) -> Direction {
    match role {
        Role::Offers => Direction::Sending,
        Role::Takes => Direction::Receiving,
    }
}

/// A path, and what it has carried in the direction of the files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PathShare {
    /// The path's interface or the name that it was given; on the side that was connected to, the peer's address.
    pub(super) name: String,
    /// Local address.
    pub(super) local: Option<SocketAddr>,
    /// The peer's address.
    pub(super) remote: SocketAddr,
    /// Bytes that arrived, headers and repairs included; on the side that sent them an estimate.
    pub(super) bytes: u64,
    /// Share of the bytes of all paths.
    #[serde(serialize_with = "format::three_decimals")]
    pub(super) share: f64,
    /// Smoothed round-trip time, if it was measured.
    #[serde(serialize_with = "format::maybe_three_decimals")]
    pub(super) rtt_ms: Option<f64>,
}

/// Shares of the paths of earlier connections.
#[derive(Debug, Default)]
pub(super) struct Earlier(Mutex<Vec<PathShare>>);

impl Earlier {
    /// Adds the paths of a connection of the transfer, which has ended.
    pub(super) fn add(&self, connection: &Connection, role: Role) {
        let all = self.with(connection, role);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// The paths of all connections, `connection` the last.
    pub(super) fn with(&self, connection: &Connection, role: Role) -> Vec<PathShare> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for path in connection.named_paths() {
            add(&mut all, carried(path, role));
        }
        let bytes: u64 = all.iter().map(|path| path.bytes).sum();
        for path in &mut all {
            path.share = path.bytes as f64 / bytes.max(1) as f64;
        }
        all
    }
}

fn add(all: &mut Vec<PathShare>, mut path: PathShare) {
    match all.iter_mut().find(|other| other.name == path.name) {
        Some(other) => {
            path.bytes += other.bytes;
            path.rtt_ms = path.rtt_ms.or(other.rtt_ms);
            *other = path;
        }
        None => all.push(path),
    }
}

fn carried(path: NamedPath, role: Role) -> PathShare {
    let bytes = watched::carried(&path, direction(role));
    let NamedPath { name, local, stats, .. } = path;
    let rtt_ms = (stats.rtt.samples > 0).then_some(stats.rtt.smoothed.as_secs_f64() * 1e3);
    PathShare { name, local, remote: stats.address.remote, bytes, share: 0.0, rtt_ms }
}

/// `wlan0 60 %, wwan0 40 %`.
pub(super) fn line(paths: &[PathShare]) -> String {
    let one = |path: &PathShare| format!("{} {}", path.name, format::percent(path.share));
    paths.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_name_are_one() {
        let remote = "192.0.2.1:9".parse().unwrap();
        let path = |name: &str, bytes, rtt_ms| {
            let (name, local) = (name.to_owned(), None);
            PathShare { name, local, remote, bytes, share: 0.0, rtt_ms }
        };
        let mut all = vec![path("wan0", 10, Some(5.0))];
        add(&mut all, path("wan1", 7, None));
        add(&mut all, path("wan0", 30, None));
        let now: Vec<_> = all.iter().map(|path| (path.bytes, path.rtt_ms)).collect();
        assert_eq!(now, [(40, Some(5.0)), (7, None)]);
    }
}
