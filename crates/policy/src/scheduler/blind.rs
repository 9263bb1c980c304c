//! Treats all paths alike: any path with room gets the oldest work.

use anabranch_types::PathId;

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::work::{NOTHING, carrier, first_in_line, send};
use crate::scheduler::{Pick, Pull, Scheduler};
use crate::view::SchedulerView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "blind",
    summary: "any path with room takes the oldest due work, then new data",
    source: "MPLOT §IV-B, the heterogeneity-blind mapping; PTCP's single queue",
    options: &[],
};

/// First in, first out, over all paths alike.
#[derive(Clone, Copy, Debug)]
pub struct Blind;

/// Builds the policy from its options.
pub fn build(_options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Ok(Box::new(Blind))
}

impl Scheduler for Blind {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        if let Err(idle) = carrier(view, path) {
            return idle;
        }
        match first_in_line(view) {
            Some(work) => send(picks, path, work, "first in line"),
            None => NOTHING,
        }
    }
}
