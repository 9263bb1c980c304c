//! Figures about a connection and its paths.

use anabranch_policy::view::{LossView, PathState, RttView};
use anabranch_types::{Bitrate, PathId, Time};

use super::Connection;
use crate::coding::send::Totals;
use crate::path::{PathAddress, PathCounters};

/// Packets that were not let in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dropped {
    /// Did not authenticate, or were seen before.
    pub unopened: u64,
    /// Authenticated, but on a path that may not exist.
    pub refused: u64,
}

/// Figures about one path.
#[derive(Clone, Copy, Debug)]
pub struct PathStats {
    /// Which path.
    pub id: PathId,
    /// Its addresses.
    pub address: PathAddress,
    /// What it can be used for.
    pub state: PathState,
    /// Counters since it opened.
    pub counters: PathCounters,
    /// Round-trip times.
    pub rtt: RttView,
    /// Loss estimate.
    pub loss: LossView,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Pacing rate.
    pub pacing_rate: Bitrate,
    /// Controller state.
    pub phase: &'static str,
}

/// Figures about a connection.
#[derive(Clone, Debug)]
pub struct ConnectionStats {
    /// Every path.
    pub paths: Vec<PathStats>,
    /// Windows, symbols and repairs sent.
    pub sent: Totals,
    /// Symbols recovered by decoding.
    pub decoded: u64,
    /// Packets that were not let in.
    pub dropped: Dropped,
    /// When the connection began.
    pub started: Time,
}

impl Connection {
    /// Figures as of now.
    pub fn stats(&self) -> ConnectionStats {
        let paths = self.paths.iter().map(|path| PathStats {
            id: path.id,
            address: path.address,
            state: path.state,
            counters: path.counters,
            rtt: path.rtt.view(),
            loss: path.loss,
            window: path.congestion.window(),
            bytes_in_flight: path.sent.bytes_in_flight,
            pacing_rate: path.congestion.pacing_rate().unwrap_or(Bitrate::ZERO),
            phase: path.congestion.phase(),
        });
        ConnectionStats {
            paths: paths.collect(),
            sent: self.send.totals(),
            decoded: self.receive.decoded(),
            dropped: self.dropped,
            started: self.started,
        }
    }
}
