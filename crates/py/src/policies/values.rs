//! Converts times, rates and words between Rust and Python.

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use anabranch_types::{Bitrate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A duration in seconds. Nanoseconds survive the way to Python and back up to some weeks.
pub(super) fn seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}

/// The time this many seconds after the start, to the nearest nanosecond; [`Time::MAX`] if it is too large.
pub(super) fn time(seconds: f64) -> PyResult<Time> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!(
            "{seconds} is no time: seconds since the run began"
        )));
    }
    // The conversion saturates.
    Ok(Time::from_nanos((seconds * 1e9).round() as u64))
}

/// The rate of a path, or `None` where there is none.
pub(super) fn rate(rate: Bitrate) -> Option<u64> {
    (rate > Bitrate::ZERO).then(|| rate.as_bps())
}

/// Reads a number that is not negative and rounds it down. An error calls it `what` of the class of `object`.
pub(super) fn amount(
    object: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    what: &str,
) -> PyResult<u64> {
    if let Ok(whole) = value.extract::<u64>() {
        return Ok(whole);
    }
    match value.extract::<f64>() {
        Ok(number) if number >= 0.0 => Ok(number as u64),
        Ok(_) => Err(PyValueError::new_err(format!("{}.{what} is {}", kind(object), shown(value)))),
        Err(_) => Err(wrong(object, value, what)),
    }
}

/// The error for a `value` of the wrong type as `what` of the class of `object`.
pub(super) fn wrong(object: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, what: &str) -> PyErr {
    PyTypeError::new_err(format!("{}.{what} is {}", kind(object), shown(value)))
}

/// The name of an object's class.
pub(super) fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// A value's `repr`, shortened, and its type.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    let short: String = text.chars().take(60).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short}{more}, of type {}", kind(value))
}

/// Most different reasons and phases that policies can give; further ones become [`MANY`].
const MOST_WORDS: usize = 1000;
/// Stands for all further reasons and phases.
const MANY: &str = "another of many reasons";

/// Keeps `text` until the program ends: traces refer to reasons and phases without owning them.
pub(super) fn word(text: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(text) {
        return known;
    }
    if words.len() >= MOST_WORDS {
        return MANY;
    }
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    words.insert(text);
    text
}
