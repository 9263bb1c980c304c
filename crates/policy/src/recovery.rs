//! Recovery: what to do about losses, timeouts, reduced congestion windows and dead paths.
//!
//! The one interface for it, in `anabranch-core` and over TCP subflows. What protocols do:
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

/// Something went wrong (or right again).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryEvent {
    /// A symbol of the block, last carried by the path, was declared lost or written off. Not told by
    /// engines whose paths repair their own losses, as TCP subflows do.
    Lost {
        /// Its block.
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
        /// A timeout cut it: nothing has been heard of what is in flight. After a loss or a mark, most of that is
        /// about to arrive.
        silent: bool,
    },
    /// A path stopped being usable. Its queue is taken back whatever the answer.
    PathDown(PathId),
    /// A path became usable (again).
    PathUp(PathId),
}

/// What to do about it.
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
    /// subflow keeps what it has to retransmit; it is not offered its own.
    Reinject(PathId),
    /// Make the path's oldest unacknowledged symbol due once more, on another path; where symbols share
    /// packets, all of the oldest packet.
    Copy(PathId),
    /// Of what is assigned to the path, in flight first, then queued, the oldest this many bytes stay. The
    /// rest is taken back; what had been sent of it may still arrive.
    TakeBack(PathId, u64),
    /// The same, but what is in flight stays: only the queue is taken back.
    TakeBackQueued(PathId, u64),
}

/// Answers events with actions.
pub trait RecoveryPolicy: Debug + Send {
    /// What to do about `event`.
    fn on_event(&mut self, now: Time, event: RecoveryEvent, paths: &[PathView]) -> RecoveryAction;

    /// Lost symbols of closed blocks are replaced by the same symbol (true) or by fresh repairs (false).
    fn resends(&self) -> bool;

    /// Whether a path that falls silent, when its loss does not explain the silence, is not used again until
    /// something is heard of it. If not, only its own timeouts tell.
    fn avoids_silent_paths(&self) -> bool {
        true
    }

    /// The connection's scheduler, to be asked in place of `scheduler`, before the connection begins: a policy that has
    /// something sent of its own accord gives copies to paths before `scheduler` says anything, or when it has
    /// nothing. Other policies leave it as it is.
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
