//! Sends copies of all data or of one class on several paths; the first copy that arrives counts.

use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

use crate::registry::{Entry, Options, PolicyError, PolicySpec, option};
use crate::scheduler::work::{NOTHING, arrival, carrier, carriers, fresh, send};
use crate::scheduler::{
    Pick, Pull, Reason, Scheduler, SchedulerAction, SchedulerEvent, TABLE, Work,
};
use crate::view::{BlockView, Blocked, MAX_PATHS, PathView, SchedulerView, TrafficClass};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "redundant",
    summary: "each of several paths carries a copy of every symbol not acknowledged yet",
    source: "the MPTCP implementation for Linux, its redundant scheduler; M-TCP §III-B; the choice of paths is our own",
    options: &[
        option("paths", "paths that carry copies, at most: those on which they arrive first", "16"),
        option("jitter", "longest delay of a copy after its original; the delay is uniform", "0ms"),
        option(
            "class",
            "what is copied: one class (interactive, live, bulk), or all of them",
            "all",
        ),
        option("rest", "the scheduler for what is not copied, by name, with its defaults", "blind"),
    ],
};

/// A chosen path's time counts less by this factor, so that two similar paths do not alternate.
const LOYALTY: f64 = 0.8;

/// Of the copied class, a path sends due work first, then a copy of the oldest symbol in flight
/// that it does not carry, then new data. A path that lags copies symbols in flight; a path that
/// leads sends new ones. A lost copy is replaced while another is still in flight.
///
/// If there are more paths than may carry copies, they are chosen as M-TCP chooses its routes
/// (§III-A): first the path on which a symbol is expected to arrive first, then the next ones that
/// share no bottleneck with a chosen path, then the others.
#[derive(Debug)]
pub struct Redundant {
    paths: usize,
    jitter: Duration,
    class: Option<TrafficClass>,
    rest: Rest,
    chosen: Vec<PathId>,
    random: Rng,
}

/// Data that is not copied, and its scheduler.
#[derive(Debug)]
pub(super) struct Rest {
    scheduler: Box<dyn Scheduler>,
    /// Paths that `scheduler` holds back, and until when. Copies still leave on them.
    held: Vec<(PathId, Time)>,
    /// The blocks that `scheduler` is shown: those that are not copied.
    blocks: Vec<BlockView>,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let [interactive, live, bulk] = TrafficClass::ALL.map(|class| (class.name(), Some(class)));
    let classes = [("all", None), interactive, live, bulk];
    let names = TABLE.iter().map(|(entry, _)| (entry.name, entry.name));
    let others: Vec<_> = names.filter(|(name, _)| *name != ENTRY.name).collect();
    let rest = super::build(&PolicySpec::new(options.choice("rest", &others)?))?;
    Ok(Box::new(Redundant {
        paths: options.integer("paths", 1..=MAX_PATHS as u64)? as usize,
        jitter: options.duration("jitter", Duration::ZERO..=Duration::from_secs(1))?,
        class: options.choice("class", &classes)?,
        rest: Rest::of(rest),
        chosen: Vec::new(),
        random: Rng::substream(0, "scheduler.redundant.jitter"),
    }))
}

/// Time that a symbol takes on a path, for comparison: multiplied by [`LOYALTY`] if the path
/// already carries copies.
fn time_on(path: &PathView, chosen: &[PathId], view: &SchedulerView<'_>) -> Duration {
    let time = arrival(path, view);
    if chosen.contains(&path.id) { time.mul_f64(LOYALTY) } else { time }
}

impl Redundant {
    fn copies(&self, class: TrafficClass) -> bool {
        self.class.is_none_or(|copied| copied == class)
    }

    /// Chooses the paths that carry copies.
    fn choose(&mut self, view: &SchedulerView<'_>) {
        let all = || carriers(view);
        if all().count() <= self.paths {
            self.chosen.clear();
            self.chosen.extend(all().map(|path| path.id));
            return;
        }
        let before = core::mem::take(&mut self.chosen);
        let mut taken: u16 = 0;
        while self.chosen.len() < self.paths {
            let left = all().filter(|path| !self.chosen.contains(&path.id));
            let next = left.min_by_key(|path| {
                (path.shares & taken != 0, time_on(path, &before, view), path.id)
            });
            let Some(next) = next else { break };
            self.chosen.push(next.id);
            taken |= 1_u16.checked_shl(u32::from(next.slot)).unwrap_or(0);
        }
    }

    /// Whether a new symbol that is to be copied may leave on `path`. If copies are delayed, the
    /// original goes on the quickest path that has room.
    fn may_begin(&self, path: &PathView, view: &SchedulerView<'_>) -> bool {
        let quicker =
            |other: &PathView| (arrival(other, view), other.id) < (arrival(path, view), path.id);
        let mut others = carriers(view).filter(|other| self.chosen.contains(&other.id));
        self.jitter.is_zero() || !others.any(|other| other.ready && quicker(other))
    }

    /// Work of the class that is copied, and the reason, if there is any for this path.
    fn work(&self, path: &PathView, view: &SchedulerView<'_>) -> Option<(Work, Reason)> {
        let mut blocks = view.blocks.iter().filter(|block| self.copies(block.class));
        let begins = self.may_begin(path, view);
        let due = |block: &&BlockView| begins && block.has_work();
        if let Some(block) = blocks.clone().find(due) {
            return Some((Work::Block(block.id), "oldest due"));
        }
        // Delayed copies in the path's queue take room too.
        let room = self.jitter.is_zero() || path.free_packets() > 0;
        if let Some(block) = blocks.find(|block| room && block.uncopied(path) > 0) {
            return Some((Work::Copy(block.id), "copy of the oldest"));
        }
        let new = fresh(view).filter(|_| begins && self.copies(view.fresh.class));
        new.map(|work| (work, "new data"))
    }

    fn wait(&mut self) -> Duration {
        let most = u64::try_from(self.jitter.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.below(most.saturating_add(1)))
    }
}

impl Scheduler for Redundant {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        if self.class.is_some() {
            self.rest.on_event(event, view, actions);
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let own = match carrier(view, path) {
            Ok(own) => own,
            Err(idle) => return idle,
        };
        self.choose(view);
        let carries = self.chosen.contains(&path);
        match self.work(own, view).filter(|_| carries) {
            Some((work @ Work::Copy(_), reason)) if !self.jitter.is_zero() => {
                let not_before = view.now + self.wait();
                picks.push(Pick { work, count: 1, path, not_before });
                Pull::Send(reason)
            }
            Some((work, reason)) => send(picks, path, work, reason),
            None => match self.class {
                // Other paths carry the copied data that is next; the data after it need not wait
                // for them.
                Some(copied) if view.fresh.class == copied && view.fresh.beyond > 0 => {
                    let count = view.fresh.symbols.min(u16::MAX.into()) as u16;
                    picks.push(Pick { work: Work::Ahead, count, path, not_before: Time::ZERO });
                    Pull::Send("cut for the paths that carry copies")
                }
                Some(copied) => self.rest.pull(copied, path, view, picks),
                None => NOTHING,
            },
        }
    }

    fn wakeup(&self) -> Option<Time> {
        self.class.and_then(|_| self.rest.wakeup())
    }
}

impl Rest {
    pub(super) fn of(scheduler: Box<dyn Scheduler>) -> Self {
        Rest { scheduler, held: Vec::new(), blocks: Vec::new() }
    }

    pub(super) fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        self.held.retain(|(_, until)| *until > view.now);
        let is_due = self.scheduler.wakeup().is_some_and(|time| time <= view.now);
        if event != SchedulerEvent::Wakeup || is_due {
            self.scheduler.on_event(event, view, actions);
        }
    }

    /// Asks the scheduler of the rest, which is shown nothing of the class that is copied.
    pub(super) fn pull(
        &mut self,
        copied: TrafficClass,
        path: PathId,
        view: &SchedulerView<'_>,
        picks: &mut Vec<Pick>,
    ) -> Pull {
        if self.held.iter().any(|(held, until)| *held == path && *until > view.now) {
            return Pull::Idle("held, but for copies");
        }
        self.blocks.clear();
        self.blocks.extend(view.blocks.iter().filter(|block| block.class != copied));
        let mut fresh = view.fresh;
        if fresh.class == copied {
            fresh.symbols = 0;
            fresh.blocked = Some(Blocked::Application);
        }
        let view = SchedulerView { blocks: &self.blocks, fresh, ..*view };
        match self.scheduler.pull(path, &view, picks) {
            Pull::Hold(until, reason) if until > view.now => {
                self.held.push((path, until));
                Pull::Idle(reason)
            }
            answer => answer,
        }
    }

    pub(super) fn wakeup(&self) -> Option<Time> {
        let held = self.held.iter().map(|(_, until)| *until);
        held.chain(self.scheduler.wakeup()).min()
    }
}
