//! Schedulers that choose, among the paths with room, the best by one measure: the least round-trip
//! time, the highest rate, the most window space, or the least round-trip time per space.

use anabranch_types::PathId;

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::unblock;
use crate::scheduler::work::{NOTHING, carrier, carriers, fresh, send};
use crate::scheduler::{Pick, Pull, Reason, Scheduler, Work};
use crate::view::{BlockView, PathView, SchedulerView};

/// The registry entry of the least smoothed round-trip time.
pub const MIN_RTT: Entry = Entry {
    name: "min-rtt",
    summary: "the path with the least smoothed RTT that has room; a loss prefers another path",
    source: "the MPTCP implementation for Linux, its default scheduler",
    options: &[unblock::OPTION],
};

/// The registry entry of the highest sending rate.
pub const HIGHEST_RATE: Entry = Entry {
    name: "hsr",
    summary: "the path with the highest rate, cwnd/RTT, that has room; a loss prefers another path",
    source: "HSR as LATE §II names it; the formula is derived from the name",
    options: &[unblock::OPTION],
};

/// The registry entry of the largest window space.
pub const MOST_SPACE: Entry = Entry {
    name: "lws",
    summary: "the path whose window has the most space; a loss prefers another path",
    source: "LWS as LATE §II names it; the formula is derived from the name",
    options: &[unblock::OPTION],
};

/// The registry entry of the lowest time by space.
pub const LEAST_TIME_BY_SPACE: Entry = Entry {
    name: "lts",
    summary: "the path with the least RTT by space in its window; a loss prefers another path",
    source: "LTS as LATE §II names it; the formula is derived from the name",
    options: &[unblock::OPTION],
};

/// Fills the best path first. A symbol that a path has lost goes to another path, if one has room.
#[derive(Clone, Copy, Debug)]
pub struct Best {
    /// The cost of a path; the path of least cost is the best.
    cost: fn(&PathView) -> f64,
    taken: Reason,
    yielded: Reason,
}

impl Best {
    fn boxed(
        options: &Options<'_>,
        cost: fn(&PathView) -> f64,
        taken: Reason,
        yielded: Reason,
    ) -> Result<Box<dyn Scheduler>, PolicyError> {
        unblock::wrap(options, Best { cost, taken, yielded })
    }
}

/// Makes [`MIN_RTT`].
pub fn min_rtt(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Best::boxed(options, rtt, "least RTT", "a faster path has room")
}

/// Makes [`HIGHEST_RATE`].
pub fn highest_rate(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let cost = |path: &PathView| -(path.cwnd as f64) / rtt(path).max(1e-6);
    Best::boxed(options, cost, "highest rate", "a path of higher rate has room")
}

/// Makes [`MOST_SPACE`].
pub fn most_space(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Best::boxed(options, |path| -space(path), "most space", "a path has more space")
}

/// Makes [`LEAST_TIME_BY_SPACE`].
pub fn least_time_by_space(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let cost = |path: &PathView| rtt(path) / space(path).max(1.0);
    Best::boxed(options, cost, "least RTT by space", "a path has less RTT by space")
}

/// Smoothed round-trip time, seconds.
fn rtt(path: &PathView) -> f64 {
    path.rtt.smoothed.as_secs_f64()
}

/// Bytes that the window still admits.
fn space(path: &PathView) -> f64 {
    path.cwnd.saturating_sub(path.bytes_in_flight + path.bytes_queued) as f64
}

/// Whether `path` has the least cost among the paths with room that have not lost the due symbol of
/// `block`, or among all paths with room if each has lost it. Between equals, the lower identifier
/// is first.
fn is_first(
    block: Option<&BlockView>,
    path: &PathView,
    view: &SchedulerView<'_>,
    cost: fn(&PathView) -> f64,
) -> bool {
    let clean = |other: &PathView| block.is_none_or(|block| !block.lost_by(other));
    let room = || carriers(view).filter(|other| other.ready || other.id == path.id);
    let any_clean = room().any(clean);
    let order = |a: &&PathView, b: &&PathView| cost(a).total_cmp(&cost(b)).then(a.id.cmp(&b.id));
    let best = room().filter(|other| !any_clean || clean(other)).min_by(order);
    best.is_some_and(|best| best.id == path.id)
}

/// The due work for a path that asks.
enum Due {
    Nothing,
    /// There is work, but a better path has room for it.
    Leave,
    Take(Work),
}

/// The oldest due work for which `path` is the best path with room.
fn due(path: &PathView, view: &SchedulerView<'_>, cost: fn(&PathView) -> f64) -> Due {
    let mut due = Due::Nothing;
    for block in view.blocks.iter().filter(|block| block.has_work()) {
        if is_first(Some(block), path, view, cost) {
            return Due::Take(Work::Block(block.id));
        }
        due = Due::Leave;
    }
    due
}

/// Gives `path` the oldest due work for which no other path with room is faster. `None` if there is
/// no such work; new data may then be sent.
pub(super) fn due_on_fastest(
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Option<Pull> {
    match carrier(view, path).map(|path| due(path, view, rtt)) {
        Err(idle) => Some(idle),
        Ok(Due::Take(work)) => Some(send(picks, path, work, "due, least RTT")),
        Ok(Due::Leave) if fresh(view).is_none() => {
            Some(Pull::Idle("a faster path has room for what is due"))
        }
        Ok(_) if fresh(view).is_none() => Some(NOTHING),
        Ok(_) => None,
    }
}

/// Decides like the scheduler of least round-trip time, except that while the fastest path has no
/// room, a slower path gets new data only if `yields(slower, fastest)` is false.
pub(super) fn fastest_unless(
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
    mut yields: impl FnMut(&PathView, &PathView) -> bool,
    yielded: Reason,
) -> Pull {
    let mut least = Best { cost: rtt, taken: "least RTT", yielded: "a faster path has room" };
    let answer = least.pull(path, view, picks);
    let fresh = picks.iter().any(|pick| pick.work == Work::Fresh);
    let fastest = carriers(view).min_by_key(|other| (other.rtt.smoothed, other.id));
    match (view.path(path), fastest.filter(|fastest| fresh && fastest.id != path)) {
        (Some(slow), Some(fast)) if yields(slow, fast) => {
            picks.clear();
            Pull::Idle(yielded)
        }
        _ => answer,
    }
}

impl Scheduler for Best {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let path = match carrier(view, path) {
            Ok(path) => path,
            Err(idle) => return idle,
        };
        let due = due(path, view, self.cost);
        if let Due::Take(work) = due {
            return send(picks, path.id, work, self.taken);
        }
        match fresh(view) {
            Some(work) if is_first(None, path, view, self.cost) => {
                send(picks, path.id, work, self.taken)
            }
            Some(_) => Pull::Idle(self.yielded),
            None if matches!(due, Due::Leave) => Pull::Idle("a better path has room"),
            None => NOTHING,
        }
    }
}
