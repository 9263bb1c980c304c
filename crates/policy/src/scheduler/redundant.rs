//! Every path carries everything.

use anabranch_types::PathId;

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::work::{NOTHING, carrier, fresh, oldest, send};
use crate::scheduler::{Pick, Pull, Scheduler, Work};
use crate::view::SchedulerView;

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    name: "redundant",
    summary: "each path carries a copy of every symbol not acknowledged yet",
    source: "the MPTCP implementation for Linux, its redundant scheduler; M-TCP §III-B",
    options: &[],
};

/// Due work first, then a copy of the oldest symbol in flight that the path has not carried, then
/// new data. A path that lags copies what is in flight; one that leads brings what is new.
#[derive(Clone, Copy, Debug)]
pub struct Redundant;

/// Makes it from its options.
pub fn build(_options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Ok(Box::new(Redundant))
}

impl Scheduler for Redundant {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let path = match carrier(view, path) {
            Ok(path) => path,
            Err(idle) => return idle,
        };
        if let Some(work) = oldest(view.blocks) {
            return send(picks, path.id, work, "oldest due");
        }
        match view.blocks.iter().find(|block| block.uncopied(path) > 0) {
            Some(block) => send(picks, path.id, Work::Copy(block.id), "copy of the oldest"),
            None => match fresh(view) {
                Some(work) => send(picks, path.id, work, "new data"),
                None => NOTHING,
            },
        }
    }
}
