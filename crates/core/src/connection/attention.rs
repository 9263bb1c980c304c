//! Tracks what the scheduler was told, and whether its last decision may have changed since.

use anabranch_policy::view::{Blocked, FreshView};
use anabranch_types::Time;

/// State that determines whether the scheduler is asked or told anything.
#[derive(Debug)]
pub(super) struct Attention {
    /// Counts all changes that may change a scheduler's decision.
    changes: u64,
    /// When the scheduler was last woken.
    woken: Option<Time>,
    /// Whether the scheduler was told that data waits only for the receiver's credit.
    receiver_limited: bool,
}

impl Attention {
    pub(super) fn new() -> Self {
        Attention { changes: 1, woken: None, receiver_limited: false }
    }

    /// The number of changes so far; never 0.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes a change.
    pub(super) fn changed(&mut self) {
        self.changes += 1;
    }

    /// The time at which the scheduler wants to be woken, if it is later than the last wake-up, so
    /// that a scheduler that keeps asking for the same time does not stop time.
    pub(super) fn wakes_at(&self, wanted: Option<Time>) -> Option<Time> {
        wanted.filter(|time| self.woken.is_none_or(|woken| *time > woken))
    }

    /// Notes that the scheduler is woken.
    pub(super) fn wake(&mut self, now: Time) {
        self.woken = Some(now);
    }

    /// Called when a path has room. Returns whether to tell the scheduler that only the receiver's
    /// credit is missing: true once, and again only after there was credit in the meantime.
    pub(super) fn lacks_credit(&mut self, fresh: &FreshView) -> bool {
        if fresh.symbols > 0 {
            self.receiver_limited = false;
            return false;
        }
        let limited = fresh.blocked.is_some_and(Blocked::by_receiver);
        limited && !core::mem::replace(&mut self.receiver_limited, true)
    }
}
