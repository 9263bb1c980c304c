//! `sim run`: runs every point of a scenario with every seed.

use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use anabranch_results::{Journal, ResultsError, RunId, Summary, Sweep, conclude};
use serde::Serialize;

use super::args::RunArgs;
use super::load::load_sweep;
use super::pool::{self, Work};
use super::progress::Progress;
use super::selection::selected;
use super::table;
use super::traces::Traces;
use crate::failure::Failure;
use crate::{format, interrupt, output};

/// Runs what is not finished yet and reports all of it.
///
/// # Errors
/// The errors of [`super::run`]; a claim of the scenario that fails is a failure.
pub(super) fn run(args: &RunArgs) -> Result<(), Failure> {
    let sweep = load_sweep(&args.scenario)?;
    let chosen = selected(args, &sweep)?;
    let out = args.out.clone().unwrap_or_else(|| directory(args, &sweep));
    let interrupted = interrupt::flag();
    let journal = Journal::open(&out, &sweep).map_err(failure)?;
    let traces = Traces::new(&out, args.pcapng, args.qlog)?;
    let missing = missing(&journal, &traces, &chosen)?;
    eprintln!("{}", announcement(args, &sweep, (chosen.len(), missing.len())));
    let cores = || available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let (scenario, traces) = (sweep.scenario(), &traces);
    let work = Work { scenario, runs: &missing, jobs, traces, interrupted };
    run_missing(&work, &journal, chosen.len())?;
    if args.shard.is_some() || args.runs.is_some() {
        let elsewhere = journal.missing(sweep.runs()).map_err(failure)?;
        if !elsewhere.is_empty() {
            return part(args, &journal, (chosen.len(), elsewhere.len()));
        }
    }
    let summary = conclude(&journal).map_err(failure)?;
    if !summary.missing.is_empty() {
        let missing = journal.missing(sweep.runs()).map_err(failure)?;
        if let Some(lost) = missing.first() {
            return Err(failure(journal.lost(*lost)));
        }
    }
    show(&sweep, &summary, &out, args.json)?;
    held(&summary)
}

/// Prints the results of the runs.
pub(super) fn show(
    sweep: &Sweep,
    summary: &Summary,
    out: &Path,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let path = out.join(Summary::FILE);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        return output::print(&text);
    }
    output::print(&table::text(sweep.scenario().title(), summary, out))
}

/// Whether every claim holds or is open.
///
/// # Errors
/// When a claim fails.
pub(super) fn held(summary: &Summary) -> Result<(), Failure> {
    let judged = |word: &str| summary.claims.iter().filter(|c| c.verdict == Some(word)).count();
    let failed = judged("fails");
    if failed == 0 {
        return Ok(());
    }
    let all = format::counted((judged("holds") + judged("open") + failed) as u64, "claim");
    let verb = if failed == 1 { "fails" } else { "fail" };
    Err(Failure::failed(format!("{failed} of {all} of the scenario {verb}")))
}

/// JSON output of a part of the runs.
#[derive(Serialize)]
struct Part<'a> {
    scenario: &'a str,
    hash: &'a str,
    directory: &'a Path,
    /// Runs of this part, all of them kept.
    runs: usize,
    /// Runs of the whole that are not in this directory.
    elsewhere: usize,
}

/// Says that a part is finished, and what to do once all are.
fn part(args: &RunArgs, journal: &Journal, counts: (usize, usize)) -> Result<(), Failure> {
    let (runs, elsewhere) = counts;
    let provenance = journal.sweep().provenance();
    let directory = journal.directory();
    if args.json {
        let (scenario, hash) = (&provenance.scenario, &provenance.hash);
        return output::print_json(&Part { scenario, hash, directory, runs, elsewhere });
    }
    let beside = directory.parent().filter(|_| args.out.is_none());
    let all = beside.map_or_else(|| "DIR…".to_owned(), |all| format!("{}/*", all.display()));
    output::print(&format!(
        "{} finished in {}; {elsewhere} more of the scenario are not in that directory.\n\
         Once all parts are finished: anabranch sim merge {all}\n",
        format::counted(runs as u64, "run"),
        directory.display()
    ))
}

/// Makes the runs that are missing, keeping each as it finishes.
fn run_missing(work: &Work<'_>, journal: &Journal, all: usize) -> Result<(), Failure> {
    let missing = work.runs;
    if missing.is_empty() {
        return Ok(());
    }
    let mut progress = Progress::open(missing.len());
    let mut kept = all - missing.len();
    let mut keep = |id, report: &_| {
        journal.keep(id, report).map_err(failure)?;
        kept += 1;
        Ok(())
    };
    let complete = pool::run_all(work, &mut keep, &mut |done| progress.show(done));
    progress.close();
    match complete {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::interrupted(format!(
            "interrupted with {kept} of {} finished; the same command continues, in {}",
            format::counted(all as u64, "run"),
            journal.directory().display()
        ))),
        Err(failure) => Err(failure),
    }
}

/// The runs that are not kept yet, or whose traces are wanted and missing.
fn missing(journal: &Journal, traces: &Traces, chosen: &[RunId]) -> Result<Vec<RunId>, Failure> {
    let scenario = journal.sweep().scenario();
    let traced = |id: &RunId| traces.has(scenario, *id);
    let (traced, mut missing): (Vec<RunId>, Vec<RunId>) = chosen.iter().partition(|id| traced(id));
    missing.extend(journal.missing(traced.into_iter()).map_err(failure)?);
    // Sorted by point, then by seed: the sweep's order if its seeds ascend.
    missing.sort_unstable();
    Ok(missing)
}

fn announcement(args: &RunArgs, sweep: &Sweep, (chosen, missing): (usize, usize)) -> String {
    let points = sweep.scenario().points().len() as u64;
    let mut text = format!(
        "anabranch sim: {}, {} with {}",
        sweep.scenario().name(),
        format::counted(points, "point"),
        format::counted(sweep.seeds().len() as u64, "seed")
    );
    match args.shard {
        Some(shard) => text += &format!(", part {shard} with {}", runs(chosen)),
        None if args.runs.is_some() => text += &format!(", {} of them", runs(chosen)),
        None => {}
    }
    if chosen > missing {
        text += &format!(", {} finished earlier", runs(chosen - missing));
    }
    text
}

fn runs(count: usize) -> String {
    format::counted(count as u64, "run")
}

/// Where results are kept if no place is named.
pub(super) fn default_directory(sweep: &Sweep) -> PathBuf {
    let hash = &sweep.provenance().hash;
    let short = hash.get(..8).unwrap_or(hash);
    PathBuf::from("results").join(format!("{}-{short}", sweep.scenario().name()))
}

/// The default directory for the results; a part of the runs has one of its own beside it.
fn directory(args: &RunArgs, sweep: &Sweep) -> PathBuf {
    let mut all = default_directory(sweep);
    let Some(shard) = args.shard else { return all };
    all.add_extension("shards");
    all.join(format!("{}-of-{}", shard.number(), shard.count()))
}

/// The failure for an error of a results directory.
pub(super) fn failure(error: ResultsError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::failed(error) }
}
