//! Acknowledgements: the data that they free, and the losses that they show.

use anabranch_policy::view::PathView;
use anabranch_types::Time;

use super::control::{Digest, Signal};
use super::{Phase, Sender, SenderEvent, State};
use crate::config::LossRecovery;
use crate::prr::Prr;
use crate::scoreboard::Delivered;
use crate::segment::{Flags, Segment};

impl Sender {
    /// Takes in a segment from the peer. Acknowledgements and SACK blocks of bytes never sent are
    /// ignored.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        self.handle_segment_among(now, segment, &[]);
    }

    /// [`handle_segment`](Self::handle_segment) for one of several subflows; coupled controllers
    /// read the views `siblings`.
    pub fn handle_segment_among(&mut self, now: Time, segment: &Segment, siblings: &[PathView]) {
        if !self.is_acknowledgement(now, segment) {
            return;
        }
        self.statistics.acks += 1;
        let window_moved = self.update_limit(now, segment);
        let prior_in_flight = self.in_flight();
        let mut delivered = Delivered::default();
        let progress = segment.ack > self.una;
        let acked = segment.ack - self.una;
        if progress {
            self.board.acknowledge(segment.ack, &mut delivered);
            self.una = segment.ack;
            self.credit = self.credit.saturating_sub(acked.saturating_sub(self.mss()));
        }
        self.take_sacks(segment, &mut delivered);
        self.sample_rtt(now, segment, progress);
        if self.config.rack {
            self.rack.on_delivered(&delivered, self.rtt.min(), now);
        }
        let repairing = !matches!(self.phase, Phase::Ordinary);
        let no_growth = self.in_recovery();
        let duplicate = !progress
            && self.next > self.una
            && if self.config.recovery.uses_sack() {
                delivered.segments > 0
            } else {
                !window_moved
            };
        self.statistics.duplicate_acks += u64::from(duplicate);
        let mut digest = Digest {
            delivered,
            progress,
            newly_lost: 0,
            prior_in_flight,
            signal: Signal::None,
            no_growth,
        };
        self.react(now, &mut digest, duplicate);
        if segment.flags.has(Flags::ECE) && self.config.ecn {
            self.on_mark(&mut digest);
        }
        self.tell_ack(now, &digest, siblings);
        self.settle_recovery(now, &digest);
        if self.config.undo {
            self.undo_spurious_cut(segment, repairing, progress);
        }
        if progress {
            self.on_progress(now);
        }
        self.limit_hold(now);
    }

    /// Whether the segment can acknowledge data of an open connection. The answer to a SYN only opens the connection.
    fn is_acknowledgement(&mut self, now: Time, segment: &Segment) -> bool {
        if self.state == State::Failed || !segment.flags.has(Flags::ACK) {
            return false;
        }
        if let Some(timestamps) = segment.timestamps {
            self.peer_timestamp = timestamps.value;
        }
        if let State::Opening(unsent) = self.state {
            if !unsent && segment.flags.has(Flags::SYN) && segment.ack >= self.una {
                self.connected(now, segment);
            }
            return false;
        }
        (self.una..=self.next).contains(&segment.ack) && !segment.flags.has(Flags::SYN)
    }

    fn connected(&mut self, now: Time, segment: &Segment) {
        self.state = State::Open;
        // With a mapping, the window counts in data sequence space, and the meta sender keeps it.
        let mapped = segment.flags.has(Flags::MAPPED);
        self.limit = if mapped { u64::MAX / 2 } else { self.una.saturating_add(segment.window) };
        self.rto_at = None;
        self.consecutive_timeouts = 0;
        if let Some((_, sent)) = self.timed.take() {
            self.rtt.on_sample(now.since(sent));
            self.rtt.reset_backoff();
        }
        self.events.push_back(SenderEvent::Connected);
    }

    /// Moves the window's right end, which never moves back. True if it moved.
    fn update_limit(&mut self, now: Time, segment: &Segment) -> bool {
        if segment.flags.has(Flags::MAPPED) {
            self.limit = u64::MAX / 2;
            return false;
        }
        let limit = segment.ack.saturating_add(segment.window);
        let moved = limit > self.limit;
        self.limit = self.limit.max(limit);
        if self.limit > self.next && self.persist_at.is_some() {
            self.leave_persist(now);
        }
        moved
    }

    /// The receiver reports that a segment arrived again.
    fn note_duplicate(&mut self, segment: &Segment) {
        let Some((_, end)) = segment.sack.duplicate(segment.ack) else { return };
        if end > self.next {
            return;
        }
        self.undo.on_duplicate();
        self.rack.on_duplicate(self.una, self.next);
    }

    fn take_sacks(&mut self, segment: &Segment, delivered: &mut Delivered) {
        // After a timeout Fall and Floyd's sender ignores SACKs until the losses are repaired.
        let forgetful = self.config.recovery == LossRecovery::FallFloyd;
        if !self.config.recovery.uses_sack() || (forgetful && self.in_timeout_recovery()) {
            return;
        }
        for (start, end) in segment.sack.iter(segment.ack) {
            if end <= self.next {
                self.board.sack(start, end, delivered);
            }
        }
        if self.config.undo {
            self.note_duplicate(segment);
        }
    }

    /// Round-trip samples (RFC 6298 §3, RFC 7323 §4.1).
    fn sample_rtt(&mut self, now: Time, segment: &Segment, progress: bool) {
        if !progress {
            return;
        }
        if self.config.timestamps {
            if let Some(timestamps) = segment.timestamps
                && timestamps.echo != Time::MAX
            {
                self.rtt.on_sample(now.since(timestamps.echo));
                self.rtt.reset_backoff();
            }
        } else if let Some((end, sent)) = self.timed
            && segment.ack >= end
        {
            self.timed = None;
            self.rtt.on_sample(now.since(sent));
            self.rtt.reset_backoff();
        }
    }

    /// The state machine of recovery.
    fn react(&mut self, now: Time, digest: &mut Digest, duplicate: bool) {
        match self.phase {
            Phase::Ordinary => self.react_ordinary(now, digest, duplicate),
            Phase::Recovery { .. } => self.react_recovery(now, digest, duplicate),
            Phase::Timeout => {
                if self.config.recovery == LossRecovery::Sack {
                    digest.newly_lost += self.judge(now);
                }
                if self.past_recovery_point() {
                    self.phase = Phase::Ordinary;
                    self.duplicates = 0;
                }
            }
        }
    }

    fn react_ordinary(&mut self, now: Time, digest: &mut Digest, duplicate: bool) {
        if digest.progress {
            self.duplicates = 0;
            self.credit = 0;
        } else if duplicate {
            self.duplicates += 1;
            if self.config.limited_transmit || self.duplicates >= self.config.dup_threshold {
                self.credit += self.mss();
            }
        }
        // RACK, in `judge`, finds losses by time; it counts SACKed segments only until the path is
        // seen to reorder (RFC 8985 §6.2, step 4).
        let mut lost = !self.config.rack
            && self.duplicates >= self.config.dup_threshold
            && !self.board.first_was_noticed();
        if self.config.recovery == LossRecovery::Sack {
            let newly = self.judge(now);
            digest.newly_lost += newly;
            lost |= newly > 0;
        }
        if lost && self.may_enter_recovery() {
            self.enter_recovery(digest);
        }
    }

    /// Segments found lost by SACKs above them or, with RACK, by time.
    fn judge(&mut self, now: Time) -> u32 {
        if self.config.rack {
            self.rack.detect(&mut self.board, now, self.rtt.smoothed(), self.config.dup_threshold)
        } else {
            self.board.judge(self.config.dup_threshold)
        }
    }

    /// Losses that a timer, not an acknowledgement, has found.
    pub(super) fn on_losses_by_time(&mut self, now: Time, lost: u32) {
        if lost == 0 || !matches!(self.phase, Phase::Ordinary) || !self.may_enter_recovery() {
            return;
        }
        let mut digest = Digest {
            delivered: Delivered::default(),
            progress: false,
            newly_lost: lost,
            prior_in_flight: self.in_flight(),
            signal: Signal::None,
            no_growth: false,
        };
        self.enter_recovery(&mut digest);
        self.tell_ack(now, &digest, &[]);
        self.settle_recovery(now, &digest);
    }

    /// Whether another recovery may begin. RFC 6675 §5 requires the recovery point to be reached;
    /// RFC 6582 §3.2 requires it to be passed, since needless retransmissions after a timeout may
    /// cause three duplicates.
    fn may_enter_recovery(&self) -> bool {
        match (self.recovery_point, self.config.recovery) {
            (None, _) => true,
            (Some(point), LossRecovery::Sack) => self.una >= point,
            (Some(point), _) => self.una > point,
        }
    }

    fn past_recovery_point(&self) -> bool {
        self.recovery_point.is_none_or(|point| self.una >= point)
    }

    fn enter_recovery(&mut self, digest: &mut Digest) {
        self.statistics.recoveries += 1;
        self.events.push_back(SenderEvent::Recovery(self.una));
        self.recovery_point = Some(self.next);
        let counted = u64::from(self.config.dup_threshold) * self.mss();
        self.arrivals_pipe = (self.next - self.una).saturating_sub(counted);
        self.high_resent = self.una;
        if self.board.declare_first() {
            digest.newly_lost += 1;
        }
        self.timed = None;
        self.phase = Phase::Recovery { first_sent: false, prr: None };
        // A window that a mark has cut already is not cut again for a loss in it (RFC 3168 §6.1.2).
        if self.mark_point.is_none_or(|point| self.una >= point) {
            digest.signal = Signal::Loss;
            self.undo.on_cut();
        }
    }

    fn react_recovery(&mut self, now: Time, digest: &mut Digest, duplicate: bool) {
        if self.past_recovery_point() {
            self.phase = Phase::Ordinary;
            self.duplicates = 0;
            self.credit = 0;
            self.rack.on_recovered();
            if self.config.recovery == LossRecovery::FallFloyd {
                // The point of a finished recovery need not be passed, only that of a timeout.
                self.recovery_point = None;
            }
            return;
        }
        match self.config.recovery {
            LossRecovery::Sack => digest.newly_lost += self.judge(now),
            LossRecovery::FallFloyd => {
                let gone = if digest.progress { 2 * self.mss() } else { self.mss() };
                self.arrivals_pipe = self.arrivals_pipe.saturating_sub(gone);
            }
            LossRecovery::NewReno => {
                if digest.progress {
                    digest.newly_lost += u32::from(self.board.declare_first());
                } else if duplicate {
                    self.credit += self.mss();
                }
            }
        }
    }

    /// Updates proportional rate reduction, and restarts the retransmission timer if recovery was entered. To be
    /// called after the controller has answered, since the reduction works towards the window that the cut has set.
    fn settle_recovery(&mut self, now: Time, digest: &Digest) {
        let pipe = self.board.pipe();
        let entered = digest.signal == Signal::Loss;
        let (mss, target) = (self.config.mss, self.controller.cwnd());
        let flight = digest.prior_in_flight;
        let use_prr = self.config.prr
            && self.config.recovery == LossRecovery::Sack
            && !self.controller.governs_recovery();
        let Phase::Recovery { prr, first_sent } = &mut self.phase else { return };
        if use_prr && prr.is_none() && !*first_sent {
            *prr = Some(Prr::new(flight, target, mss));
        }
        if let Some(prr) = prr {
            let progress = digest.progress && digest.newly_lost == 0;
            prr.on_ack(digest.delivered.bytes, pipe, progress);
        }
        if entered {
            // The retransmission restarts the timer, so that it covers a full round trip.
            self.rto_at = Some(now + self.rtt.rto());
        }
    }

    /// An acknowledgement echoes a mark: the window is cut once per round trip, and CWR is sent
    /// (RFC 3168 §6.1.2).
    fn on_mark(&mut self, digest: &mut Digest) {
        // An acknowledgement that echoes a mark does not grow the window either.
        digest.no_growth = true;
        // The acknowledgement that reaches the point still covers only segments sent before the
        // cut.
        let answered = self.mark_point.is_some_and(|point| self.una <= point)
            || !matches!(self.phase, Phase::Ordinary)
            || digest.signal != Signal::None;
        if answered {
            return;
        }
        if self.controller.cwnd() <= self.mss() {
            self.held = true;
        }
        digest.signal = Signal::Mark;
        self.mark_point = Some(self.next);
        self.cwr_due = true;
    }

    /// Starts the timer if a mark has stopped the sender with nothing outstanding; sending resumes
    /// when the timer fires.
    fn limit_hold(&mut self, now: Time) {
        if self.held && self.rto_at.is_none() {
            self.rto_at = Some(now + self.rtt.rto());
        }
    }

    /// New data was acknowledged.
    fn on_progress(&mut self, now: Time) {
        self.consecutive_timeouts = 0;
        let waits = self.next > self.una || self.held || self.is_starved();
        self.rto_at = waits.then(|| now + self.rtt.rto());
        if self.config.rack {
            self.arm_tail_probe(now);
        }
        if self.is_drained() {
            self.events.push_back(SenderEvent::Drained);
        }
    }

    /// A notice from the network: the segment at `offset` was damaged on the way, not lost to
    /// congestion. If the controller [heeds] that, the segment is sent again, and the window stays as it is (explicit
    /// loss notification; Balakrishnan and Katz 1998). If it is the oldest one outstanding, the retransmission timer,
    /// which measured the copy that was damaged, starts anew.
    ///
    /// [heeds]: anabranch_policy::congestion::CongestionController::heeds_loss_notices
    pub fn handle_loss_notice(&mut self, now: Time, offset: u64) {
        if !self.controller.heeds_loss_notices() || offset < self.una || !self.board.notice(offset)
        {
            return;
        }
        self.statistics.loss_notices += 1;
        if offset == self.una && self.rto_at.is_some() {
            self.rto_at = Some(now + self.rtt.rto());
        }
    }
}
