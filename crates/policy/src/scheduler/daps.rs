//! DAPS: data is planned in the order in which the paths' windows will arrive, and each part of the
//! plan waits for its path.

use anabranch_types::PathId;
use core::time::Duration;
use std::collections::VecDeque;

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::best::due_on_fastest;
use crate::scheduler::work::{NOTHING, assign_fresh, carriers};
use crate::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, unblock};
use crate::view::{PathView, SchedulerView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "daps",
    summary: "runs of a window each, in the order in which they arrive; a run waits for its path",
    source: "Sarwar et al. 2013 (DAPS); delays are rounded as in its implementation for Linux",
    options: &[unblock::OPTION],
};

/// Delays are rounded to multiples of this. A plan ends when the windows of all paths arrive
/// together; without rounding, it would be too long.
const STEP: Duration = Duration::from_millis(4);
/// A plan ends after this many runs at the latest.
const MOST_RUNS: usize = 256;

/// A path and the symbols that it is given in a row.
type Run = (PathId, u64);

/// The DAPS scheduler.
#[derive(Clone, Debug, Default)]
pub struct Daps {
    /// The rest of the plan.
    plan: VecDeque<Run>,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    unblock::wrap(options, Daps::default())
}

/// Time between two windows of a path in the plan, in steps: half of the path's round trip.
fn delay(path: &PathView) -> u64 {
    let steps = (path.rtt.smoothed / 2 + STEP / 2).as_nanos() / STEP.as_nanos();
    u64::try_from(steps).unwrap_or(u64::MAX).max(1)
}

/// The windows in order of arrival, until the windows of all paths arrive together. Of simultaneous
/// windows, that of the faster path is first.
fn plan(view: &SchedulerView<'_>) -> VecDeque<Run> {
    let mut plan = VecDeque::new();
    let mut paths: Vec<&PathView> = carriers(view).collect();
    paths.sort_by_key(|path| (path.rtt.smoothed, path.id));
    let mut next: Vec<u64> = paths.iter().map(|path| delay(path)).collect();
    while let Some(time) = next.iter().min().copied().filter(|_| plan.len() < MOST_RUNS) {
        let together = next.iter().all(|next| *next == time);
        for (path, next) in paths.iter().zip(&mut next).filter(|(_, next)| **next == time) {
            plan.push_back((path.id, path.cwnd_packets()));
            *next += delay(path);
        }
        if together {
            break;
        }
    }
    plan
}

impl Scheduler for Daps {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        _view: &SchedulerView<'_>,
        _actions: &mut Vec<SchedulerAction>,
    ) {
        if matches!(event, SchedulerEvent::PathUp(_) | SchedulerEvent::PathDown(_)) {
            self.plan.clear();
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        if let Some(answer) = due_on_fastest(path, view, picks) {
            return answer;
        }
        if self.plan.is_empty() {
            self.plan = plan(view);
        }
        let Some((next, left)) = self.plan.front_mut() else { return NOTHING };
        let Some(carrier) = view.path(*next) else {
            self.plan.clear();
            return NOTHING;
        };
        if carrier.id != path && carrier.bytes_queued >= carrier.cwnd {
            return Pull::Idle("what comes next is for a path that has a window queued");
        }
        let count = (*left).min(u64::from(view.fresh.symbols)).min(u64::from(u16::MAX));
        *left -= count;
        if *left == 0 {
            self.plan.pop_front();
        }
        assign_fresh(picks, carrier.id, count as u16, "next of the plan")
    }
}
