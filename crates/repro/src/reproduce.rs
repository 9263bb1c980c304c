//! Checks items and determines their verdicts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_results::{Journal, ResultsError, RunId, Shard, Sweep};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{Needed, RunError, RunOptions};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use serde::Serialize;

use crate::catalogue::Item;
use crate::check;
use crate::experiments::{self, Experiment};
use crate::figure::Figure;
use crate::outcome::{Outcome, Setting};
use crate::report::{ItemReport, Report};

/// How items are reproduced.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Whether to use fewer seeds and shorter runs.
    pub quick: bool,
    /// How many runs are made at the same time; at least 1.
    pub jobs: usize,
    /// Set to end the work early.
    pub cancel: &'a AtomicBool,
    /// Called after every finished run.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Directory in which finished runs are kept and found again; `None`: they are not kept.
    pub runs: Option<&'a Path>,
    /// Further such directories, whose runs are copied. If there are any, no run is made: all runs
    /// must exist already.
    pub merged: &'a [PathBuf],
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Settings<'_> {
    /// Full runs, one at a time, never cancelled and not kept.
    fn default() -> Self {
        Settings {
            quick: false,
            jobs: 1,
            cancel: &NEVER,
            progress: &|_| {},
            runs: None,
            merged: &[],
        }
    }
}

impl core::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut debug = f.debug_struct("Settings");
        debug.field("quick", &self.quick).field("jobs", &self.jobs).field("runs", &self.runs);
        debug.field("merged", &self.merged).finish_non_exhaustive()
    }
}

/// How much of the work is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Finished runs, including kept ones that were found.
    pub done: usize,
    /// How many of the finished runs were found rather than made.
    pub found: usize,
    /// Number of runs in all.
    pub total: usize,
}

/// Why there is no report.
#[derive(Debug)]
pub enum Failure {
    /// The work was cancelled.
    Cancelled,
    /// A run cannot be kept, or a kept run cannot be read.
    Results(ResultsError),
    /// A scenario has mistakes, or a run failed. The text names it and the reason.
    Run(String),
    /// The directories that were to be merged lack runs.
    Missing {
        /// The number of missing runs.
        runs: usize,
        /// The number of runs in all.
        total: usize,
        /// The first missing run.
        first: String,
    },
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::Cancelled => f.write_str("interrupted"),
            Failure::Results(error) => error.fmt(f),
            Failure::Run(why) => f.write_str(why),
            Failure::Missing { runs, total, first } => {
                write!(f, "{runs} of {total} runs are missing, the first of them {first}")
            }
        }
    }
}

impl core::error::Error for Failure {}

/// Checks `items` in the order of the catalogue. Items about the same experiment share its runs.
///
/// # Errors
/// If the work was cancelled, a run failed, or runs could not be kept.
pub fn reproduce(items: &[&Item], settings: &Settings<'_>) -> Result<Report, Failure> {
    let wanted: BTreeSet<&str> = items.iter().map(|item| item.id).collect();
    let items: Vec<&Item> =
        crate::catalogue::items().iter().filter(|item| wanted.contains(item.id)).collect();
    let plans = plan(&items, settings)?;
    let evidence = run_all(plans, settings)?;
    let judged = |item: &&Item| {
        if settings.cancel.load(Ordering::Relaxed) {
            return Err(Failure::Cancelled);
        }
        Ok(judge(item, &evidence))
    };
    let items = on_threads(settings.jobs, || items.par_iter().map(judged).collect())?;
    Ok(Report { items })
}

/// A run that items need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedRun {
    /// Key of the run: 32 hexadecimal digits.
    pub id: String,
    /// The experiment, such as `mplot/fig3`.
    pub experiment: &'static str,
    /// Index of the point in the scenario's order.
    pub point: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Estimated CPU time of the run, s.
    pub cost: f64,
}

/// The runs that `items` need, in the order in which they are made.
///
/// # Errors
/// If a scenario has mistakes.
pub fn planned(items: &[&Item], settings: &Settings<'_>) -> Result<Vec<PlannedRun>, Failure> {
    let plans = plan(items, &Settings { runs: None, ..*settings })?;
    let run = |task: &Task<'_>| {
        let sweep = &task.plan.sweep;
        PlannedRun {
            id: sweep.key(task.id).map(|key| key.to_string()).unwrap_or_default(),
            experiment: task.plan.experiment.name,
            point: task.id.point,
            seed: task.id.seed,
            cost: sweep.cost(task.id),
        }
    };
    Ok(tasks(&plans).iter().map(run).collect())
}

/// Makes one of several parts of the runs that `items` need, and keeps these runs. Returns how many
/// they are. Once all parts exist, [`Settings::merged`] brings them together.
///
/// # Errors
/// If the work was cancelled, a run failed, or runs could not be kept.
pub fn make(items: &[&Item], settings: &Settings<'_>, shard: Shard) -> Result<usize, Failure> {
    let plans = plan(items, settings)?;
    let all = tasks(&plans);
    let costs: Vec<f64> = all.iter().map(|task| task.plan.sweep.cost(task.id)).collect();
    let chosen = shard.choose(&costs).into_iter().filter_map(|place| all.get(place).copied());
    let chosen: Vec<Task<'_>> = chosen.collect();
    Ok(perform(&chosen, settings)?.len())
}

/// An experiment whose runs are needed.
struct Planned {
    experiment: &'static Experiment,
    sweep: Sweep,
    needed: Needed,
    journal: Option<Journal>,
}

/// The runs of an experiment, by point and seed.
struct Evidence {
    plan: Planned,
    runs: Vec<Vec<RunReport>>,
}

/// The experiments that the items need, each listed once.
fn plan(items: &[&Item], settings: &Settings<'_>) -> Result<Vec<Planned>, Failure> {
    let needed =
        |experiment: &&Experiment| items.iter().any(|item| experiment.items.contains(item.id));
    experiments::all().iter().filter(needed).map(|one| prepare(one, settings)).collect()
}

fn prepare(experiment: &'static Experiment, settings: &Settings<'_>) -> Result<Planned, Failure> {
    let scenario = experiment.scenario(settings.quick).map_err(Failure::Run)?;
    let needed = scenario.needed();
    let sweep = Sweep::new(scenario, None);
    // Quick and full runs belong to different scenarios and are kept apart.
    let length = if settings.quick { "quick" } else { "full" };
    let within = |directory: &Path| directory.join(length).join(experiment.name.replace('/', "-"));
    let open = |directory: &Path| {
        let journal = Journal::open(&within(directory), &sweep)?;
        let others = settings.merged.iter().map(|other| within(other));
        for other in others.filter(|other| other.is_dir()) {
            journal.take(&other)?;
        }
        Ok(journal)
    };
    let journal = settings.runs.map(open).transpose().map_err(Failure::Results)?;
    Ok(Planned { experiment, sweep, needed, journal })
}

/// One run of an experiment.
#[derive(Clone, Copy)]
struct Task<'a> {
    plan: &'a Planned,
    /// Index of the experiment among those whose runs are needed.
    index: usize,
    id: RunId,
}

fn tasks(plans: &[Planned]) -> Vec<Task<'_>> {
    let of = |(index, plan): (usize, &'_ Planned)| {
        plan.sweep.runs().map(move |id| (index, id)).collect::<Vec<_>>()
    };
    let all = plans.iter().enumerate().flat_map(of);
    all.filter_map(|(index, id)| Some(Task { plan: plans.get(index)?, index, id })).collect()
}

fn run_all(plans: Vec<Planned>, settings: &Settings<'_>) -> Result<Vec<Evidence>, Failure> {
    let tasks = tasks(&plans);
    if !settings.merged.is_empty() {
        complete(&tasks)?;
    }
    let reports = perform(&tasks, settings)?;
    let places = |plan: &Planned| vec![Vec::new(); plan.sweep.scenario().points().len()];
    let mut runs: Vec<Vec<Vec<RunReport>>> = plans.iter().map(places).collect();
    for (task, report) in tasks.iter().zip(reports) {
        let point = runs.get_mut(task.index).and_then(|points| points.get_mut(task.id.point));
        point.into_iter().for_each(|point| point.push(report.clone()));
    }
    let evidence = plans.into_iter().zip(runs).map(|(plan, runs)| Evidence { plan, runs });
    Ok(evidence.collect())
}

/// Checks that every run is kept already.
fn complete(tasks: &[Task<'_>]) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for task in tasks {
        let journal = task.plan.journal.as_ref();
        let kept = journal.map_or(Ok(None), |journal| journal.load(task.id));
        if kept.map_err(Failure::Results)?.is_none() {
            missing.push(task);
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(first) => {
            let (runs, total) = (missing.len(), tasks.len());
            Err(Failure::Missing { runs, total, first: first.name() })
        }
    }
}

/// Finds or makes every run; returns the reports in the order of `tasks`.
fn perform(tasks: &[Task<'_>], settings: &Settings<'_>) -> Result<Vec<RunReport>, Failure> {
    let (done, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let act = |(index, task): (usize, &Task<'_>)| {
        let (run, kept) = task.one(settings.cancel)?;
        let kept = usize::from(kept);
        let found = found.fetch_add(kept, Ordering::Relaxed) + kept;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        (settings.progress)(Progress { done, found, total: tasks.len() });
        Ok((index, run))
    };
    // The bridge hands out the tasks in their order; the reports come in the order in which the
    // runs end.
    let begun = tasks.iter().enumerate().par_bridge();
    let mut runs: Vec<(usize, RunReport)> =
        on_threads(settings.jobs, || begun.map(act).collect::<Result<_, Failure>>())?;
    runs.sort_unstable_by_key(|(index, _)| *index);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

/// Does `work`, whose parallel iterators use `jobs` threads.
fn on_threads<R: Send>(
    jobs: usize,
    work: impl FnOnce() -> Result<R, Failure> + Send,
) -> Result<R, Failure> {
    let threads = ThreadPoolBuilder::new().num_threads(jobs.max(1)).build();
    threads.map_err(|error| Failure::Run(error.to_string()))?.install(work)
}

impl Task<'_> {
    /// Finds or makes the run. Returns the report, and whether it was found.
    fn one(&self, cancel: &AtomicBool) -> Result<(RunReport, bool), Failure> {
        let Planned { sweep, journal, needed, .. } = self.plan;
        if let Some(journal) = journal
            && let Some(run) = journal.load(self.id).map_err(Failure::Results)?
        {
            return Ok((run, true));
        }
        let Some(point) = sweep.point(self.id) else { return Err(Failure::Cancelled) };
        let mut options = RunOptions { cancel: Some(cancel), ..RunOptions::default() };
        let run = match sweep.scenario().run_with(point, self.id.seed, &mut options) {
            Ok(mut run) => {
                // Drop values that no claim uses, to save memory.
                needed.trim(&mut run);
                run
            }
            Err(RunError::Cancelled) => return Err(Failure::Cancelled),
            Err(error) => return Err(Failure::Run(format!("{}: {error}", self.name()))),
        };
        if let Some(journal) = journal {
            journal.keep(self.id, &run).map_err(Failure::Results)?;
        }
        Ok((run, false))
    }

    /// Name of the run in messages.
    fn name(&self) -> String {
        let RunId { point, seed } = self.id;
        format!("{}, point {}, seed {seed}", self.plan.experiment.name, point + 1)
    }
}

fn judge(item: &Item, evidence: &[Evidence]) -> ItemReport {
    if let Some(formula) = check::formula(item.id) {
        return ItemReport::new(item, formula.outcome());
    }
    let own = evidence.iter().filter(|evidence| evidence.plan.experiment.items.contains(item.id));
    let mut outcome = Outcome::new();
    for Evidence { plan, runs } in own {
        let scenario = plan.sweep.scenario();
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
    // Claims of the paper come first, then the ablations that explain a difference.
    outcome.findings.sort_by_key(|finding| finding.is_ablation);
    ItemReport::new(item, outcome)
}

fn setting(plan: &Planned) -> Setting {
    let scenario = plan.sweep.scenario();
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
