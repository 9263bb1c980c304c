//! Tables as Arrow streams, for every library that reads them.

mod build;
mod values;

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

pub(crate) use build::{Rows, samples, scalars, series};

/// Rows that a notebook shows.
const SHOWN: usize = 10;

/// A table in Arrow's memory layout. Polars, PyArrow, pandas and DuckDB read it where it is:
/// `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)`, and DuckDB by the
/// name of the variable.
///
/// `len()` is the number of rows, and `table["value"]` a column as a list.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Table { schema, batches }
    }

    fn rows_in_all(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// A column as a list, of this many rows at most.
    fn list<'py>(
        &self,
        py: Python<'py>,
        column: usize,
        most: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for batch in &self.batches {
            let array = batch.column(column);
            let rows = array.len().min(most.saturating_sub(list.len()));
            values::append(&list, &array.slice(0, rows))?;
        }
        Ok(list)
    }

    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let rows = self.rows_in_all();
        let mut html = String::from("<table><thead><tr>");
        for name in self.columns() {
            let _ = write!(html, "<th>{}</th>", escaped(&name));
        }
        html.push_str("</tr></thead><tbody>");
        let columns = (0..self.schema.fields().len()).map(|column| self.list(py, column, SHOWN));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        for row in 0..rows.min(SHOWN) {
            html.push_str("<tr>");
            for column in &columns {
                let text = column.get_item(row)?.str()?.to_string();
                let _ = write!(html, "<td>{}</td>", escaped(&text));
            }
            html.push_str("</tr>");
        }
        let _ = write!(html, "</tbody></table><p>{}</p>", counted(rows));
        Ok(html)
    }
}

#[pymethods]
impl Table {
    /// The table as an Arrow stream, by the Arrow PyCapsule interface.
    ///
    /// Nothing is copied: the stream shares the table's memory. `requested_schema` is ignored; consumers that want
    /// other types convert.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The table's schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows_in_all()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let index = self.schema.index_of(column).map_err(|_| {
            let known = self.columns().join(", ");
            PyKeyError::new_err(format!("there is no column '{column}'; there are: {known}"))
        })?;
        self.list(py, index, usize::MAX)
    }

    /// The columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (index, field) in self.schema.fields().iter().enumerate() {
            columns.set_item(field.name(), self.list(py, index, usize::MAX)?)?;
        }
        Ok(columns)
    }

    /// The rows as dictionaries.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows: Vec<_> = (0..self.rows_in_all()).map(|_| PyDict::new(py)).collect();
        for (index, field) in self.schema.fields().iter().enumerate() {
            let values = self.list(py, index, usize::MAX)?;
            for (row, value) in rows.iter().zip(values.iter()) {
                row.set_item(field.name(), value)?;
            }
        }
        Ok(rows)
    }

    fn __repr__(&self) -> String {
        format!("<Table of {}: {}>", counted(self.rows_in_all()), self.columns().join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.to_html(py)
    }
}

fn counted(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The error of a table that cannot be built; not expected, since the columns of tables fit each other.
pub(crate) fn failed(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("no table: {error}"))
}
