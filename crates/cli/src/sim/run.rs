//! `sim run`: every point with every seed.

use std::path::PathBuf;
use std::thread::available_parallelism;

use anabranch_results::{Journal, Provenance, ResultsError, RunId};
use anabranch_sim::scenario::Scenario;

use super::args::RunArgs;
use super::load::load_right;
use super::pool::{self, Work};
use super::progress::Progress;
use super::results;
use super::table;
use super::traces::Traces;
use crate::failure::Failure;
use crate::{format, interrupt, output};

/// Runs what is not finished yet and reports all of it.
///
/// # Errors
/// As [`super::run`]; a claim of the scenario that fails is a failure.
pub(super) fn run(args: &RunArgs) -> Result<(), Failure> {
    let scenario = load_right(&args.file, &args.settings, args.quick)?;
    let seeds: Vec<u64> = match args.seeds {
        Some(count) => (1..=count).collect(),
        None => scenario.seeds().to_vec(),
    };
    let hash = scenario.hash();
    let settings = scenario.settings();
    let provenance = Provenance::new(scenario.name(), &hash, &settings, scenario.source());
    let out = args.out.clone().unwrap_or_else(|| default_directory(&scenario, &hash));
    let interrupted = interrupt::flag();
    let journal = Journal::open(&out, &provenance).map_err(failure)?;
    let traces = Traces::new(&out, args.pcapng, args.qlog)?;
    let all = runs(&scenario, &seeds);
    let missing = missing(&scenario, &journal, &traces, &all)?;
    eprintln!("{}", announcement(&scenario, &seeds, all.len() - missing.len()));
    let cores = || available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let (scenario, traces) = (&scenario, &traces);
    let work = Work { scenario, runs: &missing, jobs, traces, interrupted };
    run_missing(&work, &journal, all.len())?;
    let summary = results::write(scenario, &journal, &seeds).map_err(failure)?;
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&table::text(scenario.title(), &summary, &out))?;
    }
    let judged = |word: &str| summary.claims.iter().filter(|c| c.verdict == Some(word)).count();
    let failed = judged("fails");
    if failed == 0 {
        return Ok(());
    }
    let all = format::counted((judged("holds") + judged("open") + failed) as u64, "claim");
    let verb = if failed == 1 { "fails" } else { "fail" };
    Err(Failure::failed(format!("{failed} of {all} of the scenario {verb}")))
}

/// Makes the runs that are missing, keeping each as it finishes.
fn run_missing(work: &Work<'_>, journal: &Journal, all: usize) -> Result<(), Failure> {
    let missing = work.runs;
    if missing.is_empty() {
        return Ok(());
    }
    let mut progress = Progress::open(missing.len());
    let interval = progress.interval();
    let mut kept = all - missing.len();
    let mut keep = |id, report: &_| {
        journal.keep(id, report).map_err(failure)?;
        kept += 1;
        Ok(())
    };
    let complete = pool::run_all(work, &mut keep, &mut |done| progress.show(done), interval);
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

/// Every run: point by point, and seed by seed.
fn runs(scenario: &Scenario, seeds: &[u64]) -> Vec<RunId> {
    let points = 0..scenario.points().len();
    points.flat_map(|point| seeds.iter().map(move |seed| RunId { point, seed: *seed })).collect()
}

/// The runs that are not kept yet, or whose traces are wanted and missing.
fn missing(
    scenario: &Scenario,
    journal: &Journal,
    traces: &Traces,
    all: &[RunId],
) -> Result<Vec<RunId>, Failure> {
    let mut missing = Vec::new();
    for id in all {
        if !traces.has(scenario, *id) || journal.load(*id).map_err(failure)?.is_none() {
            missing.push(*id);
        }
    }
    Ok(missing)
}

fn announcement(scenario: &Scenario, seeds: &[u64], kept: usize) -> String {
    let points = scenario.points().len() as u64;
    let mut text = format!(
        "anabranch sim: {}, {} with {}",
        scenario.name(),
        format::counted(points, "point"),
        format::counted(seeds.len() as u64, "seed")
    );
    if kept > 0 {
        text += &format!(", {} finished earlier", format::counted(kept as u64, "run"));
    }
    text
}

fn default_directory(scenario: &Scenario, hash: &str) -> PathBuf {
    let short = hash.get(..8).unwrap_or(hash);
    PathBuf::from("results").join(format!("{}-{short}", scenario.name()))
}

/// What a results directory refused or could not do.
pub(super) fn failure(error: ResultsError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::failed(error) }
}
