//! DAPS: data is planned in the order in which the paths' windows will arrive, and each part waits for its path.

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

/// Delays are rounded to multiples of this. Without that a plan, which ends when all paths' windows arrive together,
/// would be too long.
const STEP: Duration = Duration::from_millis(4);
/// A plan ends after this many runs at the latest.
const MOST_RUNS: usize = 256;

/// A path and the symbols that it is given in a row.
type Run = (PathId, u64);

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Daps {
    /// Rest of the plan.
    plan: VecDeque<Run>,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    unblock::wrap(options, Daps::default())
}

/// Time from one window of a path to the next as its plan has it, in steps: half of its round trip.
fn delay(path: &PathView) -> u64 {
    let steps = (path.rtt.smoothed / 2 + STEP / 2).as_nanos() / STEP.as_nanos();
    u64::try_from(steps).unwrap_or(u64::MAX).max(1)
}

/// The windows in order of arrival, until all paths' windows arrive together; of simultaneous ones, the faster path's
/// is first.
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
