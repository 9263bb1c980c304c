//! Congestion control: how much may be in flight on one path, and how fast it is sent.

pub mod balia;
pub mod bbr;
pub mod c4;
pub mod compensated;
mod coupling;
pub mod cubic;
mod cwnd;
mod delay;
pub mod ecn_reno;
pub mod eln;
mod hystart;
pub mod lia;
mod marked;
pub mod mveno;
pub mod olia;
mod plateau;
pub mod reno;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod wvegas;
mod yielding;

use anabranch_types::{Bitrate, PathId, Time};
use core::fmt::Debug;
use core::time::Duration;

use crate::registry::{PolicyError, PolicySpec, Registry, Row};
use crate::view::{LossView, PathView, RttView};

/// A measurement of a path's delivery rate, in which lost packets are counted too.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Bytes acknowledged during the sample.
    pub delivered: u64,
    /// Bytes declared lost during the sample.
    pub lost: u64,
    /// Time in which the bytes of the sample were sent.
    pub departure: Duration,
    /// Time in which the bytes of the sample were acknowledged; zero only if `departure` is not.
    pub arrival: Duration,
    /// Whether the sender had nothing to send during part of the sample. The measured rate is then
    /// a lower bound.
    pub app_limited: bool,
    /// Total bytes delivered on the path when the sampled packet was sent: a round trip ends when
    /// this reaches the total at the previous round's start.
    pub prior_delivered: u64,
}

impl RateSample {
    /// The longer of the two intervals: packets may leave faster than the bottleneck serves them, and acknowledgements
    /// that were held up may arrive faster.
    pub fn interval(&self) -> Duration {
        self.departure.max(self.arrival)
    }

    /// Bytes that crossed the bottleneck, delivered or lost after it, per second.
    pub fn resolved_rate(&self) -> Bitrate {
        Bitrate::from_transfer(self.delivered + self.lost, self.interval())
    }

    /// Bytes delivered per second.
    pub fn delivery_rate(&self) -> Bitrate {
        Bitrate::from_transfer(self.delivered, self.interval())
    }
}

/// A packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentEvent {
    /// The current time.
    pub now: Time,
    /// Bytes of the packet, IP and UDP headers included.
    pub bytes: u64,
    /// Bytes in flight, this packet included.
    pub bytes_in_flight: u64,
}

/// What one acknowledgement says about one path: the packets that it newly acknowledges, and those
/// that are now lost.
///
/// The default acknowledges nothing; callers fill in the fields that apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckEvent {
    /// The current time.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked_bytes: u64,
    /// Packets newly acknowledged.
    pub acked_packets: u32,
    /// Bytes newly declared lost.
    pub lost_bytes: u64,
    /// Packets newly declared lost.
    pub lost_packets: u32,
    /// Packets newly reported with a Congestion Experienced mark (RFC 3168).
    pub ce_packets: u32,
    /// Bytes in flight after this acknowledgement.
    pub bytes_in_flight: u64,
    /// Bytes in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// When the newest acknowledged packet was sent.
    pub largest_acked_sent: Time,
    /// When the newest lost packet was sent; meaningful if `lost_packets` > 0.
    pub largest_lost_sent: Time,
    /// Total bytes acknowledged on the path so far.
    pub total_delivered: u64,
    /// Rate sample of this acknowledgement, if it allows one.
    pub rate: Option<RateSample>,
    /// Round-trip times after this acknowledgement.
    pub rtt: RttView,
    /// Loss estimate of the path.
    pub loss: LossView,
    /// Whether the sender did not fill the window when it sent these packets, so that the window
    /// must not grow.
    pub app_limited: bool,
    /// Identifier of the path among its siblings; `None` for a connection of one path.
    pub path: Option<PathId>,
}

/// No feedback about the path arrived for a retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutEvent {
    /// The current time.
    pub now: Time,
    /// Bytes in flight when the timer fired.
    pub bytes_in_flight: u64,
    /// How many times in a row the timer has fired, this time included.
    pub consecutive: u32,
}

/// Congestion controller of one path.
///
/// A controller reads only its events and what it returned itself. Windows are bytes, IP and UDP
/// headers included; `packet_size` below is the size of a full packet in the same measure.
pub trait CongestionController: Debug + Send {
    /// A packet was sent.
    fn on_sent(&mut self, _event: &SentEvent) {}

    /// Feedback arrived. `siblings` are all open paths of the connection (coupled controllers read them).
    fn on_ack(&mut self, event: &AckEvent, siblings: &[PathView]);

    /// The retransmission timer fired.
    fn on_timeout(&mut self, event: &TimeoutEvent);

    /// A scheduler asks to hold this path back. The controller reduces the window to no less than
    /// half (MPTCP penalisation).
    fn penalise(&mut self) {}

    /// The packets for which the window was last cut were late, not lost: restores the window and
    /// the threshold to at least what they were before that cut. Controllers that do not reduce the
    /// window for a single loss or timeout do nothing.
    fn undo(&mut self) {}

    /// The size of a full packet changed (bytes).
    fn set_packet_size(&mut self, bytes: u64);

    /// Congestion window, bytes.
    fn cwnd(&self) -> u64;

    /// Slow-start threshold, bytes; `u64::MAX` if there is none.
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }

    /// Rate at which to pace, or `None` to send as the window allows.
    fn pacing_rate(&self) -> Option<Bitrate> {
        None
    }

    /// Estimated rate of the bottleneck, lost packets included, if the controller keeps one.
    fn bandwidth(&self) -> Option<Bitrate> {
        None
    }

    /// Our own standing queue: how much longer the forward delay is than while none of our packets
    /// is queued, without the momentary variation of the path's delay. `None` if the controller
    /// does not know.
    fn own_queue(&self) -> Option<Duration> {
        None
    }

    /// Whether the controller's own window applies during loss recovery, so that nothing else
    /// reduces the window. Linux leaves the window to controllers that implement `cong_control`,
    /// and applies proportional rate reduction (RFC 9937) to the others.
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Whether the controller needs [`AckEvent::rate`]. Simulated TCP measures delivery rates for
    /// the controllers that need them, and for others only if configured to do so.
    fn needs_rate(&self) -> bool {
        false
    }

    /// Whether the sender heeds explicit loss notification: when the network reports a packet as damaged on the way,
    /// the sender sends the data again and does not count the packet as lost. If this is false, it ignores such
    /// notices.
    fn heeds_loss_notices(&self) -> bool {
        false
    }

    /// Whether the window depends on the windows of the connection's other paths, as in coupled
    /// congestion control.
    fn reads_siblings(&self) -> bool {
        self.couples()
    }

    /// Whether paths that share a bottleneck ([`PathView::shares`]) together take one flow's share.
    /// Only among paths with such controllers does the connection search for shared bottlenecks, by
    /// letting their sending rates swing by a few percent.
    fn couples(&self) -> bool {
        false
    }

    /// The name of the controller's state, for traces ("slow-start", "probe-bw").
    fn phase(&self) -> &'static str;
}

/// The built-in policies of this axis.
pub const TABLE: &[Row<dyn CongestionController>] = &[
    (&reno::ENTRY, reno::build),
    (&cubic::ENTRY, cubic::build),
    (&ecn_reno::ENTRY, ecn_reno::build),
    (&bbr::ENTRY, bbr::build),
    (&c4::ENTRY, c4::build),
    (&compensated::ENTRY, compensated::build),
    (&vegas::ENTRY, vegas::build),
    (&veno::ENTRY, veno::build),
    (&westwood::ENTRY, westwood::build),
    (&eln::ENTRY, eln::build),
    (&lia::ENTRY, lia::build),
    (&olia::ENTRY, olia::build),
    (&balia::ENTRY, balia::build),
    (&wvegas::ENTRY, wvegas::build),
    (&mveno::ENTRY, mveno::build),
];

/// Makes the built-in congestion policy that `spec` names; `packet_size` is the size of a full packet, bytes,
/// IP and UDP headers included.
pub fn build(
    spec: &PolicySpec,
    packet_size: u64,
) -> Result<Box<dyn CongestionController>, PolicyError> {
    Registry::new().build_for(spec, packet_size)
}

#[cfg(test)]
mod tests;
