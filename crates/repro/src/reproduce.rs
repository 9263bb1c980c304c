//! From items to verdicts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_results::{Journal, Provenance, ResultsError, RunId};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{RunError, RunOptions, Scenario};

use crate::catalogue::Item;
use crate::check;
use crate::experiments::{self, Experiment};
use crate::figure::Figure;
use crate::outcome::{Outcome, Setting};
use crate::pool;
use crate::report::{ItemReport, Report};

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
    let evidence = run_all(plans, settings)?;
    let reports = pool::work(&items, settings.jobs, settings.cancel, |item| judge(item, &evidence));
    let reports: Option<Vec<ItemReport>> = reports.into_iter().collect();
    Ok(Report { items: reports.ok_or(Failure::Cancelled)? })
}

/// An experiment that is run.
struct Planned {
    experiment: &'static Experiment,
    scenario: Scenario,
    journal: Option<Journal>,
}

/// The runs of an experiment, by point and seed.
struct Evidence {
    plan: Planned,
    runs: Vec<Vec<RunReport>>,
}

/// The experiments that the items need, each once.
fn plan(items: &[&Item], settings: &Settings<'_>) -> Result<Vec<Planned>, Failure> {
    let needed =
        |experiment: &&Experiment| items.iter().any(|item| experiment.items.contains(item.id));
    experiments::all().iter().filter(needed).map(|one| prepare(one, settings)).collect()
}

fn prepare(experiment: &'static Experiment, settings: &Settings<'_>) -> Result<Planned, Failure> {
    let scenario = experiment.scenario(settings.quick).map_err(Failure::Run)?;
    let journal = settings.runs.map(|directory| {
        let (name, hash, text) = (scenario.name(), scenario.hash(), scenario.source());
        let provenance = Provenance::new(name, &hash, &scenario.settings(), text);
        // Quick and full runs are of different scenarios and live apart.
        let length = if settings.quick { "quick" } else { "full" };
        let directory = directory.join(length).join(experiment.name.replace('/', "-"));
        Journal::open(&directory, &provenance)
    });
    let journal = journal.transpose().map_err(Failure::Results)?;
    Ok(Planned { experiment, scenario, journal })
}

/// One run of an experiment.
struct Task<'a> {
    plan: &'a Planned,
    index: usize,
    point: usize,
    seed: u64,
}

fn run_all(plans: Vec<Planned>, settings: &Settings<'_>) -> Result<Vec<Evidence>, Failure> {
    let mut tasks = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        for point in 0..plan.scenario.points().len() {
            let seeds = plan.scenario.seeds().iter();
            tasks.extend(seeds.map(|seed| Task { plan, index, point, seed: *seed }));
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
    let places = |plan: &Planned| vec![Vec::new(); plan.scenario.points().len()];
    let mut runs: Vec<Vec<Vec<RunReport>>> = plans.iter().map(places).collect();
    let mut failure = None;
    for (task, result) in tasks.iter().zip(results) {
        match result {
            Some(Ok((run, _))) => {
                let point = runs.get_mut(task.index).and_then(|points| points.get_mut(task.point));
                point.into_iter().for_each(|point| point.push(run.clone()));
            }
            Some(Err(Failure::Cancelled)) | None => failure = failure.or(Some(Failure::Cancelled)),
            // What failed says more than that the others were given up.
            Some(Err(error)) => return Err(error),
        }
    }
    let evidence = plans.into_iter().zip(runs).map(|(plan, runs)| Evidence { plan, runs });
    failure.map_or_else(|| Ok(evidence.collect()), Err)
}

/// Finds or makes a run; true if it was found.
fn one(task: &Task<'_>, cancel: &AtomicBool) -> Result<(RunReport, bool), Failure> {
    let Planned { experiment, scenario, journal } = task.plan;
    let id = RunId { point: task.point, seed: task.seed };
    if let Some(journal) = journal
        && let Some(run) = journal.load(id).map_err(Failure::Results)?
    {
        return Ok((run, true));
    }
    let Some(point) = scenario.points().get(task.point) else { return Err(Failure::Cancelled) };
    let mut options = RunOptions { cancel: Some(cancel), ..RunOptions::default() };
    let run = match scenario.run_with(point, task.seed, &mut options) {
        Ok(mut run) => {
            // What no claim looks at would fill memory.
            scenario.trim(&mut run);
            run
        }
        Err(RunError::Cancelled) => return Err(Failure::Cancelled),
        Err(error) => {
            let why = format!(
                "{}, point {}, seed {}: {error}",
                experiment.name,
                task.point + 1,
                task.seed
            );
            return Err(Failure::Run(why));
        }
    };
    if let Some(journal) = journal {
        journal.keep(id, &run).map_err(Failure::Results)?;
    }
    Ok((run, false))
}

fn judge(item: &Item, evidence: &[Evidence]) -> ItemReport {
    if let Some(formula) = check::formula(item.id) {
        return ItemReport::new(item, formula.outcome());
    }
    let own = evidence.iter().filter(|evidence| evidence.plan.experiment.items.contains(item.id));
    let mut outcome = Outcome::new();
    for Evidence { plan, runs } in own {
        let scenario = &plan.scenario;
        let is_own = |of: &Option<String>| of.as_deref() == Some(item.id);
        outcome.findings.extend(scenario.judge(runs).into_iter().filter(|f| is_own(&f.item)));
        let drawings = scenario.draw(runs).into_iter().filter(|drawing| is_own(&drawing.item));
        outcome.figures.extend(drawings.map(Figure::from));
        if let Some(result) = scenario.results().iter().find(|result| result.item == item.id) {
            outcome.published = result.clone();
        }
        outcome.settings.push(setting(plan));
    }
    if outcome.settings.is_empty() {
        outcome.remark("There is no scenario and no formula for it yet.");
    }
    // What the paper claims comes before what explains a difference.
    outcome.findings.sort_by_key(|finding| finding.is_ablation);
    ItemReport::new(item, outcome)
}

fn setting(plan: &Planned) -> Setting {
    let scenario = &plan.scenario;
    let first = scenario.points().first().and_then(|point| scenario.plan(point).ok());
    let duration = first.map_or_else(String::new, |plan| {
        let [all, skipped] = [plan.duration, plan.warm_up].map(|time| time.as_secs_f64());
        if skipped > 0.0 {
            format!("{all} s, of which the first {skipped} s are not measured")
        } else {
            format!("{all} s")
        }
    });
    Setting {
        file: plan.experiment.file(),
        seeds: scenario.seeds().len(),
        points: scenario.points().len(),
        duration,
        flows: scenario.flows(),
    }
}
