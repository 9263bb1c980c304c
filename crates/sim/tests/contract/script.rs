//! A scheduler that follows a case's script and records the events it gets.

use std::sync::{Arc, Mutex, MutexGuard};

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::{BlockView, PathView, SchedulerView};
use anabranch_types::{PathId, Time};

/// The events and views that a scheduler got, and the actions that the case wants.
#[derive(Debug, Default)]
pub struct Notes {
    pub heard: Vec<(Time, SchedulerEvent)>,
    pub pulls: Vec<(Time, u32)>,
    /// The blocks, and below the paths, of the newest pull.
    pub blocks: Vec<BlockView>,
    pub paths: Vec<PathView>,
    /// Actions for the next event.
    pub actions: Vec<SchedulerAction>,
    pub wakeup: Option<Time>,
    /// Whether the case is over and all remaining data is to be sent.
    pub finishing: bool,
    /// A number for the case's own use.
    pub stage: u64,
}

/// The notes of a scheduler, shared with its case.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Notes>>);

impl Shared {
    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().expect("no case goes on after a panic")
    }

    /// How often `event` was reported.
    pub fn count(&self, event: SchedulerEvent) -> usize {
        self.notes().heard.iter().filter(|(_, heard)| *heard == event).count()
    }
}

type Answer = fn(&mut Notes, PathId, &SchedulerView<'_>, &mut Vec<Pick>) -> Pull;

/// A scheduler that answers pulls by a function of the case.
#[derive(Debug)]
pub struct Script {
    pub shared: Shared,
    pub answer: Answer,
}

impl Scheduler for Script {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        let mut notes = self.shared.notes();
        notes.heard.push((view.now, event));
        actions.append(&mut notes.actions);
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let mut notes = self.shared.notes();
        notes.pulls.push((view.now, path.0));
        notes.blocks = view.blocks.to_vec();
        notes.paths = view.paths.to_vec();
        if notes.finishing {
            return greedy(&mut notes, path, view, picks);
        }
        (self.answer)(&mut notes, path, view, picks)
    }

    fn wakeup(&self) -> Option<Time> {
        self.shared.notes().wakeup
    }
}

pub fn pick(work: Work, count: u16, path: u32) -> Pick {
    Pick { work, count, path: PathId(path), not_before: Time::ZERO }
}

/// Picks due work first, then new data, for the path that asks.
pub fn greedy(
    _: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    let due = view.blocks.iter().find(|block| block.has_work());
    let due = due.map(|block| Work::Block(block.id));
    match due.or((view.fresh.symbols > 0).then_some(Work::Fresh)) {
        Some(work) => {
            picks.push(pick(work, 1, path.0));
            Pull::Send("greedy")
        }
        None => Pull::Idle("nothing"),
    }
}

/// Picks nothing for any path. Only assigned work and the engine's own retransmissions leave.
pub fn idle(_: &mut Notes, _: PathId, _: &SchedulerView<'_>, _: &mut Vec<Pick>) -> Pull {
    Pull::Idle("told to")
}
