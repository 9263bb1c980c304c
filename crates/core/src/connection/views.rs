//! Snapshots for policies, and the questions put to them.

use core::time::Duration;

use anabranch_policy::redundancy::RedundancyView;
use anabranch_policy::scheduler::{SchedulerAction, SchedulerEvent};
use anabranch_policy::view::{
    Blocked, Demand, FreshView, MAX_PATHS, PathState, SchedulerView, TrafficClass, WindowId,
};
use anabranch_policy::{LossDetector, Scheduler};
use anabranch_types::Time;

use super::{Bound, Connection};
use crate::path::{Path, ProbeTimeout};

impl Connection {
    /// Probe timeout of a path, before back-off.
    pub(super) fn base_timeout(&self, slot: usize) -> ProbeTimeout {
        probe_timeout(self.policies.detector.as_ref(), &self.paths[slot])
    }

    /// Brings every path's snapshot up to date.
    pub(super) fn refresh_views(&mut self, now: Time) {
        self.views.clear();
        for (slot, path) in self.paths.iter().enumerate() {
            let timeout = probe_timeout(self.policies.detector.as_ref(), path);
            let mut view = path.view(now, slot as u8, timeout);
            if self.is_usable(slot) && !self.fits(slot) {
                view.state = PathState::Validating;
            }
            self.views.push(view);
        }
    }

    fn fresh(&self) -> FreshView {
        let pending = self.streams.pending();
        let symbol_size = self.send.open_symbol_size().unwrap_or(self.symbol_capacity());
        let credit = self.symbol_credit();
        let wanted = pending.bytes.div_ceil(u64::from(symbol_size.max(1)));
        let symbols = wanted.min(credit);
        let blocked = match (symbols, wanted) {
            (0, 0) => Some(pending.blocked.unwrap_or(Blocked::Application)),
            (0, _) => Some(Blocked::DecoderCredit),
            _ => None,
        };
        FreshView {
            symbols: symbols.min(u64::from(u32::MAX)) as u32,
            more: pending.more,
            class: pending.class.unwrap_or_default(),
            symbol_size,
            blocked,
            window: credit.min(u64::from(u32::MAX)) as u32,
        }
    }

    /// There is something to send, and credit is what it lacks.
    pub(super) fn is_blocked(&self) -> bool {
        self.fresh().blocked.is_some_and(|blocked| blocked != Blocked::Application)
    }

    /// The redundancy policy's surroundings.
    pub(super) fn redundancy_view(&self, now: Time, class: TrafficClass) -> RedundancyView<'_> {
        let totals = self.send.totals();
        let pending = self.streams.pending();
        RedundancyView {
            now,
            paths: &self.views,
            loss: self.policies.estimator.aggregate(),
            max_symbols: self.send.max_symbols(),
            max_symbol_size: self.symbol_capacity(),
            waiting_bytes: pending.bytes,
            flushing: pending.bytes == 0,
            class,
            sources_sent: totals.sources,
            repairs_sent: totals.repairs,
            repairs_unneeded: totals.repairs_unneeded,
        }
    }

    /// Lets the scheduler look at the connection as it is now.
    fn ask_scheduler<R>(
        &mut self,
        now: Time,
        ask: impl FnOnce(&mut dyn Scheduler, &SchedulerView<'_>) -> R,
    ) -> R {
        self.refresh_views(now);
        let fresh = self.fresh();
        let mut scheduler = core::mem::replace(&mut self.policies.scheduler, Box::new(Absent));
        let surroundings = self.redundancy_view(now, fresh.class);
        let view = SchedulerView {
            now,
            paths: &self.views,
            windows: self.send.views(),
            fresh,
            demand: Demand::of(self.policies.redundancy.as_ref(), &surroundings),
        };
        let answer = ask(scheduler.as_mut(), &view);
        self.policies.scheduler = scheduler;
        answer
    }

    /// Asks the scheduler what `slot` sends; picks are left in the scratch space.
    pub(super) fn pull(&mut self, now: Time, slot: usize) -> anabranch_policy::scheduler::Pull {
        let path = self.paths[slot].id;
        let mut picks = core::mem::take(&mut self.scratch.picks);
        picks.clear();
        let answer =
            self.ask_scheduler(now, |scheduler, view| scheduler.pull(path, view, &mut picks));
        self.scratch.picks = picks;
        answer
    }

    /// Tells the scheduler of an event and carries out what it answers.
    pub(super) fn tell_scheduler(&mut self, now: Time, event: SchedulerEvent) {
        self.changed();
        let mut actions = core::mem::take(&mut self.scratch.actions);
        actions.clear();
        self.ask_scheduler(now, |scheduler, view| scheduler.on_event(event, view, &mut actions));
        for action in &actions {
            match *action {
                SchedulerAction::Bind(pick) => self.bind(now, pick, "bound ahead"),
                SchedulerAction::Unbind { path, keep } => {
                    if let Some(slot) = self.slot_of(path) {
                        self.unbind(slot, keep as usize);
                    }
                }
                SchedulerAction::Penalise(path) => {
                    if let Some(slot) = self.slot_of(path) {
                        self.paths[slot].congestion.penalise();
                    }
                }
            }
        }
        self.scratch.actions = actions;
    }

    /// Puts work into a path's queue. New symbols are cut now, so that their order is the binding's.
    pub(super) fn bind(
        &mut self,
        now: Time,
        pick: anabranch_policy::scheduler::Pick,
        reason: &'static str,
    ) {
        let Some(slot) = self.slot_of(pick.path) else { return };
        for _ in 0..pick.count {
            let taken = match pick.work {
                anabranch_policy::scheduler::Work::Fresh => match self.cut_symbol(now) {
                    Some(taken) => Some(taken),
                    None => break,
                },
                _ => None,
            };
            let not_before = pick.not_before;
            self.bound[slot].push_back(Bound { work: pick.work, taken, not_before, reason });
            self.paths[slot].bytes_queued += self.paths[slot].packet_size;
        }
    }

    /// Takes back what is bound to a path beyond its first `keep` entries.
    pub(super) fn unbind(&mut self, slot: usize, keep: usize) {
        while self.bound[slot].len() > keep {
            let Some(entry) = self.bound[slot].pop_back() else { break };
            let size = self.paths[slot].packet_size;
            self.paths[slot].bytes_queued = self.paths[slot].bytes_queued.saturating_sub(size);
            if let Some(taken) = entry.taken {
                self.send.make_due(taken.carried);
            }
        }
        self.changed();
    }

    /// The least smoothed round-trip time of all paths: no answer to a repair comes sooner.
    fn quickest_rtt(&self) -> Duration {
        self.paths.iter().map(|path| path.rtt.view().smoothed).min().unwrap_or_default()
    }

    /// Asks the redundancy policy what a closed window still needs, and makes that much due.
    pub(super) fn provision(&mut self, now: Time, id: WindowId) {
        let Ok(index) = self.send.views().binary_search_by_key(&id, |view| view.id) else {
            return;
        };
        let window = self.send.views()[index];
        if !window.closed || self.resends() {
            return;
        }
        self.refresh_views(now);
        let view = self.redundancy_view(now, window.class);
        let more = self.policies.redundancy.still_needed(&window, &[0; MAX_PATHS], &view);
        if more > 0 {
            let rtt = self.quickest_rtt();
            self.send.add_due(now, id, more, rtt);
            self.changed();
            let first = window.first.0;
            self.observe(now, crate::observe::Observation::RepairsDue { first, count: more });
        }
    }
}

fn probe_timeout(detector: &dyn LossDetector, path: &Path) -> ProbeTimeout {
    ProbeTimeout { base: detector.timeout(&path.rtt.view()), doublings: detector.backoff_limit() }
}

/// Stands in while the real scheduler is being asked.
#[derive(Debug)]
struct Absent;

impl Scheduler for Absent {
    fn pull(
        &mut self,
        _: anabranch_types::PathId,
        _: &SchedulerView<'_>,
        _: &mut Vec<anabranch_policy::scheduler::Pick>,
    ) -> anabranch_policy::scheduler::Pull {
        anabranch_policy::scheduler::Pull::Idle("absent")
    }
}
