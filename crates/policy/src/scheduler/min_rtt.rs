//! The path with the least smoothed round-trip time that has room.

use anabranch_types::PathId;
use core::time::Duration;

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::work::{NOTHING, carrier, carriers, fresh, send};
use crate::scheduler::{Pick, Pull, Scheduler, Work};
use crate::view::{BlockView, PathView, SchedulerView};

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    name: "min-rtt",
    summary: "the path with the least smoothed RTT that has room; a loss prefers another path",
    source: "the MPTCP implementation for Linux, its default scheduler",
    options: &[],
};

/// Fills the fastest path first. A symbol that a path lost goes to another one, if one has room.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt;

/// Makes it from its options.
pub fn build(_options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Ok(Box::new(MinRtt))
}

/// Order among paths: faster first, the lower identifier between equals.
fn order(path: &PathView) -> (Duration, PathId) {
    (path.rtt.smoothed, path.id)
}

/// Whether `path` is the first in order with room, among those that have not lost the symbol of
/// `block` that is due; among all, if each has.
fn first(block: Option<&BlockView>, path: &PathView, view: &SchedulerView<'_>) -> bool {
    let clean = |other: &PathView| block.is_none_or(|block| !block.lost_by(other));
    let room = || carriers(view).filter(|other| other.ready || other.id == path.id);
    let any_clean = room().any(clean);
    let best = room().filter(|other| !any_clean || clean(other)).min_by_key(|other| order(other));
    best.is_some_and(|best| best.id == path.id)
}

impl Scheduler for MinRtt {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let path = match carrier(view, path) {
            Ok(path) => path,
            Err(idle) => return idle,
        };
        let mut yielded = false;
        for block in view.blocks.iter().filter(|block| block.has_work()) {
            if first(Some(block), path, view) {
                return send(picks, path.id, Work::Block(block.id), "due, least RTT");
            }
            yielded = true;
        }
        match fresh(view) {
            Some(work) if first(None, path, view) => send(picks, path.id, work, "least RTT"),
            Some(_) => Pull::Idle("a faster path has room"),
            None if yielded => Pull::Idle("a better path has room"),
            None => NOTHING,
        }
    }
}
