//! Tables and summary from the kept runs, in an order that nothing can change.

use anabranch_results::tables::Tables;
use anabranch_results::{Expectation, Journal, PointSummary, ResultsError, RunId, Summary};
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
    let mut expectations = Vec::new();
    for (index, labels) in labels.iter().enumerate() {
        let mut summary = PointSummary::new(labels);
        let mut runs: Vec<RunReport> = Vec::new();
        for seed in seeds {
            let id = RunId { point: index, seed: *seed };
            let mut report = journal.load(id)?.ok_or_else(|| journal.lost(id))?;
            tables.append(index, &report)?;
            summary.add(&report);
            // Bounds are about single figures; the rest would fill the memory.
            report.series = Vec::new();
            report.samples = Vec::new();
            runs.push(report);
        }
        summary.conclude();
        let runs: Vec<&RunReport> = runs.iter().collect();
        let verdicts =
            scenario.expectations().iter().filter_map(|bound| bound.check(labels, &runs));
        expectations.extend(verdicts.map(|verdict| Expectation {
            point: verdict.point.into_iter().collect(),
            bound: verdict.expectation.to_string(),
            subject: verdict.expectation.of,
            metric: verdict.expectation.metric,
            relative_to: verdict.expectation.relative_to,
            min: verdict.expectation.min,
            max: verdict.expectation.max,
            mean: verdict.mean,
            met: verdict.holds,
        }));
        points.push(summary);
    }
    let tables = tables.finish()?;
    let provenance = journal.provenance().clone();
    let summary = Summary { provenance, seeds: seeds.to_vec(), points, expectations, tables };
    summary.write(journal.directory())?;
    Ok(summary)
}
