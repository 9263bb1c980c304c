//! Loss detection (which packets are lost) and loss estimation (how likely the next one is).

pub mod dupack;
pub mod packet_threshold;
pub mod per_ack;
pub mod per_block;
mod tally;
pub mod windowed;

use anabranch_types::{PathId, Time};
use core::fmt::Debug;
use core::time::Duration;

use crate::registry::{PolicyError, PolicySpec, Registry, Row};
use crate::view::{BlockId, LossView, RttView};

/// A packet in flight, as a detector sees it.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Packet number on its path.
    pub number: u64,
    /// When the packet was sent.
    pub sent: Time,
    /// When a packet sent after it was first acknowledged.
    pub overtaken: Time,
}

/// A packet that was acknowledged later than one sent after it.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// The current time.
    pub now: Time,
    /// Time from the first acknowledgement of a packet sent later to that of this packet.
    pub late: Duration,
    /// How far the largest packet number acknowledged is above this packet's.
    pub gap: u64,
    /// Round-trip times of the path.
    pub rtt: RttView,
}

/// The state of a path when a detector judges one of its packets.
#[derive(Clone, Copy, Debug)]
pub struct DetectionView {
    /// The current time.
    pub now: Time,
    /// Largest packet number acknowledged on the path.
    pub largest_acked: u64,
    /// Packets acknowledged that have higher numbers than the judged one.
    pub acked_above: u64,
    /// Round-trip times of the path.
    pub rtt: RttView,
}

/// Whether a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossVerdict {
    /// The packet is lost.
    Lost,
    /// The packet will count as lost at this time, unless it is acknowledged by then.
    At(Time),
    /// Nothing indicates a loss yet.
    Waiting,
}

/// Decides which of the packets in flight on one path are lost.
pub trait LossDetector: Debug + Send {
    /// Judges one packet that is below the largest acknowledged one.
    fn judge(&self, packet: &InFlight, view: &DetectionView) -> LossVerdict;

    /// A packet arrived out of order, whether or not it had been declared lost by then.
    fn on_late(&mut self, _packet: &Late) {}

    /// Time without any feedback after which a path is probed, before back-off.
    fn timeout(&self, rtt: &RttView) -> Duration;

    /// How often the timeout may double while no feedback arrives; 0 keeps it constant.
    fn backoff_limit(&self) -> u32 {
        10
    }

    /// The longest timeout after back-off. `None` means the transport's own limit, which bounds how
    /// late a path's return is noticed.
    fn longest_timeout(&self) -> Option<Duration> {
        None
    }

    /// How many packets are sent beyond the window after a timeout (RFC 9002 §6.2.4). With 0, lost
    /// data is sent again within the window, as after a TCP timeout.
    fn probes(&self) -> u8 {
        2
    }

    /// Whether the timeout declares everything in flight on the path lost (a TCP retransmission timeout,
    /// RFC 5681 §3.1) or only sends a probe that elicits feedback (RFC 9002 §6.2).
    fn timeout_loses_flight(&self) -> bool {
        false
    }

    /// Whether congestion control is told of the first timeout, as of a TCP retransmission timeout (RFC 5681 §3.1),
    /// or only of a timeout that follows another without an acknowledgement in between (RFC 9002 §7.5, §7.6).
    fn timeout_is_congestion(&self) -> bool {
        self.timeout_loses_flight()
    }
}

/// Packets of one block and path whose fate is now known. A packet that carries symbols of several
/// blocks counts once, for the block of the first.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    /// The current time.
    pub now: Time,
    /// The path that carried them.
    pub path: PathId,
    /// The block they belonged to, if they carried symbols.
    pub block: Option<BlockId>,
    /// Packets acknowledged.
    pub acked: u32,
    /// Packets declared lost.
    pub lost: u32,
    /// Our own standing queue at the time. Losses while there is such a queue may be due to
    /// congestion. If congestion control cannot distinguish the queue from variation of the path's
    /// delay, this is the forward delay above its least value.
    pub queue: Duration,
    /// Smoothed round-trip time of the path.
    pub srtt: Duration,
}

/// Estimates loss probabilities from resolved packets only. Congestion control, mapping and
/// redundancy all use the same estimate.
pub trait LossEstimator: Debug + Send {
    /// Packets were sent on a path. Only the literal reading of MPLOT's eq. 2 uses this.
    fn on_sent(&mut self, _path: PathId, _block: Option<BlockId>, _packets: u32) {}

    /// Some packets' fate became known.
    fn on_resolved(&mut self, event: &Resolved);

    /// [`on_resolved`](Self::on_resolved) for `count` packets with the same fate, one after the other.
    fn on_resolved_run(&mut self, event: &Resolved, count: u32) {
        for _ in 0..count {
            self.on_resolved(event);
        }
    }

    /// Packets whose loss was counted, [`Resolved::lost`] of them, have arrived after all.
    fn on_spurious(&mut self, _event: &Resolved) {}

    /// Every packet of the block's first transmission (sources and proactive repairs) is resolved.
    fn on_block_resolved(&mut self, _block: BlockId) {}

    /// The estimate for one path.
    fn path(&self, path: PathId) -> LossView;

    /// The estimate over the aggregate.
    fn aggregate(&self) -> LossView;
}

/// The built-in loss detectors.
pub const DETECTORS: &[Row<dyn LossDetector>] =
    &[(&packet_threshold::ENTRY, packet_threshold::build), (&dupack::ENTRY, dupack::build)];

/// Makes the built-in loss detector that `spec` names.
pub fn build_detector(spec: &PolicySpec) -> Result<Box<dyn LossDetector>, PolicyError> {
    Registry::new().build(spec)
}

/// The built-in loss estimators.
pub const ESTIMATORS: &[Row<dyn LossEstimator>] = &[
    (&per_block::ENTRY, per_block::build),
    (&per_ack::PER_ACK, per_ack::build_per_ack),
    (&per_ack::LITERAL, per_ack::build_literal),
    (&windowed::ENTRY, windowed::build),
];

/// Makes the built-in loss estimator that `spec` names.
pub fn build_estimator(spec: &PolicySpec) -> Result<Box<dyn LossEstimator>, PolicyError> {
    Registry::new().build(spec)
}

#[cfg(test)]
mod tests;
