//! Timeouts, shrunk windows and subflows that come and go: the recovery policy decides, and this file carries out its
//! decisions.

use anabranch_policy::recovery::{RecoveryAction, RecoveryEvent};
use anabranch_policy::scheduler::SchedulerEvent;
use anabranch_policy::view::MAX_PATHS;
use anabranch_types::{PathId, Time};

use super::chunks::bit;
use super::sender::MetaSender;

impl MetaSender {
    /// Asks the recovery policy about `event`, carries out its answer, and returns it.
    pub(super) fn recover(&mut self, now: Time, event: RecoveryEvent) -> RecoveryAction {
        // Plain TCP has no other subflow to move data to, and its stream stays as it is.
        if self.is_plain() {
            return RecoveryAction::Nothing;
        }
        self.refresh_views(now);
        let action = self.recovery.on_event(now, event, &self.views);
        match action {
            // A subflow retransmits its losses by itself.
            RecoveryAction::Nothing | RecoveryAction::Repair | RecoveryAction::Resend => {}
            RecoveryAction::Reinject(path) => {
                self.reinject(path, usize::MAX);
                if let Some(index) = self.index_of(path) {
                    self.take_back_queue(index, 0);
                }
            }
            RecoveryAction::Copy(path) => {
                self.leave_copy(path);
                self.reinject(path, 1);
            }
            RecoveryAction::TakeBack(path, cwnd) => {
                self.unbind_beyond(path, cwnd);
                self.unqueue_beyond(path, cwnd);
            }
            RecoveryAction::TakeBackQueued(path, cwnd) => self.unqueue_beyond(path, cwnd),
        }
        self.changed();
        action
    }

    /// The retransmission timer of a subflow fired.
    pub(super) fn on_timeout(&mut self, now: Time, index: usize) {
        let path = PathId(index as u32);
        let Some(subflow) = self.subflows.get(index) else { return };
        let consecutive = subflow.sender.consecutive_timeouts();
        let alternatives = self.usable_slots() & !bit(index as u8) != 0;
        let event = RecoveryEvent::Timeout { path, consecutive, alternatives };
        let action = self.recover(now, event);
        if alternatives && action == RecoveryAction::Reinject(path) {
            self.suspect(now, index);
        }
        self.tell(now, SchedulerEvent::Timeout(path));
    }

    /// The data of a silent subflow has been moved to others: it gets no new data until it is heard
    /// again.
    fn suspect(&mut self, now: Time, index: usize) {
        let path = PathId(index as u32);
        match self.subflows.get_mut(index) {
            Some(subflow) if !subflow.suspect => subflow.suspect = true,
            _ => return,
        }
        self.path_down(now, path);
    }

    /// An acknowledgement has come on a subflow.
    pub(super) fn heard(&mut self, now: Time, index: usize) {
        if let Some(subflow) = self.subflows.get_mut(index)
            && subflow.suspect
            && subflow.sender.consecutive_timeouts() == 0
        {
            subflow.suspect = false;
            self.path_up(now, PathId(index as u32));
        }
    }

    /// A path became usable.
    pub(super) fn path_up(&mut self, now: Time, path: PathId) {
        self.set_up(path, true);
        self.recover(now, RecoveryEvent::PathUp(path));
        self.tell(now, SchedulerEvent::PathUp(path));
    }

    /// A path stopped being usable. Its queue is taken back whatever the policy answers.
    pub(super) fn path_down(&mut self, now: Time, path: PathId) {
        self.set_up(path, false);
        if let Some(index) = self.index_of(path) {
            self.take_back_queue(index, 0);
        }
        self.recover(now, RecoveryEvent::PathDown(path));
        self.tell(now, SchedulerEvent::PathDown(path));
    }

    fn set_up(&mut self, path: PathId, up: bool) {
        let subflow = self.index_of(path).and_then(|index| self.subflows.get_mut(index));
        if let Some(subflow) = subflow {
            subflow.up = up;
        }
        self.changed();
    }

    /// Makes the first `most` outstanding chunks in a subflow's stream due on others, except those
    /// that have arrived or that another usable subflow has. The subflow keeps the chunks too.
    fn reinject(&mut self, path: PathId, most: usize) {
        let others = self.usable_slots() & !bit(path.0 as u8);
        let Some(source) = self.index_of(path).and_then(|index| self.subflows.get(index)) else {
            return;
        };
        let chunks = &mut self.chunks;
        let missing = source.bindings.chunks().filter(|chunk| chunk.end() > self.shared.una);
        for chunk in missing.take(most) {
            chunks.make_due(chunk.id, others);
        }
    }

    /// A subflow timed out: another one becomes responsible for its first chunk, and the subflow
    /// that timed out keeps a copy (pTCP §3, redundant striping). A subflow with only a copy does
    /// not keep the chunk from becoming due, so the chunk becomes due again with each timeout of
    /// the subflow that is responsible for it.
    fn leave_copy(&mut self, path: PathId) {
        let Some(index) = self.index_of(path) else { return };
        let Some(source) = self.subflows.get(index) else { return };
        if let Some(first) = source.bindings.chunks().find(|chunk| chunk.end() > self.shared.una) {
            self.chunks.leave_copy(first.id, index as u8);
        }
    }

    /// Takes back a subflow's chunks beyond its first `cwnd` outstanding bytes (pTCP's `shrunk`).
    /// Those that were sent already may still arrive; the receiver drops duplicates.
    fn unbind_beyond(&mut self, path: PathId, cwnd: u64) {
        let Some(index) = self.index_of(path) else { return };
        let others = self.usable_slots();
        let Some(source) = self.subflows.get_mut(index) else { return };
        let (slot, una) = (index as u8, self.shared.una);
        let from = source.sender.acknowledged().saturating_add(cwnd);
        let (chunks, statistics) = (&mut self.chunks, &mut self.statistics);
        source.bindings.unbind_from(from, |chunk| {
            chunks.on_unbound(chunk.id, slot);
            if chunk.end() > una {
                statistics.unbound_bytes += chunk.len;
                chunks.make_due(chunk.id, others);
            }
        });
    }

    /// Takes back the queued chunks that do not fit into `cwnd` bytes together with the subflow's
    /// outstanding data.
    fn unqueue_beyond(&mut self, path: PathId, cwnd: u64) {
        let Some(index) = self.index_of(path) else { return };
        let Some(subflow) = self.subflows.get(index) else { return };
        let outstanding = subflow.sender.written() - subflow.sender.acknowledged();
        let keep = cwnd.saturating_sub(outstanding) / u64::from(self.config.subflow.mss.max(1));
        self.take_back_queue(index, usize::try_from(keep).unwrap_or(usize::MAX));
    }

    /// Whether a subflow's timer has fired and nothing has been acknowledged since.
    pub(super) fn is_silent(&self, index: usize) -> bool {
        self.subflows.get(index).is_some_and(|flow| flow.sender.consecutive_timeouts() > 0)
    }

    /// Takes back all chunks in a subflow's queue but the first `keep`.
    pub(super) fn take_back_queue(&mut self, index: usize, keep: usize) {
        let others = self.usable_slots();
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        while subflow.queue.len() > keep
            && let Some(chunk) = subflow.queue.pop_last()
        {
            self.chunks.on_unqueued(chunk.id, index as u8);
            self.chunks.make_due(chunk.id, others);
        }
    }

    /// A subflow has been removed: all its chunks must go to other subflows, whatever the policy.
    pub(super) fn release_all(&mut self, index: usize) {
        self.take_back_queue(index, 0);
        let others = self.usable_slots();
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        let chunks = &mut self.chunks;
        subflow.bindings.unbind_from(0, |chunk| {
            chunks.on_unbound(chunk.id, index as u8);
            chunks.make_due(chunk.id, others);
        });
    }

    /// The slots of usable subflows, as a mask.
    pub(super) fn usable_slots(&self) -> u16 {
        let usable = (0_u8..).zip(&self.subflows).filter(|(_, subflow)| subflow.is_usable());
        usable.fold(0, |mask, (slot, _)| mask | bit(slot))
    }

    /// The subflow of a path, if there is one.
    pub(super) fn index_of(&self, path: PathId) -> Option<usize> {
        Some(path.index()).filter(|index| *index < self.subflows.len().min(MAX_PATHS))
    }
}
