//! Paths take turns, a quota of symbols each.

use anabranch_types::PathId;

use crate::registry::{Entry, Options, PolicyError, option};
use crate::scheduler::work::{NOTHING, carrier, carriers, first_in_line, send};
use crate::scheduler::{Pick, Pull, Scheduler};
use crate::view::SchedulerView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "round-robin",
    summary: "paths with room take turns, a quota of symbols each",
    source: "the MPTCP implementation for Linux, its roundrobin scheduler",
    options: &[option("quota", "symbols before the turn passes on", "1")],
};

/// Paths take turns in the order of identifiers; paths without room are skipped.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    quota: u64,
    turn: Option<PathId>,
    taken: u64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let quota = options.integer("quota", 1..=10_000)?;
    Ok(Box::new(RoundRobin { quota, turn: None, taken: 0 }))
}

impl RoundRobin {
    /// The path with room whose turn it is: the last one until its quota is used, then the next in
    /// cyclic order.
    fn next(&self, view: &SchedulerView<'_>) -> Option<PathId> {
        let ready = || carriers(view).filter(|path| path.ready).map(|path| path.id);
        let Some(last) = self.turn else { return ready().next() };
        if self.taken < self.quota && ready().any(|id| id == last) {
            return Some(last);
        }
        ready().find(|id| *id > last).or_else(|| ready().next())
    }
}

impl Scheduler for RoundRobin {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        if let Err(idle) = carrier(view, path) {
            return idle;
        }
        if self.next(view).is_some_and(|next| next != path) {
            return Pull::Idle("another path's turn");
        }
        let Some(work) = first_in_line(view) else { return NOTHING };
        self.taken =
            if self.turn == Some(path) && self.taken < self.quota { self.taken } else { 0 };
        self.taken += 1;
        self.turn = Some(path);
        send(picks, path, work, "its turn")
    }
}
