//! Whether the scheduler is to be asked about a path.

use anabranch_types::Time;

/// The scheduler's last answer for a path without work.
#[derive(Debug, Default)]
pub struct Turn {
    /// The scheduler had nothing when the connection counted this many changes: no use asking again before there
    /// are more.
    idle_at: u64,
    /// The scheduler holds the path until this time.
    hold_until: Option<Time>,
}

impl Turn {
    /// Whether to ask now, after this many changes.
    pub fn may_ask(&self, now: Time, changes: u64) -> bool {
        !self.is_idle(changes) && self.hold_until.is_none_or(|until| until <= now)
    }

    /// Whether there was nothing for the path, and nothing has changed since.
    pub fn is_idle(&self, changes: u64) -> bool {
        self.idle_at == changes
    }

    /// Until when the path is held.
    pub fn hold_until(&self) -> Option<Time> {
        self.hold_until
    }

    /// There is nothing for the path.
    pub fn idle(&mut self, changes: u64) {
        self.idle_at = changes;
    }

    /// The path is not to be asked for before this time.
    pub fn hold(&mut self, until: Time) {
        self.hold_until = Some(until);
    }

    /// Ends a hold whose time has come; returns whether there was one.
    pub fn release(&mut self, now: Time) -> bool {
        self.hold_until.take_if(|until| *until <= now).is_some()
    }

    /// Ends any hold.
    pub fn release_all(&mut self) {
        self.hold_until = None;
    }
}
