//! RACK-TLP (RFC 8985): losses found by time, and a probe at the tail instead of a timeout.

use anabranch_types::Time;
use core::time::Duration;

use super::{Phase, Sender};
use crate::scoreboard::{Delivered, Scoreboard};
use crate::segment::Segment;

/// Added to the wait of two smoothed round trips before a tail probe if only one segment is
/// outstanding, because its acknowledgement may be delayed (RFC 8985 §7.2).
const WORST_ACK_DELAY: Duration = Duration::from_millis(200);

/// Recoveries after which a reordering window that has grown is reset (RFC 8985 §6.2, step 4).
const PERSISTENCE: u8 = 16;

/// State of RACK-TLP (RFC 8985).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// When the newest delivered segment was sent and where it ends (RACK.xmit_ts, RACK.end_seq).
    newest: Option<(Time, u64)>,
    /// Round trip of that segment.
    rtt: Duration,
    min_rtt: Duration,
    /// Whether the path reorders: a segment sent once was delivered after one sent later.
    reordering: bool,
    /// Quarters of the least round trip by which the reordering window has grown (RACK.reo_wnd_mult
    /// − 1).
    patience: u8,
    /// Recoveries until the reordering window is reset.
    persists: u8,
    /// The offset whose acknowledgement ends the round trip in which the window last grew.
    raised: Option<u64>,
    highest: u64,
    reorder_at: Option<Time>,
    probe_at: Option<Time>,
    probe_due: bool,
    /// A probe is under way until everything below this offset is acknowledged.
    probed: Option<u64>,
}

impl Rack {
    pub(super) fn timer(&self) -> Option<Time> {
        match (self.reorder_at, self.probe_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn on_timeout(&mut self) {
        self.reorder_at = None;
        self.probe_at = None;
        self.probe_due = false;
        self.probed = None;
    }

    /// Takes in the newly delivered segments (RFC 8985 §6.2, steps 1 to 3).
    pub(super) fn on_delivered(
        &mut self,
        delivered: &Delivered,
        min_rtt: Option<Duration>,
        now: Time,
    ) {
        let Some((sent, end)) = delivered.newest_sent else { return };
        let rtt = now.since(sent);
        self.min_rtt = min_rtt.unwrap_or(rtt);
        // An acknowledgement that comes sooner than the least round trip answers the first
        // transmission.
        if delivered.newest_resent && rtt < self.min_rtt {
            return;
        }
        self.rtt = rtt;
        if end < self.highest && !delivered.newest_resent {
            self.reordering = true;
        }
        self.highest = self.highest.max(end);
        self.newest = self.newest.max(Some((sent, end)));
    }

    /// A segment that was taken as lost has arrived late.
    pub(super) fn on_reordering(&mut self) {
        self.reordering = true;
    }

    /// A retransmission was spurious: the reordering window grows, by one step in a round trip at most (RFC 8985 §6.2,
    /// step 4).
    pub(super) fn on_duplicate(&mut self, una: u64, next: u64) {
        if self.raised.is_none_or(|end| una >= end) {
            self.raised = Some(next);
            self.patience = self.patience.saturating_add(1);
            self.persists = PERSISTENCE;
        }
    }

    /// A recovery has ended.
    pub(super) fn on_recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.patience = 0;
        }
    }

    /// Declares lost the segments that were sent long enough before one that has arrived (RFC 8985
    /// §6.2, steps 4 and 5). Returns how many segments are newly lost.
    pub(super) fn detect(
        &mut self,
        board: &mut Scoreboard,
        now: Time,
        smoothed: Option<Duration>,
        threshold: u32,
    ) -> u32 {
        self.reorder_at = None;
        // Unless the path reorders, `threshold` SACKed segments above a hole are proof of a loss
        // (§6.2, step 4).
        let mut newly = if self.reordering { 0 } else { board.judge(threshold) };
        let Some(newest) = self.newest else { return newly };
        let window = if self.reordering {
            let steps = 1 + u32::from(self.patience);
            (self.min_rtt / 4 * steps).min(smoothed.unwrap_or(self.min_rtt))
        } else if newly > 0 || board.any_waiting() {
            Duration::ZERO
        } else {
            self.min_rtt / 4
        };
        let (lost, wait) = board.declare_sent_before(newest, self.rtt + window, now);
        newly += lost;
        self.reorder_at = wait.map(|wait| now + wait);
        newly
    }
}

impl Sender {
    /// Sets the timer of the tail probe, which is sent after two round trips without an
    /// acknowledgement (RFC 8985 §7.2).
    pub(super) fn arm_tail_probe(&mut self, now: Time) {
        self.rack.probe_at = None;
        let repairing = !matches!(self.phase, Phase::Ordinary) || self.board.any_waiting();
        if repairing || self.rack.probed.is_some_and(|end| self.una < end) {
            return;
        }
        self.rack.probed = None;
        if self.board.is_empty() || self.board.sacked_bytes() > 0 {
            return;
        }
        let Some(smoothed) = self.rtt.smoothed() else { return };
        let mut wait = 2 * smoothed;
        if self.board.len() == 1 {
            wait += WORST_ACK_DELAY;
        }
        let at = now + wait;
        if self.rto_at.is_none_or(|rto| at < rto) {
            self.rack.probe_at = Some(at);
        }
    }

    pub(super) fn on_rack_timer(&mut self, now: Time) {
        if self.rack.reorder_at.is_some_and(|at| at <= now) {
            let smoothed = self.rtt.smoothed();
            let threshold = self.config.dup_threshold;
            let lost = self.rack.detect(&mut self.board, now, smoothed, threshold);
            self.on_losses_by_time(now, lost);
        }
        if self.rack.probe_at.is_some_and(|at| at <= now) {
            self.rack.probe_at = None;
            self.rack.probe_due = !self.board.is_empty();
        }
    }

    /// The probe, if it is due: a new full segment if there is one and the receiver's window admits
    /// it, else the last segment again (RFC 8985 §7.3).
    pub(super) fn tail_probe(&mut self, now: Time) -> Option<Segment> {
        if !core::mem::take(&mut self.rack.probe_due) || self.board.is_empty() {
            return None;
        }
        self.statistics.tail_probes += 1;
        self.rto_at = Some(now + self.rtt.rto());
        let full = self.written.saturating_sub(self.next) >= self.mss();
        let segment = if full && self.next + self.mss() <= self.limit {
            self.send_slot(now, self.config.mss, false)
        } else {
            let last = self.board.len() - 1;
            self.resend_slot(now, last)
        };
        self.rack.probed = Some(self.next);
        self.rack.probe_at = None;
        Some(segment)
    }
}
