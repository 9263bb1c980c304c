//! Runs several simulations at once.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anabranch_results::RunId;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{RunError, RunOptions, Scenario};

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Done {
    /// Runs that are finished.
    pub(super) runs: usize,
    /// Runs' worth of work that is done, those under way included by their share of virtual time.
    pub(super) work: f64,
}

/// Parts of a run that its progress is counted in.
const PARTS: u32 = 10_000;

/// Runs everything. Passes each run to `keep` as it finishes, and the progress to `show` now and
/// then. Returns whether all was run; an interruption or a failure ends it early.
pub(super) fn run_all(
    work: &Work<'_>,
    keep: &mut dyn FnMut(RunId, &RunReport) -> Result<(), Failure>,
    show: &mut dyn FnMut(Done),
    interval: Duration,
) -> Result<bool, Failure> {
    let stop = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let jobs = work.jobs.min(work.runs.len()).max(1);
    let under_way: Vec<AtomicU32> = (0..jobs).map(|_| AtomicU32::new(0)).collect();
    // The channel holds few finished runs, so that simulations wait when the disk is slower.
    let (sender, receiver) = sync_channel(jobs);
    thread::scope(|scope| {
        for part in &under_way {
            let sender = sender.clone();
            let (stop, next) = (&stop, &next);
            scope.spawn(move || worker(work, next, stop, part, &sender));
        }
        drop(sender);
        let watch = Watch { work, stop: &stop, under_way: &under_way };
        let result = collect(&watch, &receiver, keep, show, interval);
        stop.store(true, Ordering::Relaxed);
        // Sending fails from now on, so that workers that wait to hand over a run return.
        drop(receiver);
        result
    })
}

type Outcome = (RunId, Result<RunReport, Failure>);

/// Makes runs until none is left or `stop` is set.
fn worker(
    work: &Work<'_>,
    next: &AtomicUsize,
    stop: &AtomicBool,
    part: &AtomicU32,
    sender: &SyncSender<Outcome>,
) {
    while !stop.load(Ordering::Relaxed) {
        let Some(id) = work.runs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
        part.store(0, Ordering::Relaxed);
        let mut progress =
            |share: f64| part.store((share * f64::from(PARTS)) as u32, Ordering::Relaxed);
        let outcome = run_one(work, *id, stop, &mut progress);
        part.store(0, Ordering::Relaxed);
        let Some(outcome) = outcome else { return };
        if sender.send((*id, outcome)).is_err() {
            return;
        }
    }
}

/// Makes one run; `None` if it was stopped.
fn run_one(
    work: &Work<'_>,
    id: RunId,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Option<Result<RunReport, Failure>> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::failed(format!("point {} with seed {}: {why}", id.point, id.seed))
    };
    let Some(point) = work.scenario.points().get(id.point) else {
        return Some(Err(failed(&"there is no such point")));
    };
    let mut tracer = match work.traces.begin(work.scenario, point, id) {
        Ok(tracer) => tracer,
        Err(failure) => return Some(Err(failure)),
    };
    let mut options =
        RunOptions { progress: Some(progress), cancel: Some(stop), ..RunOptions::default() };
    if let Some(tracer) = &mut tracer {
        tracer.attach(&mut options);
    }
    match work.scenario.run_with(point, id.seed, &mut options) {
        Ok(report) => {
            let traced = tracer.map_or(Ok(()), Tracer::finish);
            Some(traced.map(|()| report))
        }
        Err(RunError::Cancelled) => None,
        Err(error) => Some(Err(failed(&error))),
    }
}

struct Watch<'a> {
    work: &'a Work<'a>,
    stop: &'a AtomicBool,
    under_way: &'a [AtomicU32],
}

impl Watch<'_> {
    fn done(&self, runs: usize) -> Done {
        let parts = self.under_way.iter().map(|part| part.load(Ordering::Relaxed)).sum::<u32>();
        Done { runs, work: runs as f64 + f64::from(parts) / f64::from(PARTS) }
    }
}

/// Takes finished runs until all are there.
fn collect(
    watch: &Watch<'_>,
    receiver: &Receiver<Outcome>,
    keep: &mut dyn FnMut(RunId, &RunReport) -> Result<(), Failure>,
    show: &mut dyn FnMut(Done),
    interval: Duration,
) -> Result<bool, Failure> {
    let mut finished = 0;
    while finished < watch.work.runs.len() {
        if watch.work.interrupted.load(Ordering::Relaxed) {
            watch.stop.store(true, Ordering::Relaxed);
        }
        match receiver.recv_timeout(interval) {
            Ok((id, outcome)) => {
                keep(id, &outcome?)?;
                finished += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // All workers ended; what they had finished was taken.
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        }
        show(watch.done(finished));
    }
    Ok(true)
}
