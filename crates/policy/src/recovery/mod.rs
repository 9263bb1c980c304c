//! Recovery: what to do about losses, timeouts, window cuts, dead paths and deadlines.

pub mod fresh_repairs;
pub mod resend;

use anabranch_types::{PathId, Time};
use core::fmt::Debug;

use crate::registry::{self, Options, PolicyError, PolicySpec, Row};
use crate::view::{PathView, WindowId};

/// Something went wrong (or right again).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryEvent {
    /// A symbol of the window, last carried by the path, was declared lost.
    Lost {
        /// Its window.
        window: WindowId,
        /// The window still takes source symbols, so that no repair of it can be made yet.
        open: bool,
        /// The path that lost it.
        path: PathId,
    },
    /// A path's probe or retransmission timer fired.
    Timeout {
        /// The path.
        path: PathId,
        /// How many times in a row.
        consecutive: u32,
        /// Whether another path is usable.
        alternatives: bool,
    },
    /// A congestion window shrank.
    WindowCut {
        /// The path.
        path: PathId,
        /// Bytes that the window now admits.
        window: u64,
    },
    /// A path stopped being usable.
    PathDown(PathId),
    /// A path became usable (again).
    PathUp(PathId),
    /// The window's data is worthless from now on.
    Deadline(WindowId),
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryAction {
    /// Nothing beyond the bookkeeping.
    Nothing,
    /// Let the redundancy policy say how many fresh repairs the window needs.
    Repair,
    /// Make the same symbol due again.
    Resend,
    /// Treat everything in flight on the path as missing, without telling congestion control: it
    /// becomes due (repair or resend) on the other paths.
    Reinject(PathId),
    /// Copy the path's oldest unacknowledged symbol onto another path.
    Copy(PathId),
    /// Take back what is bound to the path beyond this many bytes of window.
    Unbind(PathId, u64),
    /// Give the window up and tell the receiver.
    Abandon(WindowId),
}

/// Answers events with actions.
pub trait RecoveryPolicy: Debug + Send {
    /// What to do about `event`.
    fn on_event(&mut self, now: Time, event: RecoveryEvent, paths: &[PathView]) -> RecoveryAction;

    /// Lost symbols of closed windows are made good by sending the same symbol (true) or fresh repairs
    /// (false).
    fn resends(&self) -> bool;
}

/// Makes a recovery policy from its options.
pub type Build = fn(&Options<'_>) -> Result<Box<dyn RecoveryPolicy>, PolicyError>;

/// The policies of this axis.
pub const TABLE: &[Row<Build>] =
    &[(&fresh_repairs::ENTRY, fresh_repairs::build), (&resend::ENTRY, resend::build)];

/// Makes the recovery policy that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn RecoveryPolicy>, PolicyError> {
    let (build, options) = registry::find("recovery", TABLE, spec)?;
    build(&options)
}

#[cfg(test)]
mod tests;
