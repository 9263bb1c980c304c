//! Tables and summary from the kept runs, in an order that nothing can change.

use std::collections::BTreeSet;

use anabranch_sim::report::RunReport;

use crate::tables::Tables;
use crate::{
    ClaimSummary, Journal, MissingRuns, PointSummary, ResultsError, RunId, Summary, Sweep,
};

/// Writes the tables and the summary of the runs that are kept, into the journal's directory. What is missing
/// is told in the summary; claims are then judged by the seeds that every point has.
///
/// # Errors
/// When a run cannot be read or a file cannot be written.
pub fn conclude(journal: &Journal) -> Result<Summary, ResultsError> {
    let sweep = journal.sweep();
    let scenario = sweep.scenario();
    let labels: Vec<Vec<(String, String)>> =
        scenario.points().iter().map(|point| point.labels.clone()).collect();
    let mut tables = Tables::begin(journal.directory(), sweep.provenance(), &labels)?;
    let needed = scenario.needed();
    let (mut points, mut missing) = (Vec::new(), Vec::new());
    let mut all: Vec<Vec<RunReport>> = Vec::new();
    for (index, labels) in labels.iter().enumerate() {
        let mut summary = PointSummary::new(labels);
        let (mut runs, mut absent) = (Vec::new(), Vec::new());
        for seed in sweep.seeds() {
            let Some(mut report) = journal.load(RunId { point: index, seed: *seed })? else {
                summary.skip();
                absent.push(*seed);
                continue;
            };
            tables.append(index, &report)?;
            summary.add(&report);
            // What no claim looks at would fill the memory.
            needed.reduce(&mut report);
            runs.push(report);
        }
        summary.conclude();
        if !absent.is_empty() {
            missing.push(MissingRuns { point: summary.point.clone(), seeds: absent });
        }
        all.push(runs);
        points.push(summary);
    }
    let claims = match keep_common(&mut all, &missing, sweep) {
        // Nothing can be said of them; an empty verdict would pass for a bad one.
        0 => Vec::new(),
        _ => scenario.judge(&all).into_iter().map(ClaimSummary::from).collect(),
    };
    let tables = tables.finish()?;
    let provenance = sweep.provenance().clone();
    let seeds = sweep.seeds().to_vec();
    let summary = Summary { provenance, seeds, points, claims, missing, tables };
    summary.write(journal.directory())?;
    Ok(summary)
}

/// Leaves the runs of the seeds that no point lacks, since claims compare runs of one seed; returns how many
/// seeds these are.
fn keep_common(all: &mut [Vec<RunReport>], missing: &[MissingRuns], sweep: &Sweep) -> usize {
    let lacking: BTreeSet<u64> = missing.iter().flat_map(|runs| runs.seeds.clone()).collect();
    if !lacking.is_empty() {
        all.iter_mut().for_each(|runs| runs.retain(|run| !lacking.contains(&run.seed)));
    }
    sweep.seeds().iter().filter(|seed| !lacking.contains(seed)).count()
}
