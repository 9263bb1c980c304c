//! Scheduling: which symbol goes on which path, and when it is better to wait.
//!
//! # The contract
//!
//! Two engines carry out what a [`Scheduler`] decides: the connection of `anabranch-core`, and the data
//! stream over TCP subflows of `anabranch-tcp`. Both keep to the following; `crates/sim/tests/contract`
//! puts the same cases to both.
//!
//! **A path asks** by [`Scheduler::pull`] when its window and its pacer admit a full packet and its queue
//! has nothing that may leave now. After [`Pull::Send`] it asks again for the next packet. After
//! [`Pull::Idle`] it asks again once anything has changed: an event below, new data or credit, or a packet
//! that left on another path. After [`Pull::Hold`] it asks again at the time named and not before. Picks
//! that name nothing that exists count as [`Pull::Idle`]. Acknowledgements, control frames, probes, and
//! what a TCP subflow retransmits by itself pass no scheduler.
//!
//! Where symbols may share a packet
//! ([`symbols_per_packet`](crate::redundancy::RedundancyPolicy::symbols_per_packet); not over TCP), a path
//! asks again for the same packet while there is room in it. The symbols in it count as in flight by then,
//! its bytes do not. Work whose next symbol is too long for the room counts as none, and [`Pull::Idle`]
//! only ends the packet.
//!
//! **A queue** belongs to each path. Into it go picks for other paths than the one that pulls, picks that
//! must not leave yet, and [`SchedulerAction::Assign`]. What is queued is spoken for: it no longer counts as
//! due or in [`FreshView::symbols`](crate::view::FreshView::symbols), and no other path is given it. New
//! source symbols are cut in the order in which they are assigned, as many as data and credit allow.
//! What may leave leaves first in, first out, as window and pacer admit it; an entry that must wait holds
//! up neither those behind it nor the path's pulls. An entry whose symbol has arrived in the meantime is
//! dropped. When a path goes down, its whole queue is taken back.
//!
//! **Taking back** ([`SchedulerAction::TakeBack`], a path that goes down, and
//! [`RecoveryAction::TakeBack`](crate::recovery::RecoveryAction::TakeBack)) makes symbols due again; copies of
//! symbols that are in flight elsewhere vanish.
//!
//! **Events** reach [`Scheduler::on_event`] after congestion control and recovery have acted on their
//! cause, so that views show the new state. Actions are carried out in order, at once.
//!
//! **Recovery** may wrap the scheduler, by [`RecoveryPolicy::around`](crate::recovery::RecoveryPolicy::around); the
//! wrapper is then asked in its place.
//!
//! **Time**: [`Scheduler::wakeup`] is read after every call. When the time has come, [`Wakeup`] is told
//! once and every path may ask again. A time that does not lie after the last [`Wakeup`] counts as none,
//! and a [`Pull::Hold`] until a time that has passed counts as [`Pull::Idle`], so that time always advances.
//!
//! [`Wakeup`]: SchedulerEvent::Wakeup

pub mod best;
pub mod blest;
pub mod blind;
pub mod daps;
pub mod dpsaf;
pub mod earliest;
pub mod ecf;
pub mod expected_arrival;
pub mod late;
pub mod linux;
pub mod otias;
pub mod rank;
pub mod redundant;
pub mod round_robin;
mod shares;
mod unblock;
pub(crate) mod work;

use anabranch_types::{PathId, Time};
use core::fmt::Debug;

use crate::registry::{PolicyError, PolicySpec, Registry, Row};
use crate::view::{BlockId, SchedulerView};

/// Something that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The next new source symbol, cut from application bytes when it is assigned to a path.
    Fresh,
    /// The next symbol that this block is due: a planned or a reactive repair, or a lost symbol again.
    Block(BlockId),
    /// A copy of this block's oldest symbol in flight that the path neither carries nor has queued.
    Copy(BlockId),
    /// New source symbols that are cut but given to no path: they are due from then on, so that later picks can take
    /// them for any path. A scheduler can thus send what comes after symbols that it expects other paths to carry,
    /// without assigning these.
    Ahead,
    /// The next symbol that this closed block is due, and if there is none, a repair that nothing else has asked for.
    /// None where lost symbols are sent again instead ([`Demand::by_repairs`](crate::view::Demand::by_repairs)).
    Repair(BlockId),
}

/// Some work given to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The kind of work.
    pub work: Work,
    /// How many symbols, at least 1; fewer are sent if there are fewer.
    pub count: u16,
    /// The path that carries them. Work for another path than the one that pulled waits in that path's queue.
    pub path: PathId,
    /// The earliest time at which they may leave (`Time::ZERO`: at once).
    pub not_before: Time,
}

/// Why a scheduler decided as it did; recorded by the observer.
pub type Reason = &'static str;

/// The answer to a path that could send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Send what was pushed onto the picks.
    Send(Reason),
    /// Do not ask for this path before this time, even if work waits and whatever happens. What is queued
    /// on the path leaves all the same.
    Hold(Time, Reason),
    /// Nothing for this path until something changes: feedback, new data, a timer, or a packet sent on
    /// another path (which may fill the path that this one yielded to).
    Idle(Reason),
}

/// Event that a scheduler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerEvent {
    /// An acknowledgement has newly acknowledged packets of the path. Once per acknowledgement and path.
    Acked(PathId),
    /// Packets of the path were declared lost, by an acknowledgement or a timer. Once for all of them,
    /// before the same acknowledgement's [`Acked`](Self::Acked).
    Lost(PathId),
    /// The path's congestion window is smaller than before: it admits this many bytes now. Told for cuts
    /// after losses, marks and timeouts; not for [`SchedulerAction::Penalise`], which the scheduler knows of.
    CwndReduced(PathId, u64),
    /// The path's probe or retransmission timer fired.
    Timeout(PathId),
    /// The path became usable: for the first time, or again after it had gone down.
    PathUp(PathId),
    /// The path stopped being usable: it is silent, closed, or its subflow has failed. Its queue is taken
    /// back already.
    PathDown(PathId),
    /// The block was recovered at the receiver: it is no longer in the views.
    Recovered(BlockId),
    /// A path has room and data waits, but the receiver's credit admits no new symbol
    /// ([`Blocked::by_receiver`](crate::view::Blocked::by_receiver)). Told once, before the path that found
    /// out pulls, and not again until new symbols could be made in between.
    ReceiverLimited,
    /// A path has room, nothing is left to send, and the application has more to write than the send buffer
    /// took: what is outstanding fills at least two thirds of it. Told as [`ReceiverLimited`](Self::ReceiverLimited)
    /// is, and only by the data stream over TCP subflows: the connection of `anabranch-core` keeps nothing in
    /// its send buffers once it is sent, and what it keeps until it is acknowledged counts as credit.
    SenderLimited {
        /// No byte of the buffer is free. Otherwise the application has been told of room, and has yet to use it.
        full: bool,
    },
    /// The time asked for by [`Scheduler::wakeup`] has come.
    Wakeup,
}

/// Action of a scheduler outside a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerAction {
    /// Assign work to a path ahead of its window: it goes to the end of the path's queue. Nothing happens
    /// if the path is not usable.
    Assign(Pick),
    /// Take back what waits in a path's queue beyond its first `keep` symbols.
    TakeBack {
        /// The path.
        path: PathId,
        /// Symbols that stay queued.
        keep: u32,
    },
    /// Hold a path back through its congestion controller, which decides by how much
    /// ([`CongestionController::penalise`](crate::CongestionController::penalise)). How often is the
    /// scheduler's responsibility.
    Penalise(PathId),
}

/// Chooses what each path sends.
pub trait Scheduler: Debug + Send {
    /// An event happened. Actions, if any, are pushed onto `actions` (empty at entry).
    fn on_event(
        &mut self,
        _event: SchedulerEvent,
        _view: &SchedulerView<'_>,
        _actions: &mut Vec<SchedulerAction>,
    ) {
    }

    /// `path` has window and pacing room: say what it sends. Picks are pushed onto `picks` (empty at entry).
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull;

    /// When the scheduler wants to be told [`SchedulerEvent::Wakeup`], if nothing else makes it change
    /// its mind before.
    fn wakeup(&self) -> Option<Time> {
        None
    }
}

/// The built-in policies of this axis.
pub const TABLE: &[Row<dyn Scheduler>] = &[
    (&earliest::ENTRY, earliest::build),
    (&rank::ENTRY, rank::build),
    (&best::MIN_RTT, best::min_rtt),
    (&linux::ENTRY, linux::build),
    (&blest::ENTRY, blest::build),
    (&ecf::ENTRY, ecf::build),
    (&late::ENTRY, late::build),
    (&dpsaf::ENTRY, dpsaf::build),
    (&expected_arrival::ENTRY, expected_arrival::build),
    (&daps::ENTRY, daps::build),
    (&otias::ENTRY, otias::build),
    (&best::HIGHEST_RATE, best::highest_rate),
    (&best::MOST_SPACE, best::most_space),
    (&best::LEAST_TIME_BY_SPACE, best::least_time_by_space),
    (&round_robin::ENTRY, round_robin::build),
    (&redundant::ENTRY, redundant::build),
    (&blind::ENTRY, blind::build),
];

/// Makes the built-in scheduler policy that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn Scheduler>, PolicyError> {
    Registry::new().build(spec)
}

#[cfg(test)]
mod tests;
