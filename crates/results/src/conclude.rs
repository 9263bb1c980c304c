//! Writes tables and summary from the kept runs, always in the same order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::Needed;
use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::tables::Tables;
use crate::{
    ClaimSummary, Journal, MissingRuns, PointSummary, Provenance, ResultsError, RunId, Summary,
    Sweep, file,
};

/// Writes the tables and the summary of the kept runs into the journal's directory. The summary
/// lists missing runs. If there are any, claims are judged only by the seeds that every point has.
///
/// Runs are read one by one, and each point is written immediately, so that only values that claims
/// use stay in memory.
///
/// # Errors
/// When a run cannot be read or a file cannot be written.
pub fn conclude(journal: &Journal) -> Result<Summary, ResultsError> {
    let sweep = journal.sweep();
    let points = sweep.scenario().points().iter().map(|point| point.labels.clone());
    let labels: Vec<Vec<(String, String)>> = points.collect();
    let tables = Tables::begin(journal.directory(), sweep.provenance(), &labels)?;
    let pass = RefCell::new(Pass {
        journal,
        tables: Some(tables),
        needed: sweep.scenario().needed(),
        runs: Vec::new(),
        summary: Summary::default(),
        failure: None,
    });
    let path = journal.directory().join(Summary::FILE);
    let written = file::fill(&path, true, |out| {
        let mut json = serde_json::Serializer::pretty(&mut *out);
        let mut map = json.serialize_map(None)?;
        let Provenance { scenario, hash, settings, version, commit, text } = sweep.provenance();
        map.serialize_entry("scenario", scenario)?;
        map.serialize_entry("hash", hash)?;
        map.serialize_entry("settings", settings)?;
        map.serialize_entry("version", version)?;
        map.serialize_entry("commit", commit)?;
        map.serialize_entry("text", text)?;
        map.serialize_entry("seeds", sweep.seeds())?;
        map.serialize_entry("points", &Points(&pass))?;
        let mut pass = pass.borrow_mut();
        map.serialize_entry("claims", pass.judge())?;
        if !pass.summary.missing.is_empty() {
            map.serialize_entry("missing", &pass.summary.missing)?;
        }
        let tables = pass.tables.take().map_or_else(|| Ok(BTreeMap::new()), Tables::finish);
        let tables = tables.map_err(|error| {
            pass.failure = Some(error);
            io::Error::other("a table")
        })?;
        map.serialize_entry("tables", &tables)?;
        SerializeMap::end(map)?;
        out.write_all(b"\n")
    });
    let Pass { summary, failure, .. } = pass.into_inner();
    // The error of a run or a table is reported, not the failure of the summary that follows from
    // it.
    failure.map_or(written, Err)?;
    Ok(summary)
}

/// State of the single pass over all runs.
struct Pass<'a> {
    journal: &'a Journal,
    /// `None` once the tables are finished.
    tables: Option<Tables>,
    needed: Needed,
    /// The values that claims need, point by point and seed by seed.
    runs: Vec<Vec<RunReport>>,
    summary: Summary,
    failure: Option<ResultsError>,
}

/// Serialises the points. Each point is read and summarised when it is written.
struct Points<'a, 'b>(&'a RefCell<Pass<'b>>);

impl Serialize for Points<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pass = self.0.borrow_mut();
        let points = pass.journal.sweep().scenario().points().len();
        let mut sequence = serializer.serialize_seq(Some(points))?;
        for index in 0..points {
            let point = pass.point(index).map_err(|error| {
                pass.failure = Some(error);
                S::Error::custom("a run")
            })?;
            sequence.serialize_element(&point)?;
            if index < Summary::POINTS {
                pass.summary.points.push(point);
            } else {
                pass.summary.further += 1;
            }
        }
        sequence.end()
    }
}

impl Pass<'_> {
    /// Reads the runs at a point, appends them to the tables and summarises them.
    fn point(&mut self, index: usize) -> Result<PointSummary, ResultsError> {
        let sweep = self.journal.sweep();
        let labels = sweep.scenario().points().get(index).map_or(&[][..], |point| &point.labels);
        let mut summary = PointSummary::new(labels);
        let (mut runs, mut absent) = (Vec::new(), Vec::new());
        for seed in sweep.seeds() {
            let Some(mut report) = self.journal.load(RunId { point: index, seed: *seed })? else {
                summary.skip();
                absent.push(*seed);
                continue;
            };
            if let Some(tables) = &mut self.tables {
                tables.append(index, &report)?;
            }
            summary.add(&report);
            self.needed.reduce(&mut report);
            runs.push(report);
        }
        summary.conclude();
        if !absent.is_empty() {
            self.summary.missing.push(MissingRuns { point: summary.point.clone(), seeds: absent });
        }
        self.runs.push(runs);
        Ok(summary)
    }

    /// Judges the claims by the runs.
    fn judge(&mut self) -> &[ClaimSummary] {
        let sweep = self.journal.sweep();
        // Without a seed common to all points no claim can be judged, and claims without values
        // would count as failed.
        if keep_common(&mut self.runs, &self.summary.missing, sweep) > 0 {
            let findings = sweep.scenario().judge(&self.runs);
            self.summary.claims = findings.into_iter().map(ClaimSummary::from).collect();
        }
        &self.summary.claims
    }
}

/// Keeps only the runs with seeds that every point has, since claims compare runs of the same seed.
/// Returns the number of such seeds.
fn keep_common(all: &mut [Vec<RunReport>], missing: &[MissingRuns], sweep: &Sweep) -> usize {
    let lacking: BTreeSet<u64> = missing.iter().flat_map(|runs| runs.seeds.clone()).collect();
    if !lacking.is_empty() {
        all.iter_mut().for_each(|runs| runs.retain(|run| !lacking.contains(&run.seed)));
    }
    sweep.seeds().iter().filter(|seed| !lacking.contains(seed)).count()
}
