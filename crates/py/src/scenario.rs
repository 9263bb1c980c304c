//! Scenarios, and running them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_results::tables::SweepColumns;
use anabranch_results::{Provenance, RunId, Sweep, Unread, read_text};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{self, RunOptions, ScenarioError, ScenarioSource};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList};

use crate::errors::{self, RunError};
use crate::execute::interruptible;
use crate::policies::{self, Classes, bring};
use crate::report::Report;
use crate::run::{Labels, Reduced, Run, point};
use crate::settings::{assignments, kind};
use crate::sweep;

/// More seeds than this are surely a mistake.
const MOST_SEEDS: i64 = 1_000_000;

/// An experiment, read and found free of mistakes at every point of its sweep. It never changes.
///
/// A scenario is read from a file by `Scenario.load` or from text by `Scenario.parse`. It can be pickled with
/// everything that it was read from, so that other machines need none of its files.
#[pyclass(frozen, module = "anabranch")]
#[derive(Clone, Debug)]
pub(crate) struct Scenario(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sweep: Sweep,
    columns: Arc<SweepColumns>,
    labels: Vec<Labels>,
    policies: Classes,
}

impl Scenario {
    fn new(
        py: Python<'_>,
        read: Result<scenario::Scenario, Vec<ScenarioError>>,
        policies: Classes,
    ) -> PyResult<Self> {
        let scenario = read.map_err(|found| errors::mistakes(py, &found))?;
        let labels: Vec<Vec<(String, String)>> =
            scenario.points().iter().map(|point| point.labels.clone()).collect();
        let columns = Arc::new(SweepColumns::of(&labels));
        let labels = labels.into_iter().map(Arc::new).collect();
        let sweep = Sweep::new(scenario, None);
        Ok(Scenario(Arc::new(Inner { sweep, columns, labels, policies })))
    }

    pub(crate) fn scenario(&self) -> &scenario::Scenario {
        self.0.sweep.scenario()
    }

    pub(crate) fn provenance(&self) -> &Provenance {
        self.0.sweep.provenance()
    }

    /// The columns of the sweep's keys.
    pub(crate) fn columns(&self) -> Arc<SweepColumns> {
        Arc::clone(&self.0.columns)
    }

    /// A run of this scenario; none if it has no such point.
    pub(crate) fn run_at(&self, id: RunId) -> Option<Run> {
        let Inner { sweep, labels, .. } = self.0.as_ref();
        let labels = Arc::clone(labels.get(id.point)?);
        Some(Run { key: sweep.key(id)?, id, labels, cost: sweep.cost(id) })
    }

    /// The run that a report is of.
    pub(crate) fn run_of(&self, report: &RunReport) -> Option<Run> {
        let point = self.0.labels.iter().position(|labels| **labels == report.point)?;
        self.run_at(RunId { point, seed: report.seed })
    }

    /// Checks that `run` is one of this scenario's.
    pub(crate) fn check(&self, run: &Run) -> PyResult<()> {
        if self.0.sweep.key(run.id) == Some(run.key) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "run {} is none of scenario '{}' with these settings in this version of anabranch; \
             runs() gives those",
            run.key,
            self.scenario().name()
        )))
    }

    /// The scenario with other seeds.
    pub(crate) fn with_seeds(&self, seeds: Option<&Bound<'_, PyAny>>) -> PyResult<Sweep> {
        let seeds = seeds.map(read_seeds).transpose()?;
        Ok(Sweep::new(self.scenario().clone(), seeds))
    }

    /// Makes a run, unless `cancel` is set before it ends.
    ///
    /// # Errors
    /// What a policy of Python raised.
    pub(crate) fn execute(
        &self,
        id: RunId,
        cancel: &Arc<AtomicBool>,
    ) -> PyResult<Result<RunReport, scenario::RunError>> {
        let scenario = self.scenario();
        let Some(point) = scenario.points().get(id.point) else {
            return Ok(Err(scenario::RunError::Scenario(Vec::new())));
        };
        if self.0.policies.is_empty() {
            let mut options = RunOptions { cancel: Some(cancel), ..RunOptions::default() };
            return Ok(scenario.run_with(point, id.seed, &mut options));
        }
        policies::run(id.seed, cancel, |failed| {
            let mut relay = |_| {
                if cancel.load(Ordering::Relaxed) {
                    failed.store(true, Ordering::Relaxed);
                }
            };
            let progress: &mut dyn FnMut(f64) = &mut relay;
            let (progress, cancel) = (Some(progress), Some(failed));
            let mut options = RunOptions { progress, cancel, ..RunOptions::default() };
            scenario.run_with(point, id.seed, &mut options)
        })
    }

    /// A report with the run that it is of.
    pub(crate) fn reported(&self, run: Run, report: RunReport) -> Report {
        Report { run, report: Arc::new(report), columns: self.columns() }
    }
}

#[pymethods]
impl Scenario {
    /// Reads a scenario from a file; files that it names are looked for beside that file.
    ///
    /// `set` has settings on top of it, such as `{"duration": "5s", "flow.bulk.count": 3}`: text means what it
    /// means to the program's `--set`. `quick` shortens it as its `[quick]` says.
    ///
    /// `policies` are classes that the scenario may name beside the built-in policies: subclasses of `Scheduler`
    /// and `CongestionController`.
    ///
    /// Raises `ScenarioError` with every mistake, and `OSError` if the file cannot be read.
    #[staticmethod]
    #[pyo3(signature = (path, *, set=None, quick=false, policies=None))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        set: Option<&Bound<'_, PyDict>>,
        quick: bool,
        policies: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Scenario> {
        let assignments = assignments(set)?;
        let (own, classes) = bring(policies)?;
        let text = read_text(&path).map_err(|why| unread(&path, &why))?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let name = path.display().to_string();
        let loaded = py.detach(|| {
            let mut beside =
                |path: &str| read_text(&directory.join(path)).map_err(|why| why.to_string());
            let scenario =
                scenario::Scenario::load_with(&text, &name, &assignments, own, &mut beside)?;
            if quick { scenario.quick() } else { Ok(scenario) }
        });
        Scenario::new(py, loaded, classes)
    }

    /// Reads a scenario from text.
    ///
    /// `name` is what messages call it, `files` has the contents of the files that it names, by the paths it
    /// gives them; `set`, `quick` and `policies` are as in `load`.
    ///
    /// Raises `ScenarioError` with every mistake.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (text, *, name="scenario", files=None, set=None, quick=false, policies=None))]
    fn parse(
        py: Python<'_>,
        text: String,
        name: &str,
        files: Option<BTreeMap<String, String>>,
        set: Option<&Bound<'_, PyDict>>,
        quick: bool,
        policies: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Scenario> {
        let (own, classes) = bring(policies)?;
        let files = files.unwrap_or_default();
        let assignments = assignments(set)?;
        let source = ScenarioSource { file: name.to_owned(), text, assignments, quick, files };
        Scenario::new(py, py.detach(|| source.read_with(own)), classes)
    }

    /// This scenario with further settings on top, as `set` of `load`.
    ///
    /// Raises `ScenarioError` with every mistake; this scenario stays as it is in any case.
    fn with_settings(&self, py: Python<'_>, set: &Bound<'_, PyDict>) -> PyResult<Scenario> {
        let mut source = self.scenario().to_source();
        source.assignments.extend(assignments(Some(set))?);
        let own = self.scenario().policies().clone();
        Scenario::new(py, py.detach(|| source.read_with(own)), self.0.policies.share(py))
    }

    /// This scenario as its `[quick]` shortens it.
    ///
    /// Raises `ScenarioError` if that makes mistakes.
    fn quick(&self, py: Python<'_>) -> PyResult<Scenario> {
        let shorter = py.detach(|| self.scenario().quick());
        Scenario::new(py, shorter, self.0.policies.share(py))
    }

    /// The name of the scenario in results.
    #[getter]
    pub(crate) fn name(&self) -> &str {
        self.scenario().name()
    }

    /// A one-line description.
    #[getter]
    fn title(&self) -> &str {
        self.scenario().title()
    }

    /// Text on what the scenario shows and why; may be empty.
    #[getter]
    fn description(&self) -> &str {
        self.scenario().description()
    }

    /// 16 hexadecimal digits: scenarios of one hash have the same runs.
    #[getter]
    fn hash(&self) -> &str {
        &self.0.sweep.provenance().hash
    }

    /// The text that it was read from.
    #[getter]
    fn text(&self) -> &str {
        self.scenario().source()
    }

    /// The settings on top of the text, as `KEY=VALUE`; `--quick` is the first if it is shortened.
    #[getter]
    fn settings(&self) -> Vec<String> {
        self.scenario().settings()
    }

    /// The seeds it asks for.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.scenario().seeds().to_vec()
    }

    /// The classes of the policies that it was given.
    #[getter]
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.0.policies.list(py)
    }

    /// The points of its sweep: the keys with their values. Without a sweep there is one, without keys.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.0.labels.iter().map(|labels| point(py, labels)).collect()
    }

    /// Runs of the scenario: point by point, and seed by seed.
    ///
    /// `seeds` are those it asks for if none are given; a number `n` stands for the seeds 1 to n.
    #[pyo3(signature = (seeds=None))]
    pub(crate) fn runs(&self, seeds: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Run>> {
        let sweep = match seeds {
            None => None,
            Some(_) => Some(self.with_seeds(seeds)?),
        };
        let sweep = sweep.as_ref().unwrap_or(&self.0.sweep);
        Ok(sweep.runs().filter_map(|id| self.run_at(id)).collect())
    }

    /// Makes a run. Python's other threads go on meanwhile, and Ctrl-C ends it with `KeyboardInterrupt`.
    ///
    /// A run gives the same report on every machine. Raises `ValueError` if it is a run of another
    /// scenario or version, and `RunError` if it cannot be made. An exception of a policy is raised
    /// as well.
    fn run(&self, py: Python<'_>, run: &Bound<'_, Run>) -> PyResult<Report> {
        let run = run.get().clone();
        self.check(&run)?;
        let (scenario, id) = (self.clone(), run.id);
        let made = interruptible(py, move |cancel| scenario.execute(id, cancel))??;
        let report = made.map_err(|error| RunError::new_err(format!("{run}: {error}")))?;
        Ok(self.reported(run, report))
    }

    /// Makes every run on the threads of this machine, of which `jobs` work at once: as many as it has cores if
    /// not said otherwise. Ctrl-C ends it with `KeyboardInterrupt`.
    ///
    /// With a directory `out`, runs are kept there as they finish, so that the same call goes on where it was
    /// ended; tables and summary are written in the end, and the `Dataset` is returned. Otherwise everything is
    /// returned in memory, as `Results`. `progress` is called after every run with how many are finished, and
    /// how many there are. `seeds` is as in `runs`.
    #[pyo3(signature = (seeds=None, *, out=None, jobs=None, progress=None))]
    fn sweep<'py>(
        slf: &Bound<'py, Self>,
        seeds: Option<&Bound<'py, PyAny>>,
        out: Option<PathBuf>,
        jobs: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        sweep::sweep(slf.get(), seeds, out, jobs, (slf.py(), progress))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let same = |other: &Scenario| {
            Arc::ptr_eq(&self.0, &other.0)
                || self.hash() == other.hash()
                    && self.scenario().to_source() == other.scenario().to_source()
        };
        other.cast::<Scenario>().is_ok_and(|other| same(other.get()))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let points = count(self.0.labels.len(), "point");
        let seeds = count(self.scenario().seeds().len(), "seed");
        format!("<Scenario '{}' ({}): {points}, {seeds}>", self.name(), self.hash())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> Reduced<'py, (String, String, Bound<'py, PyList>)> {
        let restore = slf.get_type().getattr("_restore")?;
        let source = slf.get().scenario().to_source();
        let source = serde_json::to_string(&source).map_err(broken)?;
        let scenario = slf.get();
        Ok((restore, (source, scenario.hash().to_owned(), scenario.policies(slf.py())?)))
    }

    /// Called to restore a pickled scenario.
    #[staticmethod]
    fn _restore(
        py: Python<'_>,
        source: &str,
        hash: &str,
        policies: &Bound<'_, PyAny>,
    ) -> PyResult<Scenario> {
        let (own, classes) = bring(Some(policies))?;
        let source: ScenarioSource = serde_json::from_str(source).map_err(broken)?;
        let scenario = Scenario::new(py, py.detach(|| source.read_with(own)), classes)?;
        if !scenario.0.policies.is_empty() && scenario.hash() != hash {
            return Err(PyValueError::new_err(format!(
                "scenario '{}': its policies are not those that it was pickled with; their modules must be \
                 the same here, and Python's version, unless the classes set `version`",
                scenario.name()
            )));
        }
        Ok(scenario)
    }
}

fn broken(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("the pickled scenario is damaged: {error}"))
}

/// Reads seeds from Python: their number, or the seeds themselves.
fn read_seeds(seeds: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if seeds.is_instance_of::<PyInt>() {
        let count: i64 = seeds.extract().unwrap_or(0);
        if !(1..=MOST_SEEDS).contains(&count) {
            let text = format!("seeds: {seeds} is no number of seeds: 1 to {MOST_SEEDS}");
            return Err(PyValueError::new_err(text));
        }
        return Ok((1..=count.unsigned_abs()).collect());
    }
    let wrong = |value: &Bound<'_, PyAny>| {
        let text =
            format!("seeds: a number, or several numbers in a list or range, not {}", kind(value));
        PyTypeError::new_err(text)
    };
    let mut found = Vec::new();
    for seed in seeds.try_iter().map_err(|_| wrong(seeds))? {
        let seed = seed?;
        if !seed.hasattr("__index__")? {
            return Err(wrong(seeds));
        }
        found.push(seed.extract().map_err(|_| {
            PyValueError::new_err(format!("seeds: {seed} is no seed: 0 to 2**64 - 1"))
        })?);
    }
    if found.is_empty() {
        return Err(PyValueError::new_err("seeds: none given; None stands for the scenario's"));
    }
    Ok(found)
}

/// Why the file at `path` was not read.
fn unread(path: &Path, why: &Unread) -> PyErr {
    match why {
        Unread::System(error) => errors::of_file(path, error),
        _ => PyValueError::new_err(format!("{}: {why}", path.display())),
    }
}
