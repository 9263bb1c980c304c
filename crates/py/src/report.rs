//! The report of a run.

use std::sync::Arc;

use anabranch_results::tables::SweepColumns;
use anabranch_results::{decode_any, encode};
use anabranch_sim::report::RunReport;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::run::{Reduced, Run};
use crate::scenario::Scenario;
use crate::table::{self, Rows, Table};

/// Everything that one run measured.
#[pyclass(frozen, module = "anabranch")]
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) run: Run,
    pub(crate) report: Arc<RunReport>,
    pub(crate) columns: Arc<SweepColumns>,
}

impl Report {
    pub(crate) fn rows(&self) -> Rows {
        let runs = vec![(self.run.id, Arc::clone(&self.report))];
        Rows { columns: Arc::clone(&self.columns), runs }
    }

    fn encoded(&self) -> PyResult<Vec<u8>> {
        encode(self.run.key, &self.report).map_err(PyValueError::new_err)
    }

    /// The error that `metric` of `subject` was not measured; it names what was.
    fn unknown(&self, subject: &str, metric: &str) -> PyErr {
        let scalars = &self.report.scalars;
        let of_subject = scalars.iter().filter(|scalar| scalar.subject == subject);
        let mut known: Vec<&str> = of_subject.map(|scalar| scalar.metric.as_str()).collect();
        if !known.is_empty() {
            let known = known.join(", ");
            let text = format!("'{subject}' has no figure '{metric}'; it has: {known}");
            return PyKeyError::new_err(text);
        }
        known = scalars.iter().map(|scalar| scalar.subject.as_str()).collect();
        known.dedup();
        let text = format!("there is nothing called '{subject}'; there are: {}", known.join(", "));
        PyKeyError::new_err(text)
    }
}

#[pymethods]
impl Report {
    /// The run that the report is of.
    #[getter]
    fn run(&self) -> Run {
        self.run.clone()
    }

    /// Digest of every packet's fate, 16 hexadecimal digits: equal runs have equal digests.
    #[getter]
    fn digest(&self) -> String {
        format!("{:016x}", self.report.digest)
    }

    /// Packets put onto links, counted once per link.
    #[getter]
    fn packet_hops(&self) -> u64 {
        self.report.packet_hops
    }

    /// Events that the simulator handled.
    #[getter]
    fn events(&self) -> u64 {
        self.report.events
    }

    /// Virtual time that passed, in seconds.
    #[getter]
    fn virtual_seconds(&self) -> f64 {
        self.report.virtual_seconds
    }

    /// Single figures: a row for each subject and metric.
    #[getter]
    fn scalars(&self) -> PyResult<Table> {
        table::scalars(&self.rows()).map_err(table::failed)
    }

    /// Figures over virtual time. The columns `time_s` and `value` are the report's own memory.
    #[getter]
    fn series(&self) -> PyResult<Table> {
        table::series(&self.rows()).map_err(table::failed)
    }

    /// Figures with many values, such as the delays of packets. The column `value` is the report's own memory.
    #[getter]
    fn samples(&self) -> PyResult<Table> {
        table::samples(&self.rows()).map_err(table::failed)
    }

    /// One single figure, such as `report.value("bulk", "goodput_mbps")`.
    ///
    /// Raises `KeyError` if it was not measured.
    fn value(&self, subject: &str, metric: &str) -> PyResult<f64> {
        let value = self.report.scalar(subject, metric);
        value.ok_or_else(|| self.unknown(subject, metric))
    }

    /// The bytes by which results directories keep the run.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.encoded()?))
    }

    /// The report from the bytes of `to_bytes`, which may have been called on another machine.
    ///
    /// Raises `ValueError` if they are damaged, or of a run of another scenario or version.
    #[staticmethod]
    fn from_bytes(data: &[u8], scenario: &Bound<'_, Scenario>) -> PyResult<Report> {
        let Some((key, report)) = decode_any(data) else {
            return Err(PyValueError::new_err("these bytes are not a report, or are damaged"));
        };
        let scenario = scenario.get();
        let run = scenario.run_of(&report).filter(|run| run.key == key).ok_or_else(|| {
            let name = scenario.name();
            let text = format!(
                "the report is of another scenario than '{name}', of other settings or of another \
                 version of anabranch"
            );
            PyValueError::new_err(text)
        })?;
        Ok(Report { run, report: Arc::new(report), columns: scenario.columns() })
    }

    fn __repr__(&self) -> String {
        let RunReport { scalars, series, samples, .. } = self.report.as_ref();
        format!(
            "<Report of {}: {} scalars, {} series, {} samples>",
            self.run,
            scalars.len(),
            series.len(),
            samples.len()
        )
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> Reduced<'py, (Bound<'py, PyBytes>, Run, Vec<bool>)> {
        let report = slf.get();
        let restore = slf.get_type().getattr("_restore")?;
        let numeric = report.columns.iter().map(|column| column.is_number).collect();
        Ok((restore, (report.to_bytes(slf.py())?, report.run.clone(), numeric)))
    }

    /// Called to restore a pickled report.
    #[staticmethod]
    fn _restore(data: &[u8], run: &Bound<'_, Run>, numeric: Vec<bool>) -> PyResult<Report> {
        let run = run.get().clone();
        let (_, report) = decode_any(data)
            .filter(|(key, _)| *key == run.key)
            .ok_or_else(|| PyValueError::new_err("the pickled report is damaged"))?;
        let keys = report.point.iter().map(|(key, _)| key.as_str()).zip(numeric);
        let columns = Arc::new(SweepColumns::new(keys));
        Ok(Report { run, report: Arc::new(report), columns })
    }
}
