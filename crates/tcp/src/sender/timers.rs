//! The retransmission timer and the persist timer.

use anabranch_policy::congestion::TimeoutEvent;
use anabranch_types::Time;
use core::time::Duration;

use super::{Phase, Sender, SenderEvent, State};
use crate::config::LossRecovery;

impl Sender {
    /// Does everything that is due at `now`. It may be called when nothing is due.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.state == State::Failed {
            return;
        }
        if self.config.rack {
            self.on_rack_timer(now);
        }
        if self.persist_at.is_some_and(|at| at <= now) {
            self.on_persist(now);
        }
        if self.rto_at.is_some_and(|at| at <= now) {
            self.on_retransmission_timeout(now);
        }
    }

    fn on_retransmission_timeout(&mut self, now: Time) {
        // After a mark at a window of one segment, the next one is sent when the timer fires (RFC 3168 §6.1.2).
        self.held = false;
        if self.board.is_empty() && self.is_open() {
            self.restart(now);
            return;
        }
        self.statistics.timeouts += 1;
        self.consecutive_timeouts += 1;
        if self.give_up_after.is_some_and(|most| self.consecutive_timeouts > most) {
            self.state = State::Failed;
            self.rto_at = None;
            self.persist_at = None;
            self.events.push_back(SenderEvent::GaveUp);
            return;
        }
        self.rtt.back_off();
        self.timed = None;
        self.rto_at = Some(now + self.rtt.rto());
        if let State::Opening(unsent) = &mut self.state {
            *unsent = true;
            return;
        }
        let flight = match self.config.recovery {
            // ns-2 halves the window, however much of it was in use, to whole segments.
            LossRecovery::FallFloyd => self.cwnd() / (2 * self.mss()) * (2 * self.mss()),
            // The flight counts only up to the window, so that a cut that recovery has made is not
            // taken back.
            _ => self.outstanding().min(self.cwnd().max(self.mss())),
        };
        self.board.declare_all(self.config.recovery == LossRecovery::FallFloyd);
        self.recovery_point = Some(self.next);
        self.phase = Phase::Timeout;
        self.duplicates = 0;
        self.credit = 0;
        self.rack.on_timeout();
        self.events.push_back(SenderEvent::Timeout(self.una));
        self.tell_timeout(now, flight);
        self.undo.on_cut();
        self.next_send = self.next_send.min(now);
    }

    /// The timer fired with nothing outstanding: a mark or a window below one segment had stopped
    /// the sender. Such a window restarts at one segment, and the threshold stays.
    fn restart(&mut self, now: Time) {
        self.rto_at = None;
        if self.is_starved() {
            self.recovery_point = Some(self.next);
            let bytes_in_flight = self.controller.ssthresh().saturating_mul(2);
            self.controller.on_timeout(&TimeoutEvent { now, bytes_in_flight, consecutive: 1 });
        }
    }

    /// The window has stayed shut for a persist interval (RFC 9293 §3.8.6.1).
    fn on_persist(&mut self, now: Time) {
        self.persist_at = None;
        let unsent = self.written.saturating_sub(self.next);
        let room = self.limit.saturating_sub(self.next);
        if room >= unsent.min(self.mss()) || self.next > self.una {
            return;
        }
        self.probe_due = true;
        self.persist_backoff = (self.persist_backoff * 2).min(1 << 10);
        self.persist_at = Some(now + self.persist_interval());
    }

    fn persist_interval(&self) -> Duration {
        self.config.timers.persist_interval(self.rtt.rto(), self.persist_backoff)
    }

    /// Starts the persist timer, unless it runs already: the receiver's window is shut.
    pub(super) fn enter_persist(&mut self, now: Time) {
        if self.persist_at.is_none() {
            self.persist_at = Some(now + self.persist_interval());
            self.persist_since = now;
        }
    }

    /// Stops the persist timer: the window has opened.
    pub(super) fn leave_persist(&mut self, now: Time) {
        self.statistics.persist_time += now.since(self.persist_since);
        self.persist_at = None;
        self.persist_backoff = 1;
        self.probe_due = false;
    }

    /// How long a shut window has kept the sender waiting with nothing in flight, the wait under way included.
    pub fn persist_time(&self, now: Time) -> Duration {
        let waits = self.persist_at.is_some();
        let current = if waits { now.since(self.persist_since) } else { Duration::ZERO };
        self.statistics.persist_time + current
    }
}
