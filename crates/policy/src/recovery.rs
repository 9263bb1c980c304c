//! Recovery: what to do about losses, timeouts, reduced congestion windows and dead paths.
//!
//! `anabranch-core` and connections over TCP subflows share this interface. What protocols do:
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
    /// A symbol of the block, last carried by the path, was declared lost or written off. Not reported by
    /// engines whose paths repair their own losses, as TCP subflows do.
    Lost {
        /// The block of the symbol.
        block: BlockId,
        /// The block still takes source symbols, so that no repair of it can be made yet.
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
    CwndReduced {
        /// The path.
        path: PathId,
        /// Bytes that it now admits.
        cwnd: u64,
        /// A timeout cut the window: nothing has been heard of what is in flight. After a loss or a mark, most of
        /// that is about to arrive.
        silent: bool,
    },
    /// A path stopped being usable. Its queue is taken back whatever the policy answers.
    PathDown(PathId),
    /// A path became usable (again).
    PathUp(PathId),
}

/// Answer to a [`RecoveryEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryAction {
    /// Nothing beyond the bookkeeping.
    Nothing,
    /// Let the redundancy policy say how many fresh repairs the block needs.
    Repair,
    /// Make the lost symbol itself due again.
    Resend,
    /// Treat everything in flight on the path as missing, without telling congestion control: it
    /// becomes due (as repairs or as it is) on the other paths, and the path's queue is taken back. A TCP
    /// subflow keeps what it has to retransmit; that is not offered to the same subflow again.
    Reinject(PathId),
    /// Make the path's oldest unacknowledged symbol due once more, on another path; where symbols share
    /// packets, all of the oldest packet.
    Copy(PathId),
    /// Keep the oldest data assigned to the path, this many bytes, counting what is in flight before what is queued.
    /// Take back the rest; what has been sent of it may still arrive.
    TakeBack(PathId, u64),
    /// Variant of [`TakeBack`](Self::TakeBack) in which what is in flight stays: only the queue is taken back.
    TakeBackQueued(PathId, u64),
}

/// Answers events with actions.
pub trait RecoveryPolicy: Debug + Send {
    /// The action that answers `event`.
    fn on_event(&mut self, now: Time, event: RecoveryEvent, paths: &[PathView]) -> RecoveryAction;

    /// Lost symbols of closed blocks are replaced by the same symbol (true) or by fresh repairs (false).
    fn resends(&self) -> bool;

    /// Whether a path that falls silent, when its loss does not explain the silence, is avoided until something is
    /// heard from it. If false, only the path's own timeouts count.
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
