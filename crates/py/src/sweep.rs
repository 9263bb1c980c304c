//! Runs all runs of a scenario on the threads of one machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use anabranch_results::RunId;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::dataset::Dataset;
use crate::errors::RunError;
use crate::execute::{GRACE, LOOK, failed, wait};
use crate::policies;
use crate::report::Report;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::table::{self, Rows, Table};

/// The reports of a scenario's runs, in memory.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Results {
    scenario: Scenario,
    /// In the order of the runs.
    reports: Vec<Report>,
}

impl Results {
    pub(crate) fn of(&self) -> &Scenario {
        &self.scenario
    }

    pub(crate) fn rows(&self) -> Rows {
        let row = |report: &Report| (report.run.id, Arc::clone(&report.report));
        Rows { columns: self.scenario.columns(), runs: self.reports.iter().map(row).collect() }
    }
}

#[pymethods]
impl Results {
    /// The scenario.
    #[getter]
    fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }

    /// The reports: point by point, and seed by seed.
    #[getter]
    fn reports(&self) -> Vec<Report> {
        self.reports.clone()
    }

    /// Single figures of every run. Points and seeds are columns, and so are the sweep's keys.
    #[getter]
    fn scalars(&self) -> PyResult<Table> {
        table::scalars(&self.rows()).map_err(table::failed)
    }

    /// Figures over virtual time of every run.
    #[getter]
    fn series(&self) -> PyResult<Table> {
        table::series(&self.rows()).map_err(table::failed)
    }

    /// Figures with many values of every run.
    #[getter]
    fn samples(&self) -> PyResult<Table> {
        table::samples(&self.rows()).map_err(table::failed)
    }

    fn __len__(&self) -> usize {
        self.reports.len()
    }

    fn __repr__(&self) -> String {
        format!("<Results of '{}': {} reports>", self.scenario.name(), self.reports.len())
    }
}

/// The callback that is told how many runs are finished, and how many there are.
type Progress<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Makes every run of `scenario`: those that are missing in the directory `out`, which are kept and written
/// there, or all in memory.
pub(crate) fn sweep<'py>(
    scenario: &Scenario,
    seeds: Option<&Bound<'py, PyAny>>,
    out: Option<PathBuf>,
    jobs: Option<usize>,
    progress: (Python<'py>, Progress<'_, 'py>),
) -> PyResult<Bound<'py, PyAny>> {
    let (py, progress) = progress;
    let jobs = match jobs {
        Some(0) => return Err(PyValueError::new_err("jobs: at least 1")),
        Some(jobs) => jobs,
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let Some(out) = out else {
        let runs = scenario.runs(seeds)?;
        let mut reports = Vec::new();
        let order: BTreeMap<RunId, usize> =
            runs.iter().enumerate().map(|(place, run)| (run.id, place)).collect();
        run_all(scenario, (runs, jobs), (py, progress), &mut |report| {
            reports.push(report);
            Ok(())
        })?;
        reports.sort_by_key(|report: &Report| order.get(&report.run.id).copied());
        return Results { scenario: scenario.clone(), reports }.into_bound_py_any(py);
    };
    let dataset = Dataset::open(py, out, scenario, seeds)?;
    let missing = dataset.missing_runs(py)?;
    run_all(scenario, (missing, jobs), (py, progress), &mut |report| dataset.keep(py, &report))?;
    dataset.write(py, false, None)?;
    dataset.into_bound_py_any(py)
}

type Outcome = (usize, PyResult<Result<RunReport, scenario::RunError>>);

/// Makes runs on several threads; gives each to `keep` as it finishes.
fn run_all(
    scenario: &Scenario,
    (runs, jobs): (Vec<Run>, usize),
    (py, progress): (Python<'_>, Progress<'_, '_>),
    keep: &mut dyn FnMut(Report) -> PyResult<()>,
) -> PyResult<()> {
    let all = runs.len();
    let cancel = Cancel(Arc::new(AtomicBool::new(false)));
    let work = Arc::new(Work {
        scenario: scenario.clone(),
        runs: runs.iter().map(|run| run.id).collect(),
        next: AtomicUsize::new(0),
        cancel: Arc::clone(&cancel.0),
    });
    let jobs = jobs.min(all).max(1);
    // A short queue of finished runs: if the disk is slower than the simulation, the simulation waits for it.
    let (sender, receiver) = sync_channel(jobs);
    for _ in 0..jobs {
        let (work, sender) = (Arc::clone(&work), sender.clone());
        let name = "anabranch".to_owned();
        thread::Builder::new().name(name).spawn(move || work.run(&sender))?;
    }
    drop(sender);
    let receiver = Mutex::new(receiver);
    let mut done = 0;
    while done < all {
        match py.detach(|| wait(&receiver, LOOK)) {
            Ok((index, outcome)) => {
                let Some(run) = runs.get(index) else { continue };
                let report = outcome?.map_err(|why| RunError::new_err(format!("{run}: {why}")))?;
                keep(scenario.reported(run.clone(), report))?;
                done += 1;
                if let Some(progress) = progress {
                    progress.call1((done, all))?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failed()),
        }
        if let Err(interrupt) = py.check_signals() {
            cancel.0.store(true, Ordering::Relaxed);
            let _ = py.detach(|| wait(&receiver, GRACE));
            return Err(interrupt);
        }
    }
    Ok(())
}

/// Ends the work when dropped.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        Python::attach(|py| policies::stop(py, Some(&self.0)));
    }
}

struct Work {
    scenario: Scenario,
    runs: Vec<RunId>,
    next: AtomicUsize,
    cancel: Arc<AtomicBool>,
}

impl Work {
    /// Makes runs until none is left or the work is cancelled.
    fn run(&self, sender: &SyncSender<Outcome>) {
        while !self.cancel.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(id) = self.runs.get(index) else { return };
            let outcome = self.scenario.execute(*id, &self.cancel);
            if sender.send((index, outcome)).is_err() {
                return;
            }
        }
    }
}
