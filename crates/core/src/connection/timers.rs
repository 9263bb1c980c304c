//! The timers of a connection.

use anabranch_policy::scheduler::SchedulerEvent;
use anabranch_policy::view::PathState;
use anabranch_types::Time;
use core::time::Duration;

use super::Connection;
use super::feedback::AckOutcome;
use super::paths::PathIndex;
use crate::path::Path;
use crate::wire::CloseCode;

/// Time with nothing in flight after which a sender without credit probes the peer.
const BLOCKED_PROBE: Duration = Duration::from_secs(1);

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReason {
    /// A pacer admits the next packet.
    Pacing,
    /// An acknowledgement is due.
    Acknowledgement,
    /// A packet will count as lost.
    Loss,
    /// A path was silent for too long.
    Probe,
    /// A path's address is still unproven.
    Challenge,
    /// The scheduler wants to be asked, or has held a path until now.
    Scheduler,
    /// A block has waited for further data long enough.
    Block,
    /// A path has been idle for the keep-alive interval.
    KeepAlive,
    /// Keys are to be renewed, or old keys dropped.
    Rekey,
    /// The connection id of a closed path becomes free.
    ConnectionIds,
    /// No packet arrived for the idle timeout.
    Idle,
    /// A closed connection can be forgotten.
    Closed,
    /// A handshake message is repeated.
    Handshake,
}

/// The earliest of several deadlines, with its reason.
#[derive(Debug, Default)]
pub(crate) struct Earliest(Option<(Time, TimeoutReason)>);

impl Earliest {
    pub(crate) fn add(&mut self, time: Option<Time>, reason: TimeoutReason) {
        if let Some(time) = time
            && self.0.is_none_or(|(earliest, _)| time < earliest)
        {
            self.0 = Some((time, reason));
        }
    }

    pub(crate) fn get(&self) -> Option<(Time, TimeoutReason)> {
        self.0
    }
}

impl Connection {
    /// When to call [`handle_timeout`](Self::handle_timeout) and poll again, and why.
    pub fn next_timeout(&self) -> Option<(Time, TimeoutReason)> {
        let mut earliest = Earliest::default();
        if self.is_closed() {
            earliest.add(self.closing.deadline(), TimeoutReason::Closed);
            return earliest.get();
        }
        for (slot, path) in self.paths.indexed() {
            if !path.can_send() {
                continue;
            }
            earliest.add(path.acks.due(), TimeoutReason::Acknowledgement);
            earliest.add(path.loss_time, TimeoutReason::Loss);
            earliest.add(path.timeout_at(), TimeoutReason::Probe);
            earliest.add(path.ask_at(), TimeoutReason::Probe);
            earliest.add(path.validation.due(), TimeoutReason::Challenge);
            earliest.add(path.candidates.due(), TimeoutReason::Challenge);
            earliest.add(self.keepalive_at(slot), TimeoutReason::KeepAlive);
            earliest.add(path.mtu.deadline(), TimeoutReason::Loss);
            if self.may_carry_data(slot) {
                self.sending_timers(slot, &mut earliest);
            }
        }
        earliest.add(self.wakeup(), TimeoutReason::Scheduler);
        earliest.add(self.linger_ends(), TimeoutReason::Block);
        earliest.add(self.blocked_probe_at(), TimeoutReason::Probe);
        earliest.add(self.heartbeat_at(), TimeoutReason::KeepAlive);
        earliest.add(self.silent_at(), TimeoutReason::Probe);
        earliest.add(self.keys.next_timeout(), TimeoutReason::Rekey);
        earliest.add(self.ids.free_at(), TimeoutReason::ConnectionIds);
        let idle = self.config.idle_timeout.map(|timeout| self.last_received + timeout);
        earliest.add(idle, TimeoutReason::Idle);
        earliest.get()
    }

    fn sending_timers(&self, slot: PathIndex, earliest: &mut Earliest) {
        let path = &self.paths[slot];
        let queue = &path.queue;
        earliest.add(queue.next_ripening(), TimeoutReason::Scheduler);
        let pacing = path.pacer.next_send(path.packet_size);
        if !path.cwnd_open() || pacing == Time::ZERO {
            earliest.add(path.turn.hold_until(), TimeoutReason::Scheduler);
            return;
        }
        let wanted = match path.turn.hold_until() {
            _ if queue.is_ripe() => Some(pacing),
            Some(until) => Some(until.max(pacing)),
            None => (!path.turn.is_idle(self.attention.changes())).then_some(pacing),
        };
        earliest.add(wanted, TimeoutReason::Pacing);
    }

    /// When the scheduler wants to be woken.
    fn wakeup(&self) -> Option<Time> {
        self.attention.wakes_at(self.policies.scheduler.wakeup())
    }

    /// Performs all actions that are due by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.is_closed() {
            return;
        }
        if let Some(timeout) = self.config.idle_timeout
            && now >= self.last_received + timeout
        {
            self.vanish(now, CloseCode::IDLE, "nothing was heard for the idle timeout");
            return;
        }
        for slot in self.paths.indices() {
            if self.paths[slot].can_send() {
                self.path_timers(now, slot);
            }
        }
        if self.wakeup().is_some_and(|time| time <= now) {
            self.attention.wake(now);
            self.tell_scheduler(now, [SchedulerEvent::Wakeup]);
        }
        if self.blocked_probe_at().is_some_and(|at| at <= now) {
            for path in self.paths.iter_mut().filter(|path| may_answer(path)) {
                path.liveness.ask_for_sign(now);
            }
        }
        if self.heartbeat_at().is_some_and(|at| at <= now) {
            self.beat(now);
        }
        if self.silent_at().is_some_and(|at| at <= now) {
            self.on_silent(now);
        }
        self.keys.forget_previous(now);
        if self.ids.free_at().is_some_and(|at| at <= now) {
            self.tend_ids(now);
        }
        self.note_drained();
    }

    /// When to probe the peer because its credit is used up and nothing in flight would be
    /// answered: new credit may have gone to a former address of this side (compare RFC 9000 §4.1).
    fn blocked_probe_at(&self) -> Option<Time> {
        let in_flight = self.paths.iter().any(|path| path.sent.packets_in_flight > 0);
        if in_flight || !self.is_blocked() {
            return None;
        }
        let paths = self.paths.iter().filter(|path| may_answer(path));
        let latest = paths.map(|path| path.liveness.last_active()).max();
        latest.map(|time| time + BLOCKED_PROBE)
    }

    fn path_timers(&mut self, now: Time, slot: PathIndex) {
        if self.paths[slot].acks.due().is_some_and(|due| due <= now) {
            self.report(now, slot);
        }
        if self.paths[slot].queue.ripen(now) {
            self.changed();
        }
        if self.paths[slot].turn.release(now) {
            self.changed();
        }
        if self.paths[slot].validation.due().is_some_and(|again| again <= now) {
            self.challenge(now, slot);
            self.note_silence(now, slot);
        }
        self.paths[slot].candidates.on_timer(now);
        if self.paths[slot].loss_time.is_some_and(|time| time <= now) {
            self.loss_timer(now, slot);
        }
        self.mtu_timer(now, slot);
        if self.keepalive_at(slot).is_some_and(|at| at <= now) {
            self.paths[slot].liveness.ask_for_sign(now);
        }
        if self.paths[slot].timeout_at().is_some_and(|time| time <= now) {
            self.path_timeout(now, slot);
        } else if self.paths[slot].ask_at().is_some_and(|time| time <= now) {
            self.paths[slot].liveness.ask_in_silence(now);
        }
    }

    fn loss_timer(&mut self, now: Time, slot: PathIndex) {
        let mut outcome = AckOutcome::of(&self.paths[slot]);
        self.detect_losses(now, slot, &mut outcome);
        if outcome.lost_packets > 0 {
            self.inform_congestion(now, slot, &outcome);
        }
        self.settle(now, slot, &outcome);
    }
}

/// Whether a probe on the path may be answered.
fn may_answer(path: &Path) -> bool {
    !matches!(path.state(), PathState::Suspect | PathState::Closed)
}
