//! When the acknowledgement of a path's packets is due, and which acknowledgements are sent on it.

use anabranch_types::Time;

/// Acknowledgements to come.
#[derive(Debug, Default)]
pub struct AckSchedule {
    /// Reports about these paths (bit by index) leave on this path.
    about: u16,
    /// When the report about this path is due.
    due: Option<Time>,
    /// The report was given to other paths, or to this one, at this time and has not left.
    routed: Option<Time>,
}

impl AckSchedule {
    /// When the report about this path is due.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// The report is due by `time` at the latest.
    pub fn due_by(&mut self, time: Time) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// The report is given to a path now. False if that happened already: packets that arrive in one batch
    /// have one report, which is routed once.
    pub fn route(&mut self, now: Time) -> bool {
        self.due = None;
        self.routed.replace(now) != Some(now)
    }

    /// The report has left.
    pub fn on_reported(&mut self) {
        self.due = None;
        self.routed = None;
    }

    /// Reports about the paths with these bits leave on this path.
    pub fn carry(&mut self, about: u16) {
        self.about |= about;
    }

    /// Takes the bits of the paths whose reports leave on this one.
    pub fn take(&mut self) -> u16 {
        core::mem::take(&mut self.about)
    }

    /// No report about the paths with these bits leaves any more.
    pub fn forget(&mut self, about: u16) {
        self.about &= !about;
    }

    /// The path is closed.
    pub fn close(&mut self) {
        self.about = 0;
        self.due = None;
    }
}
