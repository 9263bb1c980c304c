//! Recovery: what to do about losses, timeouts, reduced congestion windows and dead paths.
//!
//! `anabranch-core` and connections over TCP subflows share this interface. Protocols and their
//! specifications:
//!
//! | protocol | specification |
//! |---|---|
//! | MPLOT, FMTCP: fresh repairs | `fresh-repairs` |
//! | MPTCP: all that a timed-out subflow carries is reinjected | `resend` |
//! | XLINK: copies of what is long in flight | `xlink` |
//! | PTCP, striping: only the subflow itself repairs its losses | `resend:timeout=nothing` |
//! | pTCP: redundant striping after a timeout, unbinding after a cut | `resend:timeout=copy,cut=unbind` |

pub mod fresh_repairs;
pub mod resend;
pub mod xlink;

use anabranch_types::{PathId, Time};
use core::fmt::Debug;

use crate::registry::{PolicyError, PolicySpec, Registry, Row};
use crate::scheduler::Scheduler;
use crate::view::{BlockId, PathView};

/// A loss, a timeout, a reduced congestion window, or a change in whether a path is usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryEvent {
    /// A symbol of the block, last carried by the path, was declared lost or written off. Engines
    /// whose paths repair their own losses, as TCP subflows do, do not report this.
    Lost {
        /// The block of the symbol.
        block: BlockId,
        /// Whether the block still takes source symbols, so that no repairs of it can be made yet.
        open: bool,
        /// The path that lost it.
        path: PathId,
    },
    /// A path's probe or retransmission timer fired.
    Timeout {
        /// The path.
        path: PathId,
        /// How many times in a row it has fired.
        consecutive: u32,
        /// Whether another path is usable.
        alternatives: bool,
    },
    /// A congestion window shrank.
    CwndReduced {
        /// The path.
        path: PathId,
        /// The new window, bytes.
        cwnd: u64,
        /// Whether a timeout cut the window, so that nothing is known of the packets in flight.
        /// After a loss or a mark, most of them will arrive.
        silent: bool,
    },
    /// A path stopped being usable. Its queue is taken back whatever the policy returns.
    PathDown(PathId),
    /// A path became usable, or usable again.
    PathUp(PathId),
}

/// What the engine does about a [`RecoveryEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryAction {
    /// Do nothing else.
    Nothing,
    /// Let the redundancy policy say how many fresh repairs the block needs.
    Repair,
    /// Make the lost symbol itself due again.
    Resend,
    /// Treat everything in flight on the path as missing, without telling congestion control: it
    /// becomes due on the other paths, as repairs or as the same symbols, and the path's queue is
    /// taken back. A TCP subflow keeps the data that it has to retransmit; this data is not offered
    /// to the same subflow again.
    Reinject(PathId),
    /// Make the path's oldest unacknowledged symbol due again on another path. If symbols share
    /// packets, this applies to all symbols of the oldest packet.
    Copy(PathId),
    /// Keep this many bytes of the oldest data assigned to the path, where data in flight counts
    /// before queued data. Take back the rest; the part of it that has been sent may still arrive.
    TakeBack(PathId, u64),
    /// Like [`TakeBack`](Self::TakeBack), but only queued data is taken back; data in flight stays.
    TakeBackQueued(PathId, u64),
}

/// Decides what is done about losses, timeouts and reduced windows.
pub trait RecoveryPolicy: Debug + Send {
    /// Returns the action for `event`.
    fn on_event(&mut self, now: Time, event: RecoveryEvent, paths: &[PathView]) -> RecoveryAction;

    /// Whether the lost symbols of closed blocks are sent again (true) or replaced by fresh repairs
    /// (false).
    fn resends(&self) -> bool;

    /// Whether a path that falls silent is avoided until feedback arrives, if its loss rate does
    /// not explain the silence. If false, only the path's own timeouts count.
    fn avoids_silent_paths(&self) -> bool {
        true
    }

    /// Wraps the connection's scheduler, before the connection begins. A policy that sends copies on its own initiative
    /// returns a scheduler that gives them to paths before `scheduler` is asked, or when `scheduler` has nothing. Other
    /// policies return `scheduler` as it is.
    fn around(&self, scheduler: Box<dyn Scheduler>) -> Box<dyn Scheduler> {
        scheduler
    }
}

/// The built-in policies of this axis.
pub const TABLE: &[Row<dyn RecoveryPolicy>] = &[
    (&fresh_repairs::ENTRY, fresh_repairs::build),
    (&resend::ENTRY, resend::build),
    (&xlink::ENTRY, xlink::build),
];

/// Makes the built-in recovery policy that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn RecoveryPolicy>, PolicyError> {
    Registry::new().build(spec)
}

#[cfg(test)]
mod tests;
