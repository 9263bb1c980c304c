//! Reads and draws `[[figure]]`: curves of the results beside those of a paper.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::claims::{Average, Grid, Known, Pins, Quantity, Runs, Sample, check_pins, fill, number};
use super::error::Flaw;
use super::reader::Section;
use super::tree::{Node, Value};
use super::variant;
use crate::stats::Estimate;

/// One `[[figure]]`.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    item: Option<String>,
    title: String,
    x: String,
    x_label: String,
    y_label: String,
    until: Duration,
    curves: Vec<Curve>,
}

/// One `[[figure.curve]]`.
#[derive(Clone, Debug)]
struct Curve {
    name: String,
    of: String,
    at: Pins,
    average: Average,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// A quantity that is computed from the runs.
    Measured(Quantity),
    /// The series of this metric in the run with the first seed.
    OverTime(String),
    /// Values printed in the paper, with their labels on the x axis.
    Paper(Vec<(String, f64)>),
}

/// A figure with its data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// The published result that the figure is about.
    pub item: Option<String>,
    /// Title of the figure.
    pub title: String,
    /// Label of the x axis, with its unit.
    pub x_label: String,
    /// Label of the y axis, with its unit.
    pub y_label: String,
    /// Labels on the x axis if its values are not numbers. The points are then at 0, 1, ….
    pub categories: Vec<String>,
    /// The curves.
    pub curves: Vec<DrawnCurve>,
}

/// One curve of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrawnCurve {
    /// Name of the curve in the legend.
    pub name: String,
    /// The x values, and the y values with their confidence intervals.
    pub points: Vec<(f64, Estimate)>,
    /// Whether the curve is taken from the paper rather than measured.
    pub is_published: bool,
}

/// Reads every figure of a file. `whole` is true unless the sweep was changed.
pub(super) fn read(
    file: &Section<'_>,
    known: &Known,
    grid: &Grid,
    whole: bool,
    item: Option<&str>,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for section in file.tables("figure") {
        let Some(x) = section.text("x") else { continue };
        if x != TIME && grid.axis(&x).is_none() {
            let mut keys: Vec<&str> = grid.axes.iter().map(|axis| axis.name.as_str()).collect();
            keys.push(TIME);
            let (place, path) = (section.place_of("x"), section.path_of("x"));
            section.report(Flaw::unknown(place, path, "sweep key", &x, &keys));
            continue;
        }
        let curve = |section: Section<'_>| curve(&section, &x, known, grid, whole);
        figures.push(Figure {
            item: section.text("item").or_else(|| item.map(str::to_owned)),
            title: section.text("title").unwrap_or_default(),
            x_label: section.text("x-label").unwrap_or_else(|| x.clone()),
            y_label: section.text("y").unwrap_or_default(),
            until: section.time("until").unwrap_or(Duration::MAX),
            curves: section.tables("curve").into_iter().filter_map(curve).collect(),
            x,
        });
    }
    figures
}

/// The value of the key `x` for figures over time.
const TIME: &str = "time";

fn curve(section: &Section<'_>, x: &str, known: &Known, grid: &Grid, whole: bool) -> Option<Curve> {
    let of = section.text("of").unwrap_or_else(|| "all".to_owned());
    let at: Pins = section.free("at").into_iter().map(|(key, value, _)| (key, value)).collect();
    if let Err(flaw) = check_pins(section, "at", &at, grid, whole) {
        section.report(flaw);
    }
    let source = match (section.has("metric"), section.has("paper")) {
        (true, false) if x == TIME => {
            let metric = section.raw("metric")?.to_owned();
            if !known.series.iter().any(|(who, what)| *who == of && *what == metric) {
                let allowed: Vec<String> =
                    known.series.iter().map(|(who, what)| format!("{what} of {who}")).collect();
                let given = format!("no probe records {metric} of {of} over time");
                section.complain("metric", given, allowed.join(", "));
            }
            Source::OverTime(metric)
        }
        (true, false) => Source::Measured(Quantity::read(section, &of, known, grid, whole)?),
        (false, true) => Source::Paper(published(section)?),
        _ => {
            section.complain("metric", "not one of metric and paper", "one of them");
            return None;
        }
    };
    let name = section.raw("name").map(str::to_owned);
    let name = name.unwrap_or_else(|| match &source {
        Source::Measured(quantity) => quantity.text.clone(),
        Source::OverTime(metric) => metric.clone(),
        Source::Paper(_) => "paper".to_owned(),
    });
    let average = Average::read(section, grid, whole);
    Some(Curve { name, of, at, average, source })
}

/// Reads the points printed in the paper, each a pair of an x value and a number.
fn published(section: &Section<'_>) -> Option<Vec<(String, f64)>> {
    let node = section.node("paper")?;
    let point = |node: &Node| match &node.value {
        Value::List(pair) => match pair.as_slice() {
            [x, y] => Some((x.show(), number(&y.show())?)),
            _ => None,
        },
        _ => None,
    };
    let points: Option<Vec<_>> = match &node.value {
        Value::List(points) => points.iter().map(point).collect(),
        _ => None,
    };
    if points.is_none() {
        section.refuse("paper", node.place, "not a list of pairs");
    }
    points
}

impl Figure {
    /// The single figures that the curves need, by subject.
    pub(super) fn figures(&self, grid: &Grid) -> Vec<(String, &'static str)> {
        let of = |curve: &Curve| match &curve.source {
            Source::Measured(quantity) => quantity.figures(&curve.of, grid),
            _ => Vec::new(),
        };
        self.curves.iter().flat_map(of).collect()
    }

    /// The series that the curves need, by subject.
    pub(super) fn series(&self, grid: &Grid) -> Vec<(String, String)> {
        let of = |curve: &Curve| match &curve.source {
            Source::Measured(quantity) => quantity.series(&curve.of, grid),
            Source::OverTime(metric) => vec![(curve.of.clone(), metric.clone())],
            Source::Paper(_) => Vec::new(),
        };
        self.curves.iter().flat_map(of).collect()
    }

    /// The figure with its data.
    pub(super) fn draw(&self, runs: &Runs<'_>, titles: &BTreeMap<String, String>) -> Drawing {
        let labels = match runs.grid.axis(&self.x) {
            Some(axis) => axis.labels.clone(),
            None => Vec::new(),
        };
        let are_numbers = self.x == TIME || labels.iter().all(|label| number(label).is_some());
        let place = |label: &str| match are_numbers {
            true => number(label),
            false => labels.iter().position(|known| known == label).map(|at| at as f64),
        };
        let title = |label: &String| match self.x == variant::AXIS {
            true => titles.get(label).unwrap_or(label).clone(),
            false => label.clone(),
        };
        let curves = self.curves.iter().flat_map(|curve| self.drawn(curve, runs, titles, &place));
        Drawing {
            item: self.item.clone(),
            title: self.title.clone(),
            x_label: self.x_label.clone(),
            y_label: self.y_label.clone(),
            curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
            categories: if are_numbers { Vec::new() } else { labels.iter().map(title).collect() },
        }
    }

    /// Draws a curve, once for each combination of values of the keys that it leaves open.
    fn drawn(
        &self,
        curve: &Curve,
        runs: &Runs<'_>,
        titles: &BTreeMap<String, String>,
        place: &dyn Fn(&str) -> Option<f64>,
    ) -> Vec<DrawnCurve> {
        if let Source::Paper(points) = &curve.source {
            let point = |(x, y): &(String, f64)| Some((place(x)?, Estimate::exact(*y)));
            let points = points.iter().filter_map(point).collect();
            return vec![DrawnCurve { name: curve.name.clone(), points, is_published: true }];
        }
        let mut seen = BTreeSet::new();
        let mut drawn = Vec::new();
        for point in runs.grid.matching(&curve.at) {
            let mut apart: Vec<&str> = curve.average.keys.iter().map(String::as_str).collect();
            apart.push(&self.x);
            let labels = runs.grid.apart(point, &apart);
            if !seen.insert(labels) {
                continue;
            }
            drawn.push(DrawnCurve {
                name: fill(&curve.name, point, runs.grid, titles),
                points: self.points(curve, runs, point, place),
                is_published: false,
            });
        }
        drawn
    }

    fn points(
        &self,
        curve: &Curve,
        runs: &Runs<'_>,
        point: usize,
        place: &dyn Fn(&str) -> Option<f64>,
    ) -> Vec<(f64, Estimate)> {
        let seeds = |point: usize| runs.runs.get(point).map_or(&[][..], Vec::as_slice);
        match &curve.source {
            Source::Measured(quantity) => {
                let labels = runs.grid.axis(&self.x).map_or(&[][..], |axis| &axis.labels);
                let at = |label: &String| {
                    let there = runs.grid.moved(point, &[(self.x.clone(), label.clone())])?;
                    let value = |sample: Sample<'_>| quantity.value(runs, &curve.of, there, sample);
                    Some((place(label)?, curve.average.estimate(seeds(there).len(), value)?))
                };
                labels.iter().filter_map(at).collect()
            }
            Source::OverTime(metric) => {
                let series = seeds(point).first().and_then(|run| run.series(&curve.of, metric));
                let until = self.until.as_secs_f64();
                let points = series.into_iter().flat_map(|s| s.times.iter().zip(&s.values));
                let points = points.filter(|(time, _)| **time <= until);
                points.map(|(time, value)| (*time, Estimate::exact(*value))).collect()
            }
            Source::Paper(_) => Vec::new(),
        }
    }
}
