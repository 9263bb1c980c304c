//! Observations: the core's decisions and their reasons, for an observer.

use anabranch_policy::view::PathState;
use anabranch_types::{PathId, Time};
use core::fmt::Debug;

/// One thing that happened or was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The scheduler sent something on a path.
    Scheduled {
        /// The path.
        path: PathId,
        /// "source", "repair" or "resend".
        what: &'static str,
        /// First symbol concerned.
        symbol: u64,
        /// The scheduler's reason.
        reason: &'static str,
    },
    /// The scheduler held a path back until a time.
    Held {
        /// The path.
        path: PathId,
        /// Until then.
        until: Time,
        /// The scheduler's reason.
        reason: &'static str,
    },
    /// A coding block closed.
    BlockClosed {
        /// First symbol.
        first: u64,
        /// Source symbols.
        sources: u16,
        /// Proactive repairs planned.
        repairs: u16,
        /// Aggregate loss estimate, parts per thousand.
        loss_permille: u16,
    },
    /// A block lacked symbols, so repairs became due.
    RepairsDue {
        /// First symbol of the block.
        first: u64,
        /// How many more.
        count: u16,
    },
    /// Packets of a path were declared lost.
    Lost {
        /// The path.
        path: PathId,
        /// The number of them.
        packets: u32,
    },
    /// A path's probe timer fired.
    Timeout {
        /// The path.
        path: PathId,
        /// How many times in a row.
        consecutive: u32,
    },
    /// Data in flight on a path was made due elsewhere.
    Reinjected {
        /// The path.
        path: PathId,
        /// Packets concerned.
        packets: u32,
    },
    /// Full packets on a path have another size from now on.
    PathMtu {
        /// The path.
        path: PathId,
        /// The longest IP packet, bytes.
        bytes: u32,
        /// The reason.
        reason: &'static str,
    },
    /// A path changed its state.
    PathState {
        /// The path.
        path: PathId,
        /// The new state.
        state: PathState,
        /// The reason.
        reason: &'static str,
    },
    /// Two paths were found to share a bottleneck, or no longer to.
    SharedBottleneck {
        /// One path.
        path: PathId,
        /// The other.
        with: PathId,
        /// Whether they do.
        shared: bool,
    },
    /// The congestion controller's figures after feedback that changed its window.
    Congestion {
        /// The path.
        path: PathId,
        /// Congestion window, bytes.
        cwnd: u64,
        /// Pacing rate, bits per second (0: not paced).
        pacing_bps: u64,
        /// Controller state.
        phase: &'static str,
    },
}

/// Someone who writes observations down. Called synchronously; must not block.
pub trait Observer: Debug + Send {
    /// `observation` was made at `now`.
    fn observe(&mut self, now: Time, observation: &Observation);
}
