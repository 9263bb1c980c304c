//! Converts Arrow's values to Python's.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// Appends an array's values to a list. The columns of tables have no other types than these.
pub(super) fn append(list: &Bound<'_, PyList>, array: &ArrayRef) -> PyResult<()> {
    match array.data_type() {
        DataType::Float64 => {
            array.as_primitive::<Float64Type>().values().iter().try_for_each(|v| list.append(v))
        }
        DataType::Int64 => {
            array.as_primitive::<Int64Type>().values().iter().try_for_each(|v| list.append(v))
        }
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().values().iter().try_for_each(|v| list.append(v))
        }
        _ => words(list, array),
    }
}

/// Appends texts, of which each different one is converted once.
fn words(list: &Bound<'_, PyList>, array: &ArrayRef) -> PyResult<()> {
    let Some(array) = array.as_dictionary_opt::<Int32Type>() else { return Ok(()) };
    let words = array.values().as_string::<i32>();
    let words: Vec<_> =
        words.iter().map(|word| PyString::new(list.py(), word.unwrap_or_default())).collect();
    array.keys().values().iter().try_for_each(|key| {
        usize::try_from(*key).ok().and_then(|key| words.get(key)).map_or(Ok(()), |w| list.append(w))
    })
}
