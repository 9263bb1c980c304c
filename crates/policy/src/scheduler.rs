//! Scheduling: which symbol goes on which path, and when it is better to wait.
//!
//! # The contract
//!
//! Two engines carry out what a [`Scheduler`] decides: the connection of `anabranch-core`, and the
//! data stream over TCP subflows of `anabranch-tcp`. Both follow this contract;
//! `crates/sim/tests/contract` tests both with the same cases.
//!
//! **A path asks** by [`Scheduler::pull`] when its window and its pacer admit a full packet and its
//! queue has nothing that may leave now. After [`Pull::Send`] it asks again for the next packet.
//! After [`Pull::Idle`] it asks again once anything has changed: one of the events below, new data
//! or credit, or a packet that left on another path. After [`Pull::Hold`] it asks again at the
//! given time and not before. If all picks name work that does not exist, the result counts as
//! [`Pull::Idle`]. Acknowledgements, control frames, probes, and retransmissions that a TCP subflow
//! makes by itself do not involve the scheduler.
//!
//! If symbols may share a packet
//! ([`symbols_per_packet`](crate::redundancy::RedundancyPolicy::symbols_per_packet); not over TCP),
//! a path asks again for the same packet while there is room in it. The symbols already in the
//! packet count as in flight, but its bytes do not. Work whose next symbol does not fit into the
//! packet counts as no work, and [`Pull::Idle`] then only ends the packet.
//!
//! **A queue** belongs to each path. It holds picks for other paths than the one that pulls, picks
//! that must not leave yet, and work assigned by [`SchedulerAction::Assign`]. Queued work no longer
//! counts as due or in [`FreshView::symbols`](crate::view::FreshView::symbols), and no other path
//! gets it. New source symbols are cut in the order in which they are assigned, as many as data and
//! credit allow. Entries leave first in, first out, as window and pacer admit them; an entry that
//! must wait holds up neither the entries behind it nor the path's pulls. An entry whose symbol has
//! meanwhile arrived is dropped. When a path goes down, its whole queue is taken back.
//!
//! **Taking back** ([`SchedulerAction::TakeBack`], a path that goes down, and
//! [`RecoveryAction::TakeBack`](crate::recovery::RecoveryAction::TakeBack)) makes symbols due
//! again; copies of symbols that are in flight on other paths are dropped.
//!
//! **Events** reach [`Scheduler::on_event`] after congestion control and recovery have acted on their
//! cause, so that views show the new state. Actions are carried out in order, at once.
//!
//! **Recovery** may wrap the scheduler, by [`RecoveryPolicy::around`](crate::recovery::RecoveryPolicy::around); the
//! wrapper is then asked in its place.
//!
//! **Time**: [`Scheduler::wakeup`] is read after every call. At the time that it returns, the
//! scheduler is told of [`Wakeup`] once, and every path may ask again. A time that is not after the
//! last [`Wakeup`] is ignored, and a [`Pull::Hold`] until a time that has passed counts as
//! [`Pull::Idle`], so that time always advances.
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
    /// The next due symbol of this block: a planned or a reactive repair, or a lost symbol again.
    Block(BlockId),
    /// A copy of this block's oldest symbol in flight that the path neither carries nor has queued.
    Copy(BlockId),
    /// New source symbols that are cut but not given to a path. They are then due, so that later
    /// picks can give them to any path. A scheduler can thus leave symbols for other paths without
    /// assigning them, and send the symbols after them.
    Ahead,
    /// The next due symbol of this closed block or, if there is none, an additional repair. There
    /// is no additional repair if lost symbols are sent again instead
    /// ([`Demand::by_repairs`](crate::view::Demand::by_repairs)).
    Repair(BlockId),
}

/// Some work given to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The kind of work.
    pub work: Work,
    /// How many symbols, at least 1; fewer are sent if there are fewer.
    pub count: u16,
    /// The path that carries the symbols. Work for another path than the one that pulled waits in
    /// that path's queue.
    pub path: PathId,
    /// The earliest time at which the symbols may leave; `Time::ZERO` means at once.
    pub not_before: Time,
}

/// Why a scheduler decided as it did; recorded by the observer.
pub type Reason = &'static str;

/// The scheduler's decision for a path that could send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// Send what was pushed onto the picks.
    Send(Reason),
    /// Do not ask for this path before this time, whatever happens. Work in the path's queue still
    /// leaves.
    Hold(Time, Reason),
    /// Send nothing on this path until something changes: feedback, new data, a timer, or a packet
    /// sent on another path, after which the path that was preferred may be full.
    Idle(Reason),
}

/// An event of which a scheduler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerEvent {
    /// An acknowledgement has newly acknowledged packets of the path. Told once per acknowledgement
    /// and path.
    Acked(PathId),
    /// Packets of the path were declared lost, by an acknowledgement or a timer. Told once for all
    /// of them, before the [`Acked`](Self::Acked) of the same acknowledgement.
    Lost(PathId),
    /// The path's congestion window was reduced to this many bytes. Told for reductions after
    /// losses, marks and timeouts, but not after [`SchedulerAction::Penalise`], of which the
    /// scheduler knows.
    CwndReduced(PathId, u64),
    /// The path's probe or retransmission timer fired.
    Timeout(PathId),
    /// The path became usable: for the first time, or again after it had gone down.
    PathUp(PathId),
    /// The path stopped being usable: it is silent, closed, or its subflow has failed. Its queue
    /// has already been taken back.
    PathDown(PathId),
    /// The receiver has recovered the block, which is no longer in the views.
    Recovered(BlockId),
    /// A path has room and data waits, but the receiver's credit admits no new symbol
    /// ([`Blocked::by_receiver`](crate::view::Blocked::by_receiver)). Told once, before the pull of
    /// the path that met the limit, and not again until new symbols could be made in the meantime.
    ReceiverLimited,
    /// A path has room, nothing is left to send, and the application has more to write than fits
    /// into the send buffer, of which outstanding data fills at least two thirds. Told in the same
    /// way as [`ReceiverLimited`](Self::ReceiverLimited), but only by the data stream over TCP
    /// subflows: the connection of `anabranch-core` removes data from its send buffers when it is
    /// sent, and data kept until it is acknowledged counts as credit.
    SenderLimited {
        /// Whether no byte of the buffer is free. If some are, the application has been told of the
        /// room but has not used it yet.
        full: bool,
    },
    /// The time returned by [`Scheduler::wakeup`] has come.
    Wakeup,
}

/// Action of a scheduler outside a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerAction {
    /// Assign work to a path beyond its window. The work goes to the end of the path's queue.
    /// Nothing happens if the path is not usable.
    Assign(Pick),
    /// Take back all symbols in a path's queue except the first `keep`.
    TakeBack {
        /// The path.
        path: PathId,
        /// Symbols that stay queued.
        keep: u32,
    },
    /// Hold a path back through its congestion controller, which decides by how much
    /// ([`CongestionController::penalise`](crate::CongestionController::penalise)). The scheduler
    /// decides how often.
    Penalise(PathId),
}

/// Chooses what each path sends.
pub trait Scheduler: Debug + Send {
    /// Handles an event. Actions, if any, are pushed onto `actions`, which is empty at entry.
    fn on_event(
        &mut self,
        _event: SchedulerEvent,
        _view: &SchedulerView<'_>,
        _actions: &mut Vec<SchedulerAction>,
    ) {
    }

    /// Decides what `path` sends, whose window and pacer admit a packet. Picks are pushed onto
    /// `picks`, which is empty at entry.
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull;

    /// When the scheduler wants to be told of [`SchedulerEvent::Wakeup`]; the time is read again
    /// after every call.
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
