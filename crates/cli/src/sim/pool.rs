//! Runs several simulations at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anabranch_results::RunId;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{RunError, RunOptions, Scenario};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use super::traces::{Tracer, Traces};
use crate::failure::Failure;

/// Runs to make, and how.
pub(super) struct Work<'a> {
    pub(super) scenario: &'a Scenario,
    /// Runs that are not finished yet.
    pub(super) runs: &'a [RunId],
    /// Runs at a time.
    pub(super) jobs: usize,
    pub(super) traces: &'a Traces,
    /// Raised when the user interrupts.
    pub(super) interrupted: &'static AtomicBool,
}

/// Progress of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Done {
    /// Runs that are finished.
    pub(super) runs: usize,
    /// Work that is done, in runs. A run under way counts by its share of virtual time.
    pub(super) work: f64,
}

/// Callback that keeps a finished run.
pub(super) type Keep<'a> = &'a mut (dyn FnMut(RunId, &RunReport) -> Result<(), Failure> + Send);

/// Callback that shows the progress.
pub(super) type Show<'a> = &'a mut (dyn FnMut(Done) + Send);

/// Makes all runs, which begin in the given order, and shows the progress. Returns false if the user interrupted.
///
/// # Errors
/// The first failure of a run, or of `keep`; the other runs under way are given up then.
pub(super) fn run_all(work: &Work<'_>, keep: Keep<'_>, show: Show<'_>) -> Result<bool, Failure> {
    let jobs = work.jobs.clamp(1, work.runs.len().max(1));
    let threads = ThreadPoolBuilder::new().num_threads(jobs).build().map_err(Failure::failed)?;
    let shared = Shared {
        work,
        stop: AtomicBool::new(false),
        state: Mutex::new(State { done: Done::default(), keep, show }),
    };
    let runs = work.runs.iter().par_bridge();
    threads.install(|| runs.try_for_each(|id| shared.one(*id)))?;
    Ok(shared.with(|state| state.done.runs) == work.runs.len())
}

/// What the threads share.
struct Shared<'a> {
    work: &'a Work<'a>,
    /// Raised when the user interrupts or a run fails. The runs under way then end.
    stop: AtomicBool,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    done: Done,
    keep: Keep<'a>,
    show: Show<'a>,
}

impl Shared<'_> {
    fn with<R>(&self, act: impl FnOnce(&mut State<'_>) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes one run and keeps it, unless the work has been stopped.
    fn one(&self, id: RunId) -> Result<(), Failure> {
        self.heed_interruption();
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let kept = self.run(id).and_then(|report| match report {
            Some(report) => self.with(|state| {
                (state.keep)(id, &report)?;
                state.done.runs += 1;
                (state.show)(state.done);
                Ok(())
            }),
            None => Ok(()),
        });
        if kept.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        kept
    }

    /// Makes one run; `None` if it was stopped.
    fn run(&self, id: RunId) -> Result<Option<RunReport>, Failure> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::failed(format!("point {} with seed {}: {why}", id.point, id.seed))
        };
        let Work { scenario, traces, .. } = self.work;
        let point = scenario.points().get(id.point);
        let point = point.ok_or_else(|| failed(&"there is no such point"))?;
        let mut tracer = traces.begin(scenario, point, id)?;
        let mut share_done = 0.0;
        let mut progress = |share: f64| {
            self.heed_interruption();
            self.with(|state| {
                state.done.work += share - share_done;
                (state.show)(state.done);
            });
            share_done = share;
        };
        let mut options = RunOptions {
            progress: Some(&mut progress),
            cancel: Some(&self.stop),
            ..RunOptions::default()
        };
        if let Some(tracer) = &mut tracer {
            tracer.attach(&mut options);
        }
        match scenario.run_with(point, id.seed, &mut options) {
            Ok(report) => {
                tracer.map_or(Ok(()), Tracer::finish)?;
                Ok(Some(report))
            }
            Err(RunError::Cancelled) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    fn heed_interruption(&self) {
        if self.work.interrupted.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
