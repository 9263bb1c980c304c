//! When the acknowledgement of a path's packets is due, and which acknowledgements are sent on it.

use anabranch_types::Time;

/// When the report about a path is due, and which reports the path carries.
#[derive(Debug, Default)]
pub struct AckSchedule {
    /// Bit mask of the paths (bit = index) whose reports will be sent on this path.
    about: u16,
    /// When the report about this path is due.
    due: Option<Time>,
    /// When the report was assigned to paths, if it has not been sent since.
    routed: Option<Time>,
}

impl AckSchedule {
    /// When the report about this path is due.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Makes the report due at `time` or earlier.
    pub fn due_by(&mut self, time: Time) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// Notes that the report is assigned to paths now. Returns false if it was already assigned at
    /// this time: packets that arrive in one batch share one report, which is routed once.
    pub fn route(&mut self, now: Time) -> bool {
        self.due = None;
        self.routed.replace(now) != Some(now)
    }

    /// Notes that the report was sent.
    pub fn on_reported(&mut self) {
        self.due = None;
        self.routed = None;
    }

    /// Adds the paths with these bits to those whose reports will be sent on this path.
    pub fn carry(&mut self, about: u16) {
        self.about |= about;
    }

    /// Takes the bit mask of the paths whose reports will be sent on this path, and clears it.
    pub fn take(&mut self) -> u16 {
        core::mem::take(&mut self.about)
    }

    /// Cancels the reports about the paths with these bits.
    pub fn forget(&mut self, about: u16) {
        self.about &= !about;
    }

    /// Cancels all reports because the path is closed.
    pub fn close(&mut self) {
        self.about = 0;
        self.due = None;
    }
}
