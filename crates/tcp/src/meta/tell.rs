//! The scheduler's view, its events, and its actions outside a pull.

use anabranch_policy::scheduler::{SchedulerAction, SchedulerEvent};
use anabranch_policy::view::{Demand, PathView, SchedulerView};
use anabranch_types::{PathId, Time};

use super::sender::MetaSender;

impl MetaSender {
    /// Brings the snapshots of the subflows up to date.
    pub(super) fn refresh_views(&mut self, now: Time) {
        if self.views_at == Some(now) {
            return;
        }
        self.views_at = Some(now);
        self.views.clear();
        for (slot, subflow) in (0_u8..).zip(&self.subflows) {
            let loss = self.loss.as_ref().map(|loss| loss.path(PathId(u32::from(slot))));
            let loss = loss.unwrap_or_default();
            let mut view = PathView { loss, ..subflow.view(slot, now) };
            if let Some(sharing) = &self.sharing {
                sharing.complete(&mut view);
            }
            self.views.push(view);
        }
    }

    /// Something has changed: snapshots are out of date, and idle subflows ask for data again
    /// (pTCP's `resume`).
    pub(super) fn changed(&mut self) {
        self.changes += 1;
        self.views_at = None;
    }

    /// Tells the scheduler of an event and carries out its answer.
    pub(super) fn tell(&mut self, now: Time, event: SchedulerEvent) {
        self.refresh_views(now);
        let mut actions = core::mem::take(&mut self.actions);
        actions.clear();
        let view = SchedulerView {
            now,
            paths: &self.views,
            fresh: self.shared.fresh(self.chunks.next()),
            blocks: self.chunks.show(None),
            demand: Demand::default(),
        };
        self.scheduler.on_event(event, &view, &mut actions);
        for action in actions.drain(..) {
            self.act(action);
        }
        self.actions = actions;
    }

    fn act(&mut self, action: SchedulerAction) {
        match action {
            SchedulerAction::Assign(pick) => {
                let index = self.index_of(pick.path);
                if index.and_then(|at| self.subflows.get(at)).is_some_and(|s| s.is_usable()) {
                    self.assign(&pick);
                }
            }
            SchedulerAction::TakeBack { path, keep } => {
                if let Some(index) = self.index_of(path).filter(|_| !self.is_plain()) {
                    self.take_back_queue(index, keep as usize);
                }
            }
            SchedulerAction::Penalise(path) => {
                if let Some(subflow) =
                    self.index_of(path).and_then(|index| self.subflows.get_mut(index))
                {
                    subflow.sender.penalise();
                }
            }
        }
        self.changed();
    }

    /// Wakes the scheduler at the time that it asked for, once.
    pub(super) fn wake_scheduler(&mut self, now: Time) {
        if self.wakeup().is_some_and(|at| at <= now) {
            self.woken = Some(now);
            self.changed();
            self.tell(now, SchedulerEvent::Wakeup);
        }
    }

    /// When the scheduler wants to be woken, if that is after its last wakeup.
    pub(super) fn wakeup(&self) -> Option<Time> {
        self.scheduler.wakeup().filter(|at| self.woken.is_none_or(|woken| *at > woken))
    }

    /// A subflow has room in its window. If a full buffer at the receiver or the sender keeps it
    /// from sending, the scheduler is told, once for each buffer until chunks can be cut again.
    /// Returns whether anything has changed, so that a segment may have to leave.
    pub(super) fn note_limits(&mut self, now: Time) -> bool {
        let before = self.changes;
        if !self.receiver_limited && self.shared.is_shut() {
            self.receiver_limited = true;
            self.tell(now, SchedulerEvent::ReceiverLimited);
        }
        self.sender_limited &= self.shared.symbols() == 0;
        if !self.sender_limited && self.chunks.none_due() && self.shared.is_held_up() {
            self.sender_limited = true;
            let full = self.shared.room() == 0;
            self.tell(now, SchedulerEvent::SenderLimited { full });
        }
        self.changes != before
    }
}
