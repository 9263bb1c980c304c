//! Settings on top of a scenario: converts Python values to the text of `--set KEY=VALUE`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// The assignments that a dictionary of settings stands for.
///
/// # Errors
/// When a key cannot be that of a setting, or a value cannot be written as TOML.
pub(crate) fn assignments(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<String>> {
    let Some(settings) = settings else { return Ok(Vec::new()) };
    let assignment = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = key.extract().map_err(|_| {
            PyTypeError::new_err(format!("a setting's key is text, not {}", kind(&key)))
        })?;
        if name.trim().is_empty() || name.contains('=') {
            let text = format!("'{name}' is no key of a scenario, such as 'flow.bulk.count'");
            return Err(PyValueError::new_err(text));
        }
        // Text is taken as on the command line: `5s`, but also `3` and `[1, 2]`.
        let text = match value.cast::<PyString>() {
            Ok(text) => text.to_string(),
            Err(_) => toml(&name, &value)?,
        };
        Ok(format!("{name}={text}"))
    };
    settings.iter().map(assignment).collect()
}

/// A value as TOML writes it.
fn toml(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if let Ok(text) = value.extract::<String>() {
        // A JSON string is also a TOML string.
        return Ok(serde_json::Value::from(text).to_string());
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.to_string());
    }
    if value.is_instance_of::<PyFloat>() {
        let number: f64 = value.extract()?;
        if !number.is_finite() {
            let text = format!("{key}: {number} is no setting: not finite");
            return Err(PyValueError::new_err(text));
        }
        return Ok(format!("{number:?}"));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| toml(key, &item?));
        return Ok(format!("[{}]", items.collect::<PyResult<Vec<_>>>()?.join(", ")));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let entries = table.iter().map(|(name, value)| {
            let name: String = name.extract()?;
            Ok(format!("{} = {}", serde_json::Value::from(name), toml(key, &value)?))
        });
        return Ok(format!("{{{}}}", entries.collect::<PyResult<Vec<_>>>()?.join(", ")));
    }
    // Numbers of NumPy and of other types that convert to Python's.
    for (convert, is_it) in [("__index__", "int"), ("__float__", "float")] {
        if value.hasattr(convert)? {
            let builtins = value.py().import("builtins")?;
            return toml(key, &builtins.getattr(is_it)?.call1((value,))?);
        }
    }
    Err(PyTypeError::new_err(format!(
        "{key}: {} is no setting: text, a number, a bool, a list or a dict is",
        kind(value)
    )))
}

/// The name of a value's type.
pub(crate) fn kind(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}
