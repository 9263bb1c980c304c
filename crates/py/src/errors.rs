//! Errors as Python exceptions.

use std::io;
use std::path::Path;

use anabranch_sim::scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::run::{Reduced, Run};

create_exception!(
    anabranch,
    ScenarioError,
    PyValueError,
    "A scenario has mistakes; its text names every one. `mistakes` has them as a list of `Mistake`."
);
create_exception!(
    anabranch,
    RunError,
    PyRuntimeError,
    "A run cannot be made: its network cannot be built, or what a receiver read was wrong."
);
create_exception!(
    anabranch,
    ResultsError,
    PyOSError,
    "A results directory is in use, damaged, of something else, or cannot be read or written."
);
create_exception!(
    anabranch,
    IncompleteError,
    ResultsError,
    "Runs are missing from a results directory. `missing` has them as a list of `Run`."
);

/// One mistake in a scenario.
#[pyclass(frozen, eq, hash, get_all, module = "anabranch")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mistake {
    /// The file it is in, or the file with the setting that is wrong.
    file: String,
    /// The line, from 1; 0 for one in a setting.
    line: u32,
    /// The column in characters, from 1; 0 for one in a setting.
    column: u32,
    /// The key concerned, such as `link.bottleneck.loss`; empty if none is.
    key: String,
    /// Text on what is wrong with what was given.
    given: String,
    /// The values that would have been accepted; empty if that goes without saying.
    allowed: String,
}

impl Mistake {
    fn as_error(&self) -> scenario::ScenarioError {
        scenario::ScenarioError {
            file: self.file.clone(),
            line: self.line,
            column: self.column,
            key: self.key.clone(),
            given: self.given.clone(),
            allowed: self.allowed.clone(),
        }
    }
}

impl From<&scenario::ScenarioError> for Mistake {
    fn from(error: &scenario::ScenarioError) -> Self {
        Mistake {
            file: error.file.clone(),
            line: error.line,
            column: error.column,
            key: error.key.clone(),
            given: error.given.clone(),
            allowed: error.allowed.clone(),
        }
    }
}

#[pymethods]
impl Mistake {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        file: String,
        line: u32,
        column: u32,
        key: String,
        given: String,
        allowed: String,
    ) -> Self {
        Mistake { file, line, column, key, given, allowed }
    }

    fn __str__(&self) -> String {
        self.as_error().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Mistake {}>", self.as_error())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py, Bound<'py, PyTuple>> {
        let Mistake { file, line, column, key, given, allowed } = slf.get().clone();
        let fields = (file, line, column, key, given, allowed);
        Ok((slf.get_type().into_any(), fields.into_pyobject(slf.py())?))
    }
}

/// A `ScenarioError` with these mistakes.
pub(crate) fn mistakes(py: Python<'_>, found: &[scenario::ScenarioError]) -> PyErr {
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    let error = ScenarioError::new_err(text.join("\n"));
    let found: Vec<Mistake> = found.iter().map(Mistake::from).collect();
    match error.value(py).setattr("mistakes", found) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// A `ResultsError` for an error of a results directory.
pub(crate) fn results(error: anabranch_results::ResultsError) -> PyErr {
    ResultsError::new_err(error.to_string())
}

/// An `IncompleteError` about these runs.
pub(crate) fn incomplete(py: Python<'_>, text: String, missing: Vec<Run>) -> PyErr {
    let error = IncompleteError::new_err(text);
    match error.value(py).setattr("missing", missing) {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// An I/O error on a file as Python's own exception: `FileNotFoundError` and the like.
pub(crate) fn of_file(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path.display().to_string()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}
