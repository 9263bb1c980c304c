//! A scheduler that follows a script and records the events it gets.

use std::sync::{Arc, Mutex};

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::SchedulerView;
use anabranch_policy::{congestion, recovery};
use anabranch_types::{PathId, Time};

use super::{MetaConfig, MetaSender, policy};

type OnEvent = Box<dyn FnMut(SchedulerEvent, &SchedulerView<'_>) -> Vec<SchedulerAction> + Send>;
type OnPull = Box<dyn FnMut(PathId, &SchedulerView<'_>, &mut Vec<Pick>) -> Pull + Send>;

/// The events that a scheduler hears, with their times.
pub(super) type Heard = Arc<Mutex<Vec<(Time, SchedulerEvent)>>>;

pub(super) struct Script {
    pub(super) on_event: OnEvent,
    pub(super) on_pull: OnPull,
    pub(super) wakeup: Arc<Mutex<Option<Time>>>,
    pub(super) heard: Heard,
}

impl core::fmt::Debug for Script {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Script")
    }
}

impl Script {
    /// A scheduler that records events and answers pulls by `on_pull`.
    pub(super) fn new(
        on_pull: impl FnMut(PathId, &SchedulerView<'_>, &mut Vec<Pick>) -> Pull + Send + 'static,
    ) -> Self {
        Script {
            on_event: Box::new(|_, _| Vec::new()),
            on_pull: Box::new(on_pull),
            wakeup: Arc::default(),
            heard: Heard::default(),
        }
    }

    /// Makes the scheduler answer events by `on_event`.
    pub(super) fn acting(
        mut self,
        on_event: impl FnMut(SchedulerEvent, &SchedulerView<'_>) -> Vec<SchedulerAction>
        + Send
        + 'static,
    ) -> Self {
        self.on_event = Box::new(on_event);
        self
    }
}

impl Scheduler for Script {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        self.heard.lock().expect("unpoisoned").push((view.now, event));
        actions.extend((self.on_event)(event, view));
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        (self.on_pull)(path, view, picks)
    }

    fn wakeup(&self) -> Option<Time> {
        *self.wakeup.lock().expect("unpoisoned")
    }
}

/// One symbol of `work` on a path, to leave at once.
pub(super) fn pick(work: Work, path: u32) -> Pick {
    Pick { work, count: 1, path: PathId(path), not_before: Time::ZERO }
}

/// Picks due work first, then new data, for the path that asks.
pub(super) fn greedy(path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
    let due = view.blocks.iter().find(|block| block.has_work());
    let work = due.map(|block| Work::Block(block.id));
    match work.or((view.fresh.symbols > 0).then_some(Work::Fresh)) {
        Some(work) => {
            picks.push(pick(work, path.0));
            Pull::Send("greedy")
        }
        None => Pull::Idle("nothing"),
    }
}

/// A sender over `paths` subflows that does what `script` says.
pub(super) fn sender(config: &MetaConfig, paths: usize, script: Script) -> MetaSender {
    let control = policy("reno:initial=4");
    let controls = (0..paths)
        .map(|_| congestion::build(&control, u64::from(config.subflow.mss)).expect("a controller"))
        .collect();
    let recovery = recovery::build(&config.recovery).expect("a policy");
    MetaSender::with_policies(config, controls, Box::new(script), recovery)
}
