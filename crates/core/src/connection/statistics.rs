//! Statistics of a connection and its paths.

use anabranch_policy::view::{LossView, PathState, RttView, SymbolId, SymbolSpace};
use anabranch_types::{Bitrate, PathId, Time};

use core::ops::Range;

use super::Connection;
use crate::coding::receive::ReceiveBlocks;
use crate::coding::send::{BlockRecord, Totals};
use crate::path::{PathAddress, PathCounters};
use crate::stream::StreamProgress;
use crate::wire::StreamId;

/// Packets that arrived and were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Packets that could not be authenticated, or had arrived before.
    pub unopened: u64,
    /// Authenticated packets on a path that this side does not allow.
    pub refused: u64,
}

/// The fate of congestion marks on the way to the peer (RFC 9000 §13.4), in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnStats {
    /// Whether packets are still marked, because no evidence so far shows that the marks do not
    /// arrive.
    pub capable: bool,
    /// Packets sent with ECT(0).
    pub sent: u64,
    /// Packets among `sent` that the peer received with ECT(0).
    pub arrived: u64,
    /// Packets among `sent` that the peer received with Congestion Experienced.
    pub ce: u64,
}

/// Figures about one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// Local socket and remote address of the path.
    pub address: PathAddress,
    /// State of the path, which says how it can be used.
    pub state: PathState,
    /// Whether the path has been silent for longer than its loss rate explains. Without an
    /// alternative, such a path stays in use.
    pub silent: bool,
    /// Whether the path is a backup, which is used only if no other path is usable.
    pub backup: bool,
    /// Counters since the path opened.
    pub counters: PathCounters,
    /// Estimate of the packets that the peer has sent on the path. The difference to the received
    /// packets is lost or late. The estimate comes from packet numbers, minus the expected count of
    /// numbers that the peer skips at random.
    pub peer_sent_packets: u64,
    /// Congestion marks on the way to the peer.
    pub ecn: EcnStats,
    /// The longest IP packet that this side sends on the path, bytes. It grows as path MTU
    /// discovery succeeds.
    pub mtu: u32,
    /// The longest IP packet that both sides' settings allow, bytes; the limit of path MTU
    /// discovery.
    pub mtu_limit: u32,
    /// Round-trip times.
    pub rtt: RttView,
    /// Loss estimate.
    pub loss: LossView,
    /// Current congestion window, bytes, including its swing during the search for shared
    /// bottlenecks.
    pub cwnd: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Pacing rate.
    pub pacing_rate: Bitrate,
    /// State of the congestion controller.
    pub phase: &'static str,
    /// Paths that were found to share a bottleneck with this one: bit i stands for the i-th of
    /// [`ConnectionStats::paths`].
    pub shares: u16,
}

/// Figures about a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionStats {
    /// Every path.
    pub paths: Vec<PathStats>,
    /// Blocks, symbols and repairs sent.
    pub sent: Totals,
    /// Symbols recovered by decoding.
    pub decoded: u64,
    /// New source symbols that arrived while an earlier one was missing.
    pub out_of_order: u64,
    /// Bytes of source symbols that arrived although they had arrived or been decoded before.
    pub repeated_bytes: u64,
    /// Packets that arrived and were dropped.
    pub dropped: Dropped,
    /// When the connection began.
    pub started: Time,
    /// How many exchanges have renewed the keys.
    pub key_renewals: u64,
}

impl Connection {
    /// The current statistics.
    pub fn stats(&self) -> ConnectionStats {
        let paths = self.paths.indexed().map(|(slot, path)| PathStats {
            silent: self.seems_dead(slot),
            id: path.id,
            address: path.address,
            state: path.state(),
            backup: path.backup,
            counters: path.counters,
            peer_sent_packets: path.peer_sent_packets(),
            ecn: EcnStats {
                capable: path.ecn.is_capable(),
                sent: path.ecn.sent(),
                arrived: path.ecn.reported().0,
                ce: path.ecn.reported().1,
            },
            mtu: path.ip_mtu(),
            mtu_limit: path.ip_mtu_limit(),
            rtt: path.rtt.view(),
            loss: path.loss,
            cwnd: path.swing.window(path.congestion.cwnd()),
            bytes_in_flight: path.sent.bytes_in_flight,
            pacing_rate: path.congestion.pacing_rate().unwrap_or(Bitrate::ZERO),
            phase: path.congestion.phase(),
            shares: path.shares,
        });
        ConnectionStats {
            paths: paths.collect(),
            sent: self.send.totals(),
            decoded: self.received(ReceiveBlocks::decoded),
            out_of_order: self.received(ReceiveBlocks::out_of_order),
            repeated_bytes: self.received(ReceiveBlocks::repeated_bytes),
            dropped: self.dropped,
            started: self.started,
            key_renewals: self.keys.renewals(),
        }
    }

    /// A count of received symbols, added up over all spaces.
    fn received(&self, count: impl Fn(&ReceiveBlocks) -> u64) -> u64 {
        self.receive.iter().map(count).sum()
    }

    /// The progress of a stream on this side; `None` if the stream does not exist or no longer
    /// does.
    pub fn stream_progress(&self, stream: StreamId) -> Option<StreamProgress> {
        self.streams.progress(stream)
    }

    /// Whether all bytes of `range` have arrived on a stream that is still known.
    pub fn stream_holds(&self, stream: StreamId, range: Range<u64>) -> bool {
        self.streams.holds(stream, range)
    }

    /// Counts the packets of each coding block of the main space that opens on this side from now on, for
    /// [`take_block_records`](Self::take_block_records).
    pub fn watch_blocks(&mut self) {
        self.send[SymbolSpace::Main].watch_blocks();
    }

    /// The coding blocks that were recovered and whose packets' fates have all become known since
    /// the last call. Empty unless blocks are [watched](Self::watch_blocks).
    pub fn take_block_records(&mut self) -> Vec<BlockRecord> {
        self.send[SymbolSpace::Main].take_records()
    }

    /// The next source symbol that this side makes in the main space. Lower symbols have been sent
    /// or are about to be.
    pub fn unsent_symbol(&self) -> SymbolId {
        self.send[SymbolSpace::Main].next_symbol()
    }

    /// The symbol after the peer's highest known source symbol in the main space.
    pub fn reached_symbol(&self) -> SymbolId {
        self.receive.main().reached()
    }

    /// Whether a source symbol of the peer in the main space has arrived or been decoded.
    pub fn holds_symbol(&self, symbol: SymbolId) -> bool {
        self.receive.main().holds(symbol)
    }
}
