//! Tables and summary from the kept runs, in an order that nothing can change.

use anabranch_results::tables::Tables;
use anabranch_results::{ClaimSummary, Journal, PointSummary, ResultsError, RunId, Summary};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::Scenario;

/// Writes the tables and the summary of the runs at every point with `seeds`; all are kept.
///
/// # Errors
/// When a run cannot be read or a file cannot be written.
pub(super) fn write(
    scenario: &Scenario,
    journal: &Journal,
    seeds: &[u64],
) -> Result<Summary, ResultsError> {
    let labels: Vec<Vec<(String, String)>> =
        scenario.points().iter().map(|point| point.labels.clone()).collect();
    let mut tables = Tables::begin(journal.directory(), journal.provenance(), &labels)?;
    let mut points = Vec::new();
    let mut all: Vec<Vec<RunReport>> = Vec::new();
    for (index, labels) in labels.iter().enumerate() {
        let mut summary = PointSummary::new(labels);
        let mut runs: Vec<RunReport> = Vec::new();
        for seed in seeds {
            let id = RunId { point: index, seed: *seed };
            let mut report = journal.load(id)?.ok_or_else(|| journal.lost(id))?;
            tables.append(index, &report)?;
            summary.add(&report);
            // What no claim looks at would fill the memory.
            scenario.trim(&mut report);
            runs.push(report);
        }
        summary.conclude();
        all.push(runs);
        points.push(summary);
    }
    let claims = scenario.judge(&all).into_iter().map(ClaimSummary::from).collect();
    let tables = tables.finish()?;
    let provenance = journal.provenance().clone();
    let summary = Summary { provenance, seeds: seeds.to_vec(), points, claims, tables };
    summary.write(journal.directory())?;
    Ok(summary)
}
