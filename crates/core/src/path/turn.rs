//! Whether the scheduler has to be asked about a path.

use anabranch_types::Time;

/// The scheduler's last answer for a path without work.
#[derive(Debug, Default)]
pub struct Turn {
    /// The connection's count of changes when the scheduler had nothing for the path. It need not
    /// be asked again before the count has risen.
    idle_at: u64,
    /// The scheduler has postponed the path until this time.
    hold_until: Option<Time>,
}

impl Turn {
    /// Whether to ask the scheduler now, after this many changes.
    pub fn may_ask(&self, now: Time, changes: u64) -> bool {
        !self.is_idle(changes) && self.hold_until.is_none_or(|until| until <= now)
    }

    /// Whether the scheduler had nothing for the path and nothing has changed since.
    pub fn is_idle(&self, changes: u64) -> bool {
        self.idle_at == changes
    }

    /// The time until which the path is postponed.
    pub fn hold_until(&self) -> Option<Time> {
        self.hold_until
    }

    /// Notes that the scheduler has nothing for the path.
    pub fn idle(&mut self, changes: u64) {
        self.idle_at = changes;
    }

    /// Postpones the path: the scheduler is not asked about it before this time.
    pub fn hold(&mut self, until: Time) {
        self.hold_until = Some(until);
    }

    /// Ends a postponement that is over at `now`. Returns whether there was one.
    pub fn release(&mut self, now: Time) -> bool {
        self.hold_until.take_if(|until| *until <= now).is_some()
    }

    /// Ends any postponement.
    pub fn release_all(&mut self) {
        self.hold_until = None;
    }
}
