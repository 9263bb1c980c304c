//! Figures of results, for notebooks and papers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_plot::Figure as Drawn;
use anabranch_results::figures::{self, Data, Sweep};
use anabranch_results::tables::{Points, Row};
use anabranch_results::{Sweep as Runs, load};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::dataset::Dataset;
use crate::errors;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::settings::kind;
use crate::sweep::Results;
use crate::table::Rows;

/// A figure, as SVG. Notebooks show it.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Figure {
    /// The figure as SVG.
    #[pyo3(get)]
    svg: String,
    /// Title of the figure: what it shows.
    #[pyo3(get)]
    title: String,
}

#[pymethods]
impl Figure {
    fn _repr_svg_(&self) -> &str {
        &self.svg
    }

    /// Writes the figure into a file: whole, or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        if path.extension().is_none_or(|extension| extension != "svg") {
            let text =
                format!("{}: figures are SVG; give a name that ends in .svg", path.display());
            return Err(PyValueError::new_err(text));
        }
        let write = || anabranch_files::write(&path, self.svg.as_bytes(), 0o666);
        py.detach(write).map_err(|error| errors::of_file(&path, &error))
    }

    fn __repr__(&self) -> String {
        format!("<Figure '{}'>", self.title)
    }
}

/// The values of one metric by kind of table, and the points of the sweep.
#[derive(Default)]
struct Tables {
    points: Points,
    scalars: Data,
    series: Data,
    samples: Data,
}

impl Tables {
    /// Collects the values of the metric from `rows`; of one subject only, if `subject` is given.
    fn of(rows: &Rows, metric: &str, subject: Option<&str>) -> Self {
        let mut tables = Tables::default();
        tables.points.keys = rows.columns.iter().map(|column| column.key.clone()).collect();
        let wanted = |of: &str, what: &str| what == metric && subject.is_none_or(|s| s == of);
        for (id, report) in &rows.runs {
            let values = report.point.iter().map(|(_, value)| value.clone());
            tables.points.values.entry(id.point).or_insert_with(|| values.collect());
            let row = |subject, at, value| Row {
                point: id.point,
                seed: id.seed,
                subject,
                metric,
                at,
                value,
            };
            for s in report.scalars.iter().filter(|s| wanted(&s.subject, &s.metric)) {
                tables.scalars.add(&row(&s.subject, 0.0, s.value));
            }
            for s in report.series.iter().filter(|s| wanted(&s.subject, &s.metric)) {
                let values = s.times.iter().zip(&s.values);
                values.for_each(|(at, value)| tables.series.add(&row(&s.subject, *at, *value)));
            }
            for s in report.samples.iter().filter(|s| wanted(&s.subject, &s.metric)) {
                let values = s.values.iter().enumerate();
                values.for_each(|(at, v)| tables.samples.add(&row(&s.subject, at as f64, *v)));
            }
        }
        tables
    }

    /// All figures that the results call for, by their kind.
    fn drawn(&self, sweep: &Sweep) -> BTreeMap<&'static str, Vec<Drawn>> {
        let plain = |named: Vec<figures::Named>| named.into_iter().map(|(_, figure)| figure);
        let mut drawn = BTreeMap::new();
        drawn.insert("summary", plain(figures::scalars(&self.scalars, sweep, true)).collect());
        drawn.insert("time", plain(figures::series(&self.series, sweep)).collect());
        drawn.insert("shares", plain(figures::shares(&self.series, sweep)).collect());
        drawn.insert("distribution", plain(figures::distributions(&self.samples, sweep)).collect());
        drawn.retain(|_, figures: &mut Vec<Drawn>| !figures.is_empty());
        drawn
    }
}

/// The kinds of figures; if none is asked for, the first of these that was measured is drawn.
const KINDS: [&str; 4] = ["summary", "time", "distribution", "shares"];

/// Draws what runs measured of a metric.
///
/// `results` is a `Dataset`, `Results` or a `Report`. `kind` is "summary" for means over the seeds with their
/// intervals, "time" for what was recorded over virtual time, "shares" for the paths of a flow stacked over each
/// other, or "distribution"; if it is not given, the first of these that was measured is drawn. `x` is the key of
/// the sweep along the horizontal axis, `subject` the only one that is drawn, and `point` the index of the point
/// where each has a figure of its own.
///
/// Raises `ValueError` if there is nothing of that kind.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
#[pyo3(signature = (results, metric="goodput_mbps", *, kind=None, x=None, subject=None, point=None))]
pub(crate) fn plot(
    py: Python<'_>,
    results: &Bound<'_, PyAny>,
    metric: &str,
    kind: Option<&str>,
    x: Option<&str>,
    subject: Option<&str>,
    point: Option<usize>,
) -> PyResult<Figure> {
    if let Some(kind) = kind.filter(|kind| !KINDS.contains(kind)) {
        let known = KINDS.join(", ");
        return Err(PyValueError::new_err(format!("kind: '{kind}' is not one of {known}")));
    }
    let (mut rows, origin) = rows(py, results)?;
    let all = metrics(&rows);
    rows.runs.retain(|(id, _)| point.is_none_or(|point| id.point == point));
    let tables = Tables::of(&rows, metric, subject);
    let sweep = Sweep::new(&tables.points, x).map_err(PyValueError::new_err)?;
    let mut drawn = tables.drawn(&sweep);
    let nothing = || {
        let of = subject.map_or_else(String::new, |subject| format!(" of '{subject}'"));
        let kinds = kind.map_or_else(String::new, |kind| format!(" as \"{kind}\""));
        let text = format!("there is no '{metric}'{of} to draw{kinds}; measured: {all}");
        PyValueError::new_err(text)
    };
    let found = match kind {
        Some(kind) => drawn.remove(kind),
        None => KINDS.iter().find_map(|kind| drawn.remove(kind)),
    };
    let mut found = found.ok_or_else(nothing)?.into_iter();
    let mut figure = found.next().ok_or_else(nothing)?;
    if found.next().is_some() && point.is_none() && rows.runs.len() > 1 {
        let text = "each point has a figure of its own; say which by point=0 and so on";
        return Err(PyValueError::new_err(text));
    }
    figure.caption = format!("{} {origin}", figure.caption).trim().to_owned();
    Ok(Figure { svg: figure.to_svg(), title: figure.title })
}

/// The runs that `results` has, and where they come from.
fn rows(py: Python<'_>, results: &Bound<'_, PyAny>) -> PyResult<(Rows, String)> {
    let origin = |scenario: &Scenario| figures::origin(scenario.provenance());
    if let Ok(report) = results.cast::<Report>() {
        return Ok((report.get().rows(), String::new()));
    }
    if let Ok(results) = results.cast::<Results>() {
        return Ok((results.get().rows(), origin(results.get().of())));
    }
    if results.is_instance_of::<Dataset>() {
        let path: PathBuf = results.getattr("path")?.extract()?;
        let scenario = results.getattr("scenario")?;
        let scenario = scenario.cast::<Scenario>()?.get();
        let sweep = scenario.with_seeds(Some(&results.getattr("seeds")?))?;
        return Ok((kept(py, &path, &sweep, scenario)?, origin(scenario)));
    }
    let text = format!("a Dataset, Results or a Report, not {}", kind(results));
    Err(PyTypeError::new_err(text))
}

/// Every run that a directory keeps, read without its lock.
fn kept(py: Python<'_>, path: &Path, sweep: &Runs, scenario: &Scenario) -> PyResult<Rows> {
    let load = |id| load(path, sweep, id).map(|report| Some((id, Arc::new(report?))));
    let all = || sweep.runs().filter_map(|id| load(id).transpose()).collect();
    let runs: Result<Vec<_>, _> = py.detach(all);
    Ok(Rows { columns: scenario.columns(), runs: runs.map_err(errors::results)? })
}

/// The names of everything that was measured.
fn metrics(rows: &Rows) -> String {
    let mut names = std::collections::BTreeSet::new();
    for (_, report) in &rows.runs {
        names.extend(report.scalars.iter().map(|s| s.metric.as_str()));
        names.extend(report.series.iter().map(|s| s.metric.as_str()));
        names.extend(report.samples.iter().map(|s| s.metric.as_str()));
    }
    names.into_iter().collect::<Vec<_>>().join(", ")
}
