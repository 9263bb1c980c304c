//! The snapshots that policies see, and the calls to the policies.

use core::time::Duration;

use anabranch_policy::Scheduler;
use anabranch_policy::redundancy::{RedundancyPolicy, RedundancyView};
use anabranch_policy::scheduler::{Pull, SchedulerAction, SchedulerEvent};
use anabranch_policy::view::{
    BlockId, Blocked, Demand, FreshView, LossView, MAX_PATHS, SchedulerView, SymbolSpace,
    TrafficClass,
};
use anabranch_types::Time;

use super::Connection;
use super::paths::{PathIndex, PathTable};
use crate::coding::spaces::SendSpaces;
use crate::stream::Streams;

impl Connection {
    /// Brings every path's snapshot up to date.
    pub(super) fn refresh_views(&mut self, now: Time) {
        self.paths.refresh(now, self.send.widest());
    }

    fn fresh(&self) -> FreshView {
        let pending = self.pending();
        let class = pending.class.unwrap_or_default();
        let space = self.send.of_class(class);
        let send = &self.send[space];
        let symbol_size = send.open_symbol_size().unwrap_or(self.symbol_capacity());
        let credit = self.symbol_credit(space);
        let each = u64::from(symbol_size.max(1));
        let wanted = pending.bytes.div_ceil(each);
        let symbols = wanted.min(credit);
        let left = match space {
            SymbolSpace::Main => credit - symbols,
            SymbolSpace::Live => self.symbol_credit(SymbolSpace::Main),
        };
        let beyond = pending.beyond.div_ceil(each).min(left);
        let blocked = match (symbols, wanted) {
            (0, 0) => Some(pending.blocked.unwrap_or(Blocked::Application)),
            (0, _) => Some(Blocked::DecoderCredit),
            _ => None,
        };
        let in_stream = self.streams.credit(class).div_ceil(each);
        let credit = credit.min(in_stream);
        let unrecovered = send.next_symbol().0.saturating_sub(send.floor().0);
        FreshView {
            symbols: symbols.min(u64::from(u32::MAX)) as u32,
            beyond: beyond.min(u64::from(u32::MAX)) as u32,
            next: send.next_symbol(),
            more: pending.more,
            class,
            symbol_size,
            blocked,
            credit: credit.min(u64::from(u32::MAX)) as u32,
            window: credit.saturating_add(unrecovered).min(u64::from(u32::MAX)) as u32,
        }
    }

    /// Whether there is data to send and only the receiver's credit is missing.
    pub(super) fn is_blocked(&self) -> bool {
        self.fresh().blocked.is_some_and(Blocked::by_receiver)
    }

    /// Asks the redundancy policy about data of a class.
    pub(super) fn ask_redundancy<R>(
        &mut self,
        now: Time,
        class: TrafficClass,
        ask: impl FnOnce(&mut dyn RedundancyPolicy, &RedundancyView<'_>) -> R,
    ) -> R {
        self.refresh_views(now);
        let max_symbol_size = self.symbol_capacity();
        let Connection { paths, send, streams, policies, .. } = self;
        let loss = policies.estimator.aggregate();
        let surroundings = Surroundings { paths, send, streams, loss, max_symbol_size };
        ask(policies.redundancy.as_mut(), &surroundings.at(now, class))
    }

    /// Calls the scheduler with a view of the connection; the paths' snapshots must be up to date.
    fn ask_scheduler<R>(
        &mut self,
        now: Time,
        fresh: FreshView,
        ask: impl FnOnce(&mut dyn Scheduler, &SchedulerView<'_>) -> R,
    ) -> R {
        let (max_symbol_size, resends) = (self.symbol_capacity(), self.resends());
        let Connection { paths, send, streams, policies, .. } = self;
        let loss = policies.estimator.aggregate();
        let surroundings = Surroundings { paths, send, streams, loss, max_symbol_size };
        let surroundings = surroundings.at(now, fresh.class);
        let repairs = (!resends).then(|| Demand::of(policies.redundancy.as_ref(), &surroundings));
        let view = SchedulerView {
            now,
            paths: paths.views(),
            blocks: send.views(),
            fresh,
            demand: repairs.unwrap_or_default(),
        };
        ask(policies.scheduler.as_mut(), &view)
    }

    /// Asks the scheduler what `slot` sends; picks are left in the scratch space.
    pub(super) fn pull(&mut self, now: Time, slot: PathIndex) -> Pull {
        let fresh = self.watch_credit(now);
        self.refresh_views(now);
        let path = self.paths[slot].id;
        let mut picks = core::mem::take(&mut self.scratch.picks);
        picks.clear();
        let answer = self
            .ask_scheduler(now, fresh, |scheduler, view| scheduler.pull(path, view, &mut picks));
        self.scratch.picks = picks;
        answer
    }

    /// The new data that could be sent. Tells the scheduler, once per episode, that a path has room
    /// and only credit is missing.
    fn watch_credit(&mut self, now: Time) -> FreshView {
        let fresh = self.fresh();
        if !self.attention.lacks_credit(&fresh) {
            return fresh;
        }
        self.tell_scheduler(now, [SchedulerEvent::ReceiverLimited]);
        self.fresh()
    }

    /// Tells the scheduler of events, in order, and carries out its actions.
    pub(super) fn tell_scheduler(
        &mut self,
        now: Time,
        events: impl IntoIterator<Item = SchedulerEvent>,
    ) {
        let mut actions = core::mem::take(&mut self.scratch.actions);
        let mut up_to_date = false;
        for event in events {
            self.changed();
            if !up_to_date {
                self.refresh_views(now);
            }
            actions.clear();
            let fresh = self.fresh();
            self.ask_scheduler(now, fresh, |scheduler, view| {
                scheduler.on_event(event, view, &mut actions);
            });
            up_to_date = actions.is_empty();
            for action in &actions {
                self.act(now, *action);
            }
        }
        self.scratch.actions = actions;
    }

    fn act(&mut self, now: Time, action: SchedulerAction) {
        match action {
            SchedulerAction::Assign(pick) => {
                self.assign(now, pick, "assigned ahead");
            }
            SchedulerAction::TakeBack { path, keep } => {
                if let Some(slot) = self.paths.open(path) {
                    self.take_back(slot, usize::try_from(keep).unwrap_or(usize::MAX));
                }
            }
            SchedulerAction::Penalise(path) => {
                if let Some(slot) = self.paths.open(path) {
                    self.paths[slot].congestion.penalise();
                    self.paths[slot].update_pacing(now);
                }
            }
        }
    }

    /// The least smoothed round-trip time of all paths; no answer to a repair arrives sooner.
    fn quickest_rtt(&self) -> Duration {
        self.paths.iter().map(|path| path.rtt.view().smoothed).min().unwrap_or_default()
    }

    /// Asks the redundancy policy how many symbols a closed block still needs, and makes as many
    /// due.
    pub(super) fn provision(&mut self, now: Time, id: BlockId) {
        let views = self.send[id.space()].views();
        let Ok(index) = views.binary_search_by_key(&id, |view| view.id) else { return };
        let block = views[index];
        if !block.closed || self.resends() {
            return;
        }
        let more = self.ask_redundancy(now, block.class, |policy, view| {
            policy.still_needed(&block, &[0; MAX_PATHS], view)
        });
        if more > 0 {
            let rtt = self.quickest_rtt();
            self.send[id.space()].add_due(now, id, more, rtt);
            self.changed();
            let first = block.first;
            self.observe(now, crate::observe::Observation::RepairsDue { first, count: more });
        }
    }
}

/// State of a connection from which the redundancy policy's view is made.
struct Surroundings<'a, 'b> {
    paths: &'a PathTable,
    send: &'b SendSpaces,
    streams: &'b Streams,
    loss: LossView,
    max_symbol_size: u16,
}

impl<'a> Surroundings<'a, '_> {
    fn at(&self, now: Time, class: TrafficClass) -> RedundancyView<'a> {
        let space = self.send.of_class(class);
        let send = &self.send[space];
        let totals = send.totals();
        let waits = self.send.classes(space).any(|class| self.streams.is_waiting(class));
        RedundancyView {
            now,
            paths: self.paths.views(),
            loss: self.loss,
            max_symbols: send.max_symbols(),
            max_symbol_size: self.max_symbol_size,
            flushing: !waits,
            class,
            slides: send.slides(),
            sources_sent: totals.sources,
            repairs_unneeded: totals.repairs_unneeded,
        }
    }
}
