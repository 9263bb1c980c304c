//! Results directories: the runs of a sweep, kept as they finish.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_results::{Journal, RunId, Summary, Sweep, conclude, partition};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors;
use crate::report::Report;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::table::{self, Rows, Table};

/// A results directory for the runs of a scenario: the same that `anabranch sim run --out` makes.
///
/// The directory is made if it is not there; runs that are kept there already count. Until it is closed nobody else
/// can write there: use it in a `with` statement, or call `close()`.
///
/// Raises `ResultsError` if the directory holds other files or results of another scenario or version, or if
/// another program writes there.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Dataset {
    scenario: Scenario,
    sweep: Sweep,
    directory: PathBuf,
    journal: Mutex<Option<Arc<Journal>>>,
}

impl Dataset {
    pub(crate) fn open(
        py: Python<'_>,
        directory: PathBuf,
        scenario: &Scenario,
        seeds: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let sweep = scenario.with_seeds(seeds)?;
        let journal = py.detach(|| Journal::open(&directory, &sweep)).map_err(errors::results)?;
        let journal = Mutex::new(Some(Arc::new(journal)));
        Ok(Dataset { scenario: scenario.clone(), sweep, directory, journal })
    }

    fn journal(&self) -> PyResult<Arc<Journal>> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.as_ref().map(Arc::clone).ok_or_else(|| {
            let text = format!("{}: the dataset is closed", self.directory.display());
            PyValueError::new_err(text)
        })
    }

    /// Keys of the sweep, given as one text or several.
    fn sweep_keys(&self, keys: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let one = keys.extract::<String>().map(|key| vec![key]);
        let keys =
            one.or_else(|_| keys.extract::<Vec<String>>()).map_err(|_| not_a("sweep key", keys))?;
        let points = self.sweep.scenario().points();
        let known: Vec<&str> =
            points.iter().take(1).flat_map(|p| &p.labels).map(|(key, _)| key.as_str()).collect();
        match keys.iter().find(|key| !known.contains(&key.as_str())) {
            Some(key) if known.is_empty() => {
                let text = format!("the scenario has no sweep, and so no key '{key}'");
                Err(PyValueError::new_err(text))
            }
            Some(key) => Err(PyValueError::new_err(format!(
                "the scenario has no sweep key '{key}'; it has {}",
                known.join(", ")
            ))),
            None => Ok(keys),
        }
    }

    fn named(&self, runs: Vec<RunId>) -> Vec<Run> {
        runs.into_iter().filter_map(|id| self.scenario.run_at(id)).collect()
    }

    /// Checks that a run is one of this dataset's.
    fn check(&self, run: &Run) -> PyResult<()> {
        self.scenario.check(run)?;
        if self.sweep.seeds().contains(&run.id.seed) {
            return Ok(());
        }
        let text = format!("{run}: the dataset is not for seed {}", run.id.seed);
        Err(PyValueError::new_err(text))
    }

    pub(crate) fn keep(&self, py: Python<'_>, report: &Report) -> PyResult<()> {
        self.check(&report.run)?;
        let journal = self.journal()?;
        py.detach(|| journal.keep(report.run.id, &report.report)).map_err(errors::results)
    }

    pub(crate) fn missing_runs(&self, py: Python<'_>) -> PyResult<Vec<Run>> {
        let journal = self.journal()?;
        let missing = py.detach(|| journal.missing(self.sweep.runs())).map_err(errors::results)?;
        Ok(self.named(missing))
    }

    /// The kept runs, each reduced by `trim`.
    fn rows(&self, py: Python<'_>, trim: Trim) -> PyResult<Rows> {
        let journal = self.journal()?;
        let load = || {
            let load = |id| journal.load(id).map(|report| Some((id, report?)));
            let kept = self.sweep.runs().filter_map(|id| load(id).transpose());
            kept.map(|run| run.map(|(id, report)| (id, Arc::new(trim(report))))).collect()
        };
        let runs: Result<Vec<_>, _> = py.detach(load);
        Ok(Rows { columns: self.scenario.columns(), runs: runs.map_err(errors::results)? })
    }
}

type Trim = fn(anabranch_sim::report::RunReport) -> anabranch_sim::report::RunReport;

#[pymethods]
impl Dataset {
    #[new]
    #[pyo3(signature = (path, scenario, seeds=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        scenario: &Bound<'_, Scenario>,
        seeds: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Dataset::open(py, path, scenario.get(), seeds)
    }

    /// The directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.directory.clone()
    }

    /// The scenario.
    #[getter]
    fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }

    /// The seeds of the dataset.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.sweep.seeds().to_vec()
    }

    /// Every run of the dataset: point by point, and seed by seed.
    fn runs(&self) -> Vec<Run> {
        self.named(self.sweep.runs().collect())
    }

    /// Runs that are not kept yet, of all or of `runs`.
    #[pyo3(signature = (runs=None))]
    fn missing(&self, py: Python<'_>, runs: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Run>> {
        let Some(runs) = runs else { return self.missing_runs(py) };
        let mut wanted = Vec::new();
        for run in runs.try_iter()? {
            let run = run?;
            let run = run.cast::<Run>().map_err(|_| not_a("run", &run))?.get();
            self.check(run)?;
            wanted.push(run.id);
        }
        let journal = self.journal()?;
        let missing = py.detach(|| journal.missing(wanted.into_iter())).map_err(errors::results)?;
        Ok(self.named(missing))
    }

    /// Keeps a report, or each of several; a run that is kept survives a crash.
    ///
    /// Raises `ValueError` if one is of another scenario or version, before any is kept.
    fn commit(&self, py: Python<'_>, reports: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(report) = reports.cast::<Report>() {
            return self.keep(py, report.get());
        }
        let items = reports.try_iter().map_err(|_| not_a("report", reports))?;
        let mut found: Vec<Bound<'_, Report>> = Vec::new();
        for item in items {
            let item = item?;
            let report = item.cast::<Report>().map_err(|_| not_a("report", &item))?;
            self.check(&report.get().run)?;
            found.push(report.clone());
        }
        found.iter().try_for_each(|report| self.keep(py, report.get()))
    }

    /// Copies the runs that other results directories of the same scenario keep; returns the runs that are still
    /// missing.
    #[pyo3(signature = (*directories))]
    fn merge(&self, py: Python<'_>, directories: &Bound<'_, PyTuple>) -> PyResult<Vec<Run>> {
        let directories: Vec<PathBuf> = directories.extract()?;
        let journal = self.journal()?;
        let take = || directories.iter().try_for_each(|other| journal.take(other).map(drop));
        py.detach(take).map_err(errors::results)?;
        self.missing_runs(py)
    }

    /// Writes `scalars.parquet`, `series.parquet`, `samples.parquet` and `summary.json`; returns what is in the
    /// latter as a dictionary. They are, byte for byte, what `anabranch sim run` writes.
    ///
    /// Raises `IncompleteError` if runs are missing; with `partial=True` the others are written, and the
    /// summary tells which are missing.
    ///
    /// `partition_by` names one or several sweep keys: the tables are then written once more in parts, one
    /// directory for each of the keys' values, such as `partitions/loss=1%25`, as Hive does. Earlier parts are
    /// removed.
    #[pyo3(signature = (*, partial=false, partition_by=None))]
    pub(crate) fn write<'py>(
        &self,
        py: Python<'py>,
        partial: bool,
        partition_by: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keys = partition_by.map_or_else(|| Ok(Vec::new()), |keys| self.sweep_keys(keys))?;
        let missing = self.missing_runs(py)?;
        if let Some(first) = missing.first().filter(|_| !partial) {
            let (directory, all) = (self.directory.display(), self.sweep.runs().count());
            let text = format!(
                "{directory}: {} of {all} runs missing, the first with {first}; \
                 write(partial=True) writes the others",
                missing.len()
            );
            return Err(errors::incomplete(py, text, missing));
        }
        let journal = self.journal()?;
        py.detach(|| conclude(&journal)).map_err(errors::results)?;
        if !keys.is_empty() {
            py.detach(|| partition(&journal, &keys)).map_err(errors::results)?;
        }
        let path = self.directory.join(Summary::FILE);
        let text = std::fs::read_to_string(path)?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Single figures of every run that is kept. Points and seeds are columns, and so are the sweep's keys.
    #[getter]
    fn scalars(&self, py: Python<'_>) -> PyResult<Table> {
        let rows = self.rows(py, |mut report| {
            report.series = Vec::new();
            report.samples = Vec::new();
            report
        })?;
        table::scalars(&rows).map_err(table::failed)
    }

    /// Figures over virtual time of every run that is kept.
    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Table> {
        let rows = self.rows(py, |mut report| {
            report.samples = Vec::new();
            report
        })?;
        table::series(&rows).map_err(table::failed)
    }

    /// Figures with many values of every run that is kept.
    #[getter]
    fn samples(&self, py: Python<'_>) -> PyResult<Table> {
        let rows = self.rows(py, |mut report| {
            report.series = Vec::new();
            report
        })?;
        table::samples(&rows).map_err(table::failed)
    }

    /// Releases the directory, so that others can write there. Further calls do nothing.
    fn close(&self) {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        let runs = self.sweep.runs().count();
        let (directory, name) = (self.directory.display(), self.scenario.name());
        format!("<Dataset '{directory}' of '{name}', for {runs} runs>")
    }
}

fn not_a(what: &str, value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("a {what}, or several, not {}", crate::settings::kind(value)))
}
