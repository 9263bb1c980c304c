//! Losses, timeouts and dead paths: the recovery policy decides, and this module carries out its
//! decisions.

use anabranch_policy::congestion::TimeoutEvent;
use anabranch_policy::recovery::{RecoveryAction, RecoveryEvent};
use anabranch_policy::scheduler::SchedulerEvent;
use anabranch_policy::view::PathState;
use anabranch_types::Time;

use super::feedback::AckOutcome;
use super::paths::PathIndex;
use super::{Connection, Event};
use crate::observe::Observation;
use crate::path::sent::{Carried, Fate};

impl Connection {
    /// Handles the loss of a symbol's packet.
    pub(super) fn symbol_lost(&mut self, now: Time, slot: PathIndex, carried: Carried) {
        let block = carried.block();
        let open = self.send[carried.space()].open_block().is_some_and(|view| view.id == block);
        let event = RecoveryEvent::Lost { block, open, path: self.paths[slot].id };
        let action = self.policies.recovery.on_event(now, event, self.paths.views());
        self.carry_out(now, action, Some(carried));
    }

    pub(super) fn carry_out(
        &mut self,
        now: Time,
        action: RecoveryAction,
        carried: Option<Carried>,
    ) {
        match action {
            RecoveryAction::Nothing => {}
            // Repairs are provisioned once the whole frame has been processed.
            RecoveryAction::Repair if !self.resends() => {}
            RecoveryAction::Repair | RecoveryAction::Resend => {
                if let Some(carried) = carried {
                    self.send[carried.space()].make_due(carried);
                }
            }
            RecoveryAction::Reinject(path) => {
                if let Some(slot) = self.paths.open(path) {
                    self.reinject(now, slot);
                }
            }
            RecoveryAction::Copy(path) => {
                if let Some(slot) = self.paths.open(path) {
                    self.copy_oldest(slot);
                }
            }
            RecoveryAction::TakeBack(path, cwnd) => {
                if let Some(slot) = self.paths.open(path) {
                    self.write_off(now, slot, cwnd);
                    self.unqueue(slot, cwnd);
                }
            }
            RecoveryAction::TakeBackQueued(path, cwnd) => {
                if let Some(slot) = self.paths.open(path) {
                    self.unqueue(slot, cwnd);
                }
            }
        }
    }

    /// Makes the symbols of the oldest packet in flight that carries any due again.
    fn copy_oldest(&mut self, slot: PathIndex) {
        let sent = &self.paths[slot].sent;
        let Some((number, packet)) = sent.oldest_with_symbols() else { return };
        let mut nth = 0;
        while let Some(carried) = sent.symbol(number, &packet, nth) {
            self.send[carried.space()].make_due_copy(carried);
            nth += 1;
        }
    }

    /// Takes back symbols from a path's queue that do not fit into `cwnd` bytes together with the
    /// bytes in flight.
    fn unqueue(&mut self, slot: PathIndex, cwnd: u64) {
        let path = &self.paths[slot];
        let free = cwnd.saturating_sub(path.sent.bytes_in_flight) / path.packet_size.max(1);
        self.take_back(slot, usize::try_from(free).unwrap_or(usize::MAX));
    }

    /// Handles the reduction of a path's window to `cwnd` bytes, after a timeout (`silent`) or
    /// because of feedback.
    pub(super) fn on_cwnd_reduced(&mut self, now: Time, slot: PathIndex, cwnd: u64, silent: bool) {
        let path = self.paths[slot].id;
        let event = RecoveryEvent::CwndReduced { path, cwnd, silent };
        let action = self.policies.recovery.on_event(now, event, self.paths.views());
        self.carry_out(now, action, None);
        self.tell_scheduler(now, [SchedulerEvent::CwndReduced(path, cwnd)]);
    }

    /// Handles a timeout without feedback about the path.
    pub(super) fn path_timeout(&mut self, now: Time, slot: PathIndex) {
        let alternatives = self.has_alternative(slot);
        let path = &mut self.paths[slot];
        let loses_flight = path.detector.timeout_loses_flight();
        let is_congestion = path.detector.timeout_is_congestion();
        let before = path.congestion.cwnd();
        path.counters.timeouts += 1;
        let probes = if path.state() == PathState::Suspect { 1 } else { path.detector.probes() };
        let overdue = path.sent.sent_before(now - path.base_timeout().base);
        let (id, consecutive) = (path.id, path.liveness.on_timeout(now, overdue, probes));
        let bytes_in_flight = path.sent.bytes_in_flight;
        // A probe timeout alone says nothing about congestion (RFC 9002 §7.5); a retransmission timeout does.
        let serious = if is_congestion { consecutive } else { consecutive - 1 };
        // Before the path's first round-trip sample, only a timeout that declares the flight lost
        // counts (RFC 9002 §7.6.2).
        let known = path.rtt.view().samples > 0;
        if serious > 0 && (known || loses_flight) {
            let consecutive = serious;
            path.congestion.on_timeout(&TimeoutEvent { now, bytes_in_flight, consecutive });
            path.update_pacing(now);
        }
        let cwnd = path.congestion.cwnd();
        self.observe(now, Observation::Timeout { path: id, consecutive });
        if loses_flight {
            self.lose_flight(now, slot);
        }
        let event = RecoveryEvent::Timeout { path: id, consecutive, alternatives };
        let action = self.policies.recovery.on_event(now, event, self.paths.views());
        self.carry_out(now, action, None);
        if alternatives {
            self.move_control(slot);
        }
        if cwnd < before {
            self.on_cwnd_reduced(now, slot, cwnd, true);
        }
        if alternatives && self.seems_dead(slot) {
            self.suspect(now, slot, "nothing heard for a probe timeout");
        }
        self.look_elsewhere(slot);
        self.note_silence(now, slot);
        self.tell_scheduler(now, [SchedulerEvent::Timeout(id)]);
    }

    /// Whether a path has timed out and chance losses do not explain its silence.
    pub(super) fn seems_dead(&self, slot: PathIndex) -> bool {
        let path = &self.paths[slot];
        self.policies.recovery.avoids_silent_paths() && path.liveness.seems_dead(path.loss.mean)
    }

    /// Sends the control frames in flight on a path again, whatever happens to its data, since the
    /// peer may wait for them.
    fn move_control(&mut self, slot: PathIndex) {
        let numbers = self.paths[slot].sent.open().filter(|(_, packet)| packet.has_control);
        for number in numbers.map(|(number, _)| number).collect::<Vec<_>>() {
            self.control_written_off(slot, number);
        }
    }

    /// Declares everything in flight on a path lost.
    pub(super) fn lose_flight(&mut self, now: Time, slot: PathIndex) {
        let mut numbers = core::mem::take(&mut self.scratch.numbers);
        numbers.clear();
        numbers.extend(self.paths[slot].sent.open().map(|(number, _)| number));
        let mut outcome = AckOutcome::of(&self.paths[slot]);
        for number in &numbers {
            self.declare_lost(now, slot, *number, &mut outcome);
        }
        self.scratch.numbers = numbers;
        self.settle(now, slot, &outcome);
    }

    /// Makes all symbols that a path carries due on the other paths, without telling congestion
    /// control.
    pub(super) fn reinject(&mut self, now: Time, slot: PathIndex) {
        self.write_off(now, slot, 0);
        self.take_back(slot, 0);
    }

    /// Treats the packets in flight on a path beyond the oldest `keep` bytes as missing.
    fn write_off(&mut self, now: Time, slot: PathIndex, keep: u64) {
        let mut numbers = core::mem::take(&mut self.scratch.numbers);
        numbers.clear();
        let mut bytes = 0;
        for (number, packet) in self.paths[slot].sent.open() {
            bytes += u64::from(packet.bytes);
            if bytes > keep {
                numbers.push(number);
            }
        }
        let mut packets = 0;
        for number in &numbers {
            let Some(packet) = self.paths[slot].sent.resolve(*number, Fate::WrittenOff) else {
                continue;
            };
            if packet.has_control {
                self.control_written_off(slot, *number);
            }
            packets += u32::from(packet.carried.is_some());
            let mut nth = 0;
            while let Some(carried) = self.paths[slot].sent.symbol(*number, &packet, nth) {
                self.send[carried.space()].on_resolved(carried, slot.0, false);
                self.symbol_lost(now, slot, carried);
                self.touch(carried.block());
                nth += 1;
            }
        }
        self.provision_all(now);
        self.scratch.numbers = numbers;
        if packets > 0 {
            let path = self.paths[slot].id;
            self.observe(now, Observation::Reinjected { path, packets });
        }
    }

    /// Stops using a path until a packet arrives on it.
    pub(super) fn suspect(&mut self, now: Time, slot: PathIndex, reason: &'static str) {
        if !self.paths[slot].is_usable() {
            return;
        }
        self.paths[slot].suspect();
        // A suspect path is probed more often, so the next probe may be overdue.
        if self.paths[slot].timeout_at().is_some_and(|at| at <= now) {
            self.paths[slot].liveness.ask_for_sign(now);
            self.paths[slot].liveness.restart_timer(now);
        }
        let path = self.paths[slot].id;
        self.observe(now, Observation::PathState { path, state: PathState::Suspect, reason });
        let action =
            self.policies.recovery.on_event(now, RecoveryEvent::PathDown(path), self.paths.views());
        self.carry_out(now, action, None);
        self.emit(Event::PathDown(path));
        self.went_down(now, slot);
    }

    /// Handles a path that is no longer usable: its queue is emptied, and any hold on it ends.
    pub(super) fn went_down(&mut self, now: Time, slot: PathIndex) {
        self.take_back(slot, 0);
        self.paths[slot].turn.release_all();
        self.tell_scheduler(now, [SchedulerEvent::PathDown(self.paths[slot].id)]);
    }

    /// Notes that packets of a path were acknowledged, of which the newest left at `sent`.
    pub(super) fn heard(&mut self, now: Time, slot: PathIndex, sent: Time) {
        let before = self.paths[slot].state();
        self.paths[slot].on_feedback(now, sent);
        let state = self.paths[slot].state();
        if before == PathState::Suspect && state == PathState::Probation {
            self.path_is_up(now, slot, "heard again");
        } else if before != state {
            let path = self.paths[slot].id;
            self.observe(now, Observation::PathState { path, state, reason: "proved itself" });
        }
    }

    pub(super) fn path_is_up(&mut self, now: Time, slot: PathIndex, reason: &'static str) {
        let (path, state) = (self.paths[slot].id, self.paths[slot].state());
        self.observe(now, Observation::PathState { path, state, reason });
        self.emit(Event::PathUp(path));
        let action =
            self.policies.recovery.on_event(now, RecoveryEvent::PathUp(path), self.paths.views());
        self.carry_out(now, action, None);
        self.tell_scheduler(now, [SchedulerEvent::PathUp(path)]);
        // Other paths may have been kept only because there was no alternative.
        for other in self.paths.indices().filter(|other| *other != slot) {
            if self.seems_dead(other) {
                self.suspect(now, other, "silent while another path answers");
            }
        }
    }
}
