//! Scheduling: which symbol goes on which path, and when it is better to wait.

pub mod blind;
pub mod earliest;
pub mod min_rtt;
pub mod rank;
pub mod redundant;
pub mod round_robin;
mod work;

use anabranch_types::{PathId, Time};
use core::fmt::Debug;

use crate::registry::{self, Options, PolicyError, PolicySpec, Row};
use crate::view::{SchedulerView, WindowId};

/// Something that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The next new source symbol, cut from application bytes when it is taken.
    Fresh,
    /// The next symbol that a window is due: a planned or a reactive repair, or a lost symbol again.
    Window(WindowId),
    /// A copy of the window's oldest symbol in flight that this path has not carried.
    Copy(WindowId),
}

/// Some work given to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// What.
    pub work: Work,
    /// How many symbols of it, at least 1.
    pub count: u16,
    /// On which path. Other paths than the one that pulled keep it in their queue.
    pub path: PathId,
    /// Not before this time (`Time::ZERO`: at once).
    pub not_before: Time,
}

/// Why a scheduler decided as it did; recorded by the observer.
pub type Reason = &'static str;

/// The answer to a path that could send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Send what was pushed onto the picks.
    Send(Reason),
    /// Send nothing on this path before this time, even if work waits.
    Hold(Time, Reason),
    /// Nothing for this path until something changes: feedback, new data, a timer, or a packet sent on
    /// another path (which may fill the path that this one yielded to).
    Idle(Reason),
}

/// What a scheduler can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerEvent {
    /// Feedback about a path arrived.
    Acked(PathId),
    /// Packets of a path were declared lost.
    Lost(PathId),
    /// A path's congestion window shrank to this many bytes.
    WindowCut(PathId, u64),
    /// A path's retransmission timer fired.
    Timeout(PathId),
    /// A path became usable.
    PathUp(PathId),
    /// A path stopped being usable.
    PathDown(PathId),
    /// A window was recovered at the receiver.
    Recovered(WindowId),
    /// The receiver's buffer, not a path, keeps the connection from sending.
    ReceiverLimited,
    /// The time asked for by [`Scheduler::wakeup`] has come.
    Wakeup,
}

/// What a scheduler can do outside a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerAction {
    /// Bind work to a path ahead of its window.
    Bind(Pick),
    /// Take back what is bound to a path beyond its first `keep` symbols.
    Unbind {
        /// The path.
        path: PathId,
        /// Symbols that stay bound.
        keep: u32,
    },
    /// Hold a path back through its congestion controller.
    Penalise(PathId),
}

/// Chooses what each path sends.
pub trait Scheduler: Debug + Send {
    /// Something happened; push actions, if any.
    fn on_event(
        &mut self,
        _event: SchedulerEvent,
        _view: &SchedulerView<'_>,
        _actions: &mut Vec<SchedulerAction>,
    ) {
    }

    /// `path` has window and pacing room: say what it sends. Picks are pushed onto `picks` (empty at entry).
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull;

    /// When the scheduler wants to be asked again although nothing happens.
    fn wakeup(&self) -> Option<Time> {
        None
    }
}

/// Makes a scheduler from its options.
pub type Build = fn(&Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError>;

/// The policies of this axis.
pub const TABLE: &[Row<Build>] = &[
    (&earliest::ENTRY, earliest::build),
    (&rank::ENTRY, rank::build),
    (&min_rtt::ENTRY, min_rtt::build),
    (&round_robin::ENTRY, round_robin::build),
    (&redundant::ENTRY, redundant::build),
    (&blind::ENTRY, blind::build),
];

/// Makes the scheduler policy that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn Scheduler>, PolicyError> {
    let (build, options) = registry::find("scheduler", TABLE, spec)?;
    build(&options)
}

#[cfg(test)]
mod tests;
