//! The byte window that the additive-increase controllers share.

use anabranch_types::{Bitrate, Time};
use core::fmt::Debug;

use crate::congestion::{AckEvent, CongestionController, TimeoutEvent};
use crate::view::PathView;

/// Windows never grow beyond this, so that arithmetic on them cannot overflow.
pub(super) const MAX_CWND: u64 = 1 << 40;

/// A congestion window with slow start, additive increase and at most one cut per round trip.
#[derive(Clone, Debug)]
pub(super) struct AdditiveCwnd {
    bytes: u64,
    ssthresh: u64,
    packet: u64,
    /// The threshold does not fall below this many packets.
    least: u64,
    /// Bytes acknowledged in congestion avoidance by which the window has not grown yet.
    credit: u64,
    last_cut: LastCut,
    /// Window and threshold before the last cut.
    before: (u64, u64),
}

impl AdditiveCwnd {
    pub(super) fn new(initial_packets: u64, packet: u64) -> Self {
        let packet = packet.clamp(1, MAX_CWND / 1024);
        AdditiveCwnd {
            bytes: initial_packets.clamp(1, 1024) * packet,
            ssthresh: u64::MAX,
            packet,
            least: 2,
            credit: 0,
            last_cut: LastCut::default(),
            before: (0, 0),
        }
    }

    /// Sets the threshold at which slow start ends, packets; 0 changes nothing.
    pub(super) fn expect_threshold(&mut self, packets: u64) {
        if packets > 0 {
            self.ssthresh = packets.saturating_mul(self.packet);
        }
    }

    /// Sets the lower limit, packets, of the threshold and of windows set by [`steer`](Self::steer); 2 at first.
    pub(super) fn set_least(&mut self, packets: u64) {
        self.least = packets;
    }

    /// The lower limit of the threshold in bytes.
    fn least(&self) -> u64 {
        self.least * self.packet
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    pub(super) fn packet(&self) -> u64 {
        self.packet
    }

    /// Whether a packet sent at `sent` belongs to the flight for which the window was last cut.
    pub(super) fn answered(&self, sent: Time) -> bool {
        self.last_cut.answered(sent)
    }

    pub(super) fn phase(&self) -> &'static str {
        if self.bytes < self.ssthresh { "slow-start" } else { "congestion-avoidance" }
    }

    /// Whether `event` reports a loss or a mark of a later flight than the last cut's.
    pub(super) fn congested(&self, event: &AckEvent) -> bool {
        self.last_cut.congested(event)
    }

    /// Whether the packets that `event` acknowledges let the window grow; see
    /// [`LastCut::may_grow`].
    pub(super) fn may_grow(&self, event: &AckEvent) -> bool {
        self.last_cut.may_grow(event)
    }

    /// Whether the window is below the threshold.
    pub(super) fn in_slow_start(&self) -> bool {
        self.bytes < self.ssthresh
    }

    /// Grows by `acked` bytes in slow start, and above the threshold by one packet per window of
    /// bytes.
    pub(super) fn grow(&mut self, acked: u64) {
        self.grow_by(acked, 1.0);
    }

    /// Grows like [`grow`](Self::grow), but by `factor` packets per window of bytes above the threshold.
    pub(super) fn grow_by(&mut self, acked: u64, factor: f64) {
        let mut acked = acked.min(MAX_CWND);
        if self.bytes < self.ssthresh {
            let step = acked.min(self.ssthresh - self.bytes);
            self.bytes += step;
            acked -= step;
        }
        // Rounded, so that a factor just below one counts as one.
        self.credit += (acked as f64 * factor.min(1024.0) + 0.5) as u64;
        let packets = self.credit / self.bytes;
        self.credit %= self.bytes;
        self.bytes = self.bytes.saturating_add(packets.saturating_mul(self.packet)).min(MAX_CWND);
    }

    /// Grows for one acknowledgement of `acked` bytes: by at most a packet in slow start, and by
    /// packet²/window above the threshold (RFC 5681 §3.1, eq. 2 and 3).
    pub(super) fn grow_once(&mut self, acked: u64) {
        let step = if self.bytes < self.ssthresh {
            acked.min(self.packet)
        } else {
            self.packet.saturating_mul(self.packet) / self.bytes
        };
        self.bytes = self.bytes.saturating_add(step.max(1)).min(MAX_CWND);
    }

    /// Moves the window to `bytes`, but at least [`least`](Self::set_least) packets, without a cut,
    /// and ends slow start there.
    pub(super) fn steer(&mut self, bytes: u64) {
        self.bytes = bytes.clamp(self.least(), MAX_CWND);
        self.ssthresh = self.ssthresh.min(self.bytes);
        self.credit = 0;
    }

    /// Sets the threshold to `target` bytes (at least [`least`](Self::set_least) packets) and lowers the window to `target` (at
    /// least `floor` packets). Never raises the window.
    pub(super) fn cut(&mut self, now: Time, target: u64, floor: u64) {
        self.before = (self.bytes, self.ssthresh);
        self.ssthresh = target.max(self.least());
        self.bytes = self.bytes.min(target.max(floor * self.packet)).max(1);
        self.credit = 0;
        self.last_cut = LastCut::at(now);
    }

    /// Handles a retransmission timeout: the window restarts from `packets`. The threshold becomes
    /// half the flight, unless an earlier timeout in the row has already set it (RFC 5681 §3.1, eq.
    /// 4).
    pub(super) fn collapse(&mut self, now: Time, flight: u64, packets: u64, first: bool) {
        if first {
            self.before = (self.bytes, self.ssthresh);
            self.ssthresh = (flight / 2).max(self.least());
        }
        // A cut without a floor may have left less than a packet.
        self.bytes = self.bytes.min(packets.max(1) * self.packet).max(self.packet);
        self.credit = 0;
        self.last_cut = LastCut::at(now);
    }

    /// Collapses like [`collapse`](Self::collapse), to one packet, with the threshold at `target` bytes, but no less
    /// than the [least window](Self::set_least).
    pub(super) fn collapse_below(&mut self, now: Time, target: u64) {
        self.before = (self.bytes, self.ssthresh);
        self.ssthresh = target.max(self.least());
        self.bytes = self.packet;
        self.credit = 0;
        self.last_cut = LastCut::at(now);
    }

    /// Implements [`CongestionController::undo`].
    fn undo(&mut self) {
        let (bytes, ssthresh) = self.before;
        self.bytes = self.bytes.max(bytes);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// Halves the window, and the threshold if the window had reached it (MPTCP's penalty).
    pub(super) fn penalise(&mut self) {
        if self.bytes >= self.ssthresh {
            self.ssthresh = (self.ssthresh / 2).max(self.least());
        }
        self.bytes = (self.bytes / 2).max(self.packet);
        self.credit = 0;
    }

    pub(super) fn set_packet(&mut self, bytes: u64) {
        self.packet = bytes.clamp(1, MAX_CWND / 1024);
        self.bytes = self.bytes.max(self.packet);
    }
}

/// When a window was last cut. Packets sent up to then belong to the flight for which it was cut:
/// they do not cut the window again, and do not let it grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastCut(Option<Time>);

impl LastCut {
    pub(super) fn at(now: Time) -> Self {
        LastCut(Some(now))
    }

    /// Whether a packet sent at `sent` belongs to the flight for which the window was cut.
    pub(super) fn answered(self, sent: Time) -> bool {
        self.0.is_some_and(|cut| sent <= cut)
    }

    /// Whether `event` reports a loss or a mark of a packet sent after the cut.
    pub(super) fn congested(self, event: &AckEvent) -> bool {
        let lost = event.lost_packets > 0 && !self.answered(event.largest_lost_sent);
        let marked = event.ce_packets > 0 && !self.answered(event.largest_acked_sent);
        lost || marked
    }

    /// Whether the packets that `event` acknowledges let the window grow: the window was full, and
    /// they were sent after the cut.
    pub(super) fn may_grow(self, event: &AckEvent) -> bool {
        !event.app_limited && event.acked_packets > 0 && !self.answered(event.largest_acked_sent)
    }
}

/// A controller that consists of an [`AdditiveCwnd`] and a rule; the window handles what the rule
/// does not decide.
pub(super) trait CwndRule: Debug + Send {
    /// The window.
    fn additive(&self) -> &AdditiveCwnd;

    /// The window, mutable.
    fn additive_mut(&mut self) -> &mut AdditiveCwnd;

    /// Implements [`CongestionController::on_ack`].
    fn acked(&mut self, event: &AckEvent, siblings: &[PathView]);

    /// Implements [`CongestionController::on_timeout`]: starts again from one packet.
    fn timed_out(&mut self, event: &TimeoutEvent) {
        let first = event.consecutive <= 1;
        self.additive_mut().collapse(event.now, event.bytes_in_flight, 1, first);
    }

    /// Implements [`CongestionController::reads_siblings`].
    fn is_coupled(&self) -> bool {
        false
    }

    /// Implements [`CongestionController::heeds_loss_notices`].
    fn excuses_damage(&self) -> bool {
        false
    }

    /// Implements [`CongestionController::bandwidth`].
    fn measured(&self) -> Option<Bitrate> {
        None
    }
}

impl<R: CwndRule> CongestionController for R {
    fn on_ack(&mut self, event: &AckEvent, siblings: &[PathView]) {
        self.acked(event, siblings);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.timed_out(event);
    }

    fn penalise(&mut self) {
        self.additive_mut().penalise();
    }

    fn undo(&mut self) {
        self.additive_mut().undo();
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.additive_mut().set_packet(bytes);
    }

    fn cwnd(&self) -> u64 {
        self.additive().bytes()
    }

    fn ssthresh(&self) -> u64 {
        self.additive().ssthresh()
    }

    fn bandwidth(&self) -> Option<Bitrate> {
        self.measured()
    }

    fn reads_siblings(&self) -> bool {
        self.is_coupled()
    }

    fn heeds_loss_notices(&self) -> bool {
        self.excuses_damage()
    }

    fn phase(&self) -> &'static str {
        self.additive().phase()
    }
}
