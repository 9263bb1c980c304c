//! From items to verdicts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_results::{Journal, Provenance, ResultsError, RunId};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{RunError, RunOptions, Scenario};

use crate::catalogue::Item;
use crate::check::{Check, check};
use crate::pool;
use crate::report::{ItemReport, Report};
use crate::simulated::{Evidence, Experiment};

/// How items are reproduced.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Fewer seeds and shorter runs.
    pub quick: bool,
    /// Runs at a time; at least 1.
    pub jobs: usize,
    /// Raised by whoever wants the work to end early.
    pub cancel: &'a AtomicBool,
    /// Told of every finished run.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Where finished runs are kept, and found again.
    pub runs: Option<&'a Path>,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Settings<'_> {
    /// In full, one run at a time, to the end, nothing kept.
    fn default() -> Self {
        Settings { quick: false, jobs: 1, cancel: &NEVER, progress: &|_| {}, runs: None }
    }
}

impl core::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut debug = f.debug_struct("Settings");
        debug.field("quick", &self.quick).field("jobs", &self.jobs).field("runs", &self.runs);
        debug.finish_non_exhaustive()
    }
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs finished, those found among kept ones included.
    pub done: usize,
    /// Of these, runs that were found.
    pub found: usize,
    /// Runs in all.
    pub total: usize,
}

/// Why no report came about.
#[derive(Debug)]
pub enum Failure {
    /// The work was cancelled.
    Cancelled,
    /// Runs cannot be kept, or kept ones not be read.
    Results(ResultsError),
    /// A scenario has mistakes, or a run failed: which one, and why.
    Run(String),
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::Cancelled => f.write_str("interrupted"),
            Failure::Results(error) => error.fmt(f),
            Failure::Run(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for Failure {}

/// Checks `items` in the order of the catalogue. Items that look at the same experiment share its runs.
///
/// # Errors
/// If it was cancelled, a run failed, or runs could not be kept.
pub fn reproduce(items: &[&Item], settings: &Settings<'_>) -> Result<Report, Failure> {
    let wanted: BTreeSet<&str> = items.iter().map(|item| item.id).collect();
    let items: Vec<&Item> =
        crate::catalogue::items().iter().filter(|item| wanted.contains(item.id)).collect();
    let plans = plan(&items, settings)?;
    let evidence = run_all(&plans, settings)?;
    let reports = pool::work(&items, settings.jobs, settings.cancel, |item| judge(item, &evidence));
    let reports: Option<Vec<ItemReport>> = reports.into_iter().collect();
    Ok(Report { items: reports.ok_or(Failure::Cancelled)? })
}

/// An experiment that is run.
struct Planned {
    name: &'static str,
    scenario: Scenario,
    journal: Option<Journal>,
}

/// The experiments that the items need, each once.
fn plan(items: &[&Item], settings: &Settings<'_>) -> Result<Vec<Planned>, Failure> {
    let mut experiments: BTreeMap<&str, &'static Experiment> = BTreeMap::new();
    for item in items {
        if let Some(Check::Simulated(simulated)) = check(item.id) {
            experiments.extend(simulated.experiments.iter().map(|one| (one.name, *one)));
        }
    }
    experiments.into_values().map(|experiment| prepare(experiment, settings)).collect()
}

fn prepare(experiment: &'static Experiment, settings: &Settings<'_>) -> Result<Planned, Failure> {
    let scenario = experiment.scenario(settings.quick).map_err(Failure::Run)?;
    let journal = settings.runs.map(|directory| {
        let assignments = scenario.assignments();
        let (name, hash, text) = (scenario.name(), scenario.hash(), scenario.source());
        let provenance = Provenance::new(name, &hash, assignments, text);
        // Quick and full runs are of different scenarios and live apart.
        let length = if settings.quick { "quick" } else { "full" };
        let directory = directory.join(length).join(experiment.name.replace('/', "-"));
        Journal::open(&directory, &provenance)
    });
    let journal = journal.transpose().map_err(Failure::Results)?;
    Ok(Planned { name: experiment.name, scenario, journal })
}

/// One run of an experiment.
struct Task<'a> {
    plan: &'a Planned,
    point: usize,
    seed: u64,
}

fn run_all(plans: &[Planned], settings: &Settings<'_>) -> Result<Evidence, Failure> {
    let mut tasks = Vec::new();
    for plan in plans {
        for point in 0..plan.scenario.points().len() {
            tasks.extend(plan.scenario.seeds().iter().map(|seed| Task {
                plan,
                point,
                seed: *seed,
            }));
        }
    }
    let (done, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = AtomicBool::new(false);
    let results = pool::work(&tasks, settings.jobs, settings.cancel, |task| {
        if failed.load(Ordering::Relaxed) {
            return Err(Failure::Cancelled);
        }
        let result = one(task, settings.cancel);
        match &result {
            Ok((_, kept)) => {
                let found = found.fetch_add(usize::from(*kept), Ordering::Relaxed);
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                let found = found + usize::from(*kept);
                (settings.progress)(Progress { done, found, total: tasks.len() });
            }
            Err(_) => failed.store(true, Ordering::Relaxed),
        }
        result
    });
    let mut evidence = Evidence::default();
    let mut failure = None;
    for (task, result) in tasks.iter().zip(results) {
        match result {
            Some(Ok((run, _))) => evidence.add(task.plan.name, run),
            Some(Err(Failure::Cancelled)) | None => failure = failure.or(Some(Failure::Cancelled)),
            // What failed says more than that the others were given up.
            Some(Err(error)) => return Err(error),
        }
    }
    failure.map_or(Ok(evidence), Err)
}

/// Finds or makes a run; true if it was found.
fn one(task: &Task<'_>, cancel: &AtomicBool) -> Result<(RunReport, bool), Failure> {
    let Planned { name, scenario, journal } = task.plan;
    let id = RunId { point: task.point, seed: task.seed };
    if let Some(journal) = journal
        && let Some(run) = journal.load(id).map_err(Failure::Results)?
    {
        return Ok((run, true));
    }
    let Some(point) = scenario.points().get(task.point) else { return Err(Failure::Cancelled) };
    let mut options = RunOptions { cancel: Some(cancel), ..RunOptions::default() };
    let run = match scenario.run_with(point, task.seed, &mut options) {
        // Checkers read means and deviations; every single packet's delay would fill memory.
        Ok(run) => RunReport { samples: Vec::new(), ..run },
        Err(RunError::Cancelled) => return Err(Failure::Cancelled),
        Err(error) => {
            let why = format!("{name}, point {}, seed {}: {error}", task.point + 1, task.seed);
            return Err(Failure::Run(why));
        }
    };
    if let Some(journal) = journal {
        journal.keep(id, &run).map_err(Failure::Results)?;
    }
    Ok((run, false))
}

fn judge(item: &Item, evidence: &Evidence) -> ItemReport {
    match check(item.id) {
        Some(Check::Formula(formula)) => ItemReport::new(item, formula()),
        Some(Check::Simulated(simulated)) => ItemReport::new(item, (simulated.check)(evidence)),
        None => ItemReport::not_yet(item, "There is no scenario and no checker for it yet."),
    }
}
