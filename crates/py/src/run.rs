//! One run of a scenario: a point of its sweep, and a seed.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use anabranch_results::{RunId, RunKey};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A sweep's keys with the values at a point.
pub(crate) type Labels = Arc<Vec<(String, String)>>;

/// Result of `__reduce__`: a function and its arguments.
pub(crate) type Reduced<'py, T> = PyResult<(Bound<'py, PyAny>, T)>;

/// The parts of a pickled run: key, point, labels, seed and cost.
type Fields = (String, usize, Vec<(String, String)>, u64, f64);

/// One run of a scenario: a point of its sweep, and a seed.
///
/// Runs are equal if their `id` is: if scenario, settings, point, seed and version are the same. They can be
/// sorted: point by point, and seed by seed.
#[pyclass(frozen, module = "anabranch")]
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) key: RunKey,
    pub(crate) id: RunId,
    pub(crate) labels: Labels,
    pub(crate) cost: f64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.labels.iter().try_for_each(|(key, value)| write!(f, "{key}={value}, "))?;
        write!(f, "seed={}", self.id.seed)
    }
}

#[pymethods]
impl Run {
    /// Identity of the run, 32 hexadecimal digits: no run of another scenario, point, seed or version has it.
    #[getter]
    fn id(&self) -> String {
        self.key.to_string()
    }

    /// The index of its point, as in the column `point` of tables.
    #[getter]
    fn index(&self) -> usize {
        self.id.point
    }

    /// The sweep's keys with their values here; empty without a sweep.
    #[getter]
    fn point<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        point(py, &self.labels)
    }

    /// The seed of every random draw.
    #[getter]
    fn seed(&self) -> u64 {
        self.id.seed
    }

    /// Estimated CPU time, in seconds, to distinguish long runs from short ones.
    #[getter]
    fn cost(&self) -> f64 {
        self.cost
    }

    fn __richcmp__(&self, other: &Run, how: CompareOp) -> bool {
        match how {
            CompareOp::Eq => self.key == other.key,
            CompareOp::Ne => self.key != other.key,
            _ => how.matches(self.id.cmp(&other.id)),
        }
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<Run {}: {self}>", self.key)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, Fields> {
        let run = slf.get();
        let restore = slf.get_type().getattr("_restore")?;
        let labels = run.labels.as_ref().clone();
        Ok((restore, (run.key.to_string(), run.id.point, labels, run.id.seed, run.cost)))
    }

    /// Called to restore a pickled run.
    #[staticmethod]
    fn _restore(
        key: &str,
        point: usize,
        labels: Vec<(String, String)>,
        seed: u64,
        cost: f64,
    ) -> PyResult<Run> {
        let key = key.parse().map_err(PyValueError::new_err)?;
        Ok(Run { key, id: RunId { point, seed }, labels: Arc::new(labels), cost })
    }
}

/// Labels as a dictionary.
pub(crate) fn point<'py>(
    py: Python<'py>,
    labels: &[(String, String)],
) -> PyResult<Bound<'py, PyDict>> {
    let point = PyDict::new(py);
    for (key, value) in labels {
        point.set_item(key, value)?;
    }
    Ok(point)
}
