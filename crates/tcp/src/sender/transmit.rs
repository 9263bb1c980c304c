//! Decides which segment leaves next, and when.

use anabranch_types::Time;

use super::{Phase, Sender, State, blank};
use crate::config::LossRecovery;
use crate::segment::{Flags, Segment};

impl Sender {
    /// The next segment to send now, if any.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        match self.state {
            State::Failed => return None,
            State::Opening(true) => return Some(self.open(now)),
            State::Opening(false) => return None,
            State::Open => {}
        }
        self.cwnd_limited = false;
        if self.held {
            return None;
        }
        if core::mem::take(&mut self.probe_due) {
            return Some(self.probe(now));
        }
        if let Some(segment) = self.tail_probe(now) {
            return Some(segment);
        }
        if self.next_send > now {
            self.cwnd_limited = true;
            return None;
        }
        self.resend(now).or_else(|| self.send_new(now))
    }

    fn open(&mut self, now: Time) -> Segment {
        self.state = State::Opening(false);
        // Karn's rule: only a SYN that was sent once is timed.
        self.timed = (self.consecutive_timeouts == 0).then_some((0, now));
        self.rto_at = Some(now + self.rtt.rto());
        let segment = blank(now, self.peer_timestamp, self.config.timestamps);
        Segment { seq: self.una, flags: Flags::SYN, ..segment }
    }

    /// An empty segment that wants an answer.
    pub(crate) fn probe(&mut self, now: Time) -> Segment {
        self.statistics.window_probes += 1;
        let segment = blank(now, self.peer_timestamp, self.config.timestamps);
        // The offset has been acknowledged already, so the peer only answers.
        Segment { seq: self.una.saturating_sub(1), flags: Flags::PROBE, ..segment }
    }

    /// The next retransmission, if one waits and the window admits it.
    fn resend(&mut self, now: Time) -> Option<Segment> {
        let index = self.next_to_resend()?;
        let len = u64::from(self.board.slot(index)?.len);
        let first = matches!(self.phase, Phase::Recovery { first_sent: false, .. });
        if !first && !self.admits(len) {
            self.cwnd_limited = true;
            return None;
        }
        Some(self.resend_slot(now, index))
    }

    /// The first offset of the retransmission that [`poll_transmit`](Self::poll_transmit) would
    /// yield now, if any. Does not change what is sent.
    pub(crate) fn next_retransmission(&mut self, now: Time) -> Option<u64> {
        if !self.is_open() || self.held || self.next_send > now || !self.board.any_waiting() {
            return None;
        }
        let index = self.next_to_resend()?;
        let slot = self.board.slot(index)?;
        let (start, len) = (slot.start, u64::from(slot.len));
        let first = matches!(self.phase, Phase::Recovery { first_sent: false, .. });
        (first || self.admits(len)).then_some(start)
    }

    /// There is no data to send in the place of the next retransmission. The retransmission timer
    /// keeps running as long as anything is in flight, and is stopped otherwise.
    pub(crate) fn freeze(&mut self) {
        self.note_out_of_data();
        self.starve();
        if self.in_flight() == 0 {
            self.rto_at = None;
        }
    }

    /// Whether the congestion window admits this many bytes more. With nothing in flight one
    /// segment is always admitted, unless a window below one segment stops the sender, as in ns-2.
    fn admits(&self, len: u64) -> bool {
        let in_flight = self.in_flight();
        (in_flight == 0 && !self.is_starved()) || in_flight + len <= self.cwnd()
    }

    /// The next segment to retransmit: one declared lost or, in a recovery as Fall and Floyd
    /// simulated it, the next hole. Each hole is filled once per recovery.
    fn next_to_resend(&mut self) -> Option<usize> {
        let declared = self.board.next_waiting();
        let sequential = self.config.recovery == LossRecovery::FallFloyd
            && matches!(self.phase, Phase::Recovery { .. });
        if declared.is_some() || !sequential {
            return declared;
        }
        self.board.next_hole(self.high_resent)
    }

    /// Sends the slot again.
    pub(super) fn resend_slot(&mut self, now: Time, index: usize) -> Segment {
        let (start, len, fin, end) = self
            .board
            .slot(index)
            .map_or((self.una, 0, false, self.una), |s| (s.start, s.len, s.ends_stream(), s.end()));
        let idle = self.board.pipe() == 0;
        self.board.resent(index, now);
        self.high_resent = self.high_resent.max(end);
        let mut opening = false;
        if let Phase::Recovery { first_sent, prr } = &mut self.phase {
            opening = !*first_sent;
            *first_sent = true;
            if let Some(prr) = prr {
                prr.on_sent(u64::from(len));
            }
        }
        // Fall and Floyd's pipe at the start of recovery counts the segment that the first
        // retransmission replaces.
        if !opening {
            self.arrivals_pipe += u64::from(len);
        }
        if self.timed.is_some_and(|(timed, _)| start < timed) {
            self.timed = None;
        }
        self.statistics.retransmissions += 1;
        self.undo.on_resent(now);
        let flags = Flags::RETRANSMISSION;
        self.emit(now, start, len, if fin { flags.with(Flags::FIN) } else { flags }, index, idle)
    }

    /// The next new segment, if there is data and both windows admit it.
    fn send_new(&mut self, now: Time) -> Option<Segment> {
        let unsent = self.written - self.next.min(self.written);
        let fin_left = self.finished && !self.fin_sent;
        if unsent == 0 && !fin_left {
            self.note_out_of_data();
            return None;
        }
        let room = self.limit.saturating_sub(self.next);
        let len = unsent.min(self.mss()).min(room);
        if len < unsent.min(self.mss()) && self.hold_for_window(now, len) {
            return None;
        }
        if len < self.mss() && len == unsent && self.hold_for_data(len) {
            self.note_out_of_data();
            return None;
        }
        if !self.admits(len.max(1)) {
            self.cwnd_limited = true;
            return None;
        }
        Some(self.send_slot(now, len as u32, fin_left && len == unsent))
    }

    pub(super) fn send_slot(&mut self, now: Time, len: u32, fin: bool) -> Segment {
        let idle = self.board.pipe() == 0;
        let start = self.next;
        self.board.push(start, len, fin, now);
        self.next += u64::from(len) + u64::from(fin);
        self.fin_sent |= fin;
        self.arrivals_pipe += u64::from(len);
        if let Phase::Recovery { prr: Some(prr), .. } = &mut self.phase {
            prr.on_sent(u64::from(len));
        }
        if !self.config.timestamps && self.timed.is_none() {
            self.timed = Some((self.next, now));
        }
        let mut flags = if fin { Flags::FIN } else { Flags::NONE };
        if self.config.ecn {
            flags = flags.with(Flags::ECT);
            if core::mem::take(&mut self.cwr_due) {
                flags = flags.with(Flags::CWR);
            }
        }
        let index = self.board.len() - 1;
        self.emit(now, start, len, flags, index, idle)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a segment")]
    fn emit(
        &mut self,
        now: Time,
        seq: u64,
        len: u32,
        flags: Flags,
        index: usize,
        idle: bool,
    ) -> Segment {
        self.statistics.data_segments += 1;
        self.statistics.data_bytes += u64::from(len);
        let absolute = self.board.absolute(index);
        if let Some(rate) = &mut self.rate {
            rate.on_sent(absolute, now, idle);
        }
        if self.rto_at.is_none() {
            self.rto_at = Some(now + self.rtt.rto());
        }
        if self.config.rack {
            self.arm_tail_probe(now);
        }
        self.tell_sent(now, u64::from(len));
        Segment { seq, len, flags, ..blank(now, self.peer_timestamp, self.config.timestamps) }
    }

    fn note_out_of_data(&mut self) {
        // The segment sent last may have filled the window.
        self.cwnd_limited = !self.can_use_cwnd();
        if self.path.is_none() {
            self.starve();
        }
    }

    /// There is nothing to send although the window admits more, so the rate measured now is that
    /// of the application. A subflow gets data only when it asks, so only its connection can detect
    /// this.
    pub(crate) fn starve(&mut self) {
        let in_flight = self.board.pipe();
        if in_flight < self.cwnd()
            && let Some(rate) = &mut self.rate
        {
            rate.on_app_limited(in_flight);
        }
    }

    /// Whether to wait for a larger window, given that the receiver's window admits less than a
    /// full segment of the waiting data (RFC 9293 §3.8.6.2.1). Starts the persist timer if nothing
    /// is in flight.
    fn hold_for_window(&mut self, now: Time, len: u64) -> bool {
        if self.next > self.una {
            return true;
        }
        if len > 0 && len >= self.mss().min(self.config.receive_buffer / 2) {
            return false;
        }
        self.enter_persist(now);
        true
    }

    /// Whether a short segment waits because only the full send buffer keeps the application from
    /// filling it.
    fn hold_for_data(&self, len: u64) -> bool {
        let outstanding = self.next > self.una;
        len > 0 && outstanding && !self.finished && self.writable() == 0
    }
}
