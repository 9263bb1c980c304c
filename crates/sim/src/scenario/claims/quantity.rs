//! The quantity of a claim or a curve: a formula over figures of runs.

use std::collections::BTreeSet;

use super::average::Sample;
use super::grid::{Grid, Pins};
use crate::probe::{METRICS, Metric, mean, standard_deviation};
use crate::report::{RunReport, Series};
use crate::scenario::Plan;
use crate::scenario::error::Flaw;
use crate::scenario::formula::{Formula, Grammar, Name};
use crate::scenario::reader::Section;

const GRAMMAR: Grammar = Grammar {
    functions: &[
        ("mean", 2, 3),
        ("reaches", 2, 2),
        ("still", 3, 3),
        ("pauses", 4, 4),
        ("variation", 3, 3),
    ],
    pins: true,
    example: "metrics such as goodput_mbps, link.a.marks and goodput_mbps[M=1], sweep keys, numbers, \
              + - * / ( ), min, max, mean(SERIES, FROM), mean(SERIES, FROM, TO), reaches(SERIES, LEVEL), \
              still(SERIES, FROM, TO), pauses(SERIES, LEAST, FROM, TO), variation(SERIES, FROM, TO)",
};

/// A formula over the figures of runs.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct Quantity {
    /// The formula as it was written.
    pub text: String,
    formula: Formula,
}

/// Subjects and series in a scenario's results.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Known {
    /// Subjects at any point.
    pub subjects: BTreeSet<String>,
    /// Subjects and metrics that are recorded over time at any point.
    pub series: BTreeSet<(String, &'static str)>,
}

impl Known {
    /// Adds the subjects and series of one point.
    pub(in crate::scenario) fn add(&mut self, plan: &Plan, subjects: Vec<String>) {
        self.subjects.extend(subjects);
        for probe in &plan.probes {
            for subject in &probe.of {
                self.series.extend(probe.series.iter().map(|metric| (subject.clone(), *metric)));
            }
        }
    }
}

/// The grid of all points, and for each point its runs in the order of the seeds.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct Runs<'a> {
    pub grid: &'a Grid,
    pub runs: &'a [Vec<RunReport>],
}

/// The key that holds the formula.
const KEY: &str = "metric";

impl Quantity {
    /// Reads the formula of `metric` for `subject`. Mistakes in it are reported to `section`.
    pub(in crate::scenario) fn read(
        section: &Section<'_>,
        subject: &str,
        known: &Known,
        grid: &Grid,
        whole: bool,
    ) -> Option<Quantity> {
        let text = section.raw(KEY)?.to_owned();
        let formula = match Formula::parse(&text, &GRAMMAR) {
            Ok(formula) => formula,
            Err((given, allowed)) => {
                section.complain(KEY, given, allowed);
                return None;
            }
        };
        formula.names(&mut |name, function| {
            if let Err(flaw) = Reference::of(name, function, subject, grid)
                .check(section, KEY, known)
                .and_then(|()| check_pins(section, KEY, &name.pins, grid, whole))
            {
                section.report(flaw);
            }
        });
        Some(Quantity { text, formula })
    }

    /// The single figures that the quantity needs for `subject`.
    pub(in crate::scenario) fn figures(
        &self,
        subject: &str,
        grid: &Grid,
    ) -> Vec<(String, &'static str)> {
        let mut figures = Vec::new();
        self.formula.names(&mut |name, function| {
            if let Reference::Figure(of, metric) = Reference::of(name, function, subject, grid)
                && let Some(metric) = Metric::named(metric)
            {
                figures.push((of.to_owned(), metric.name));
            }
        });
        figures
    }

    /// The series that the quantity needs for `subject`.
    pub(in crate::scenario) fn series(&self, subject: &str, grid: &Grid) -> Vec<(String, String)> {
        let mut series = Vec::new();
        self.formula.names(&mut |name, function| {
            if let Reference::Series(of, metric) = Reference::of(name, function, subject, grid) {
                series.push((of.to_owned(), metric.to_owned()));
            }
        });
        series
    }

    /// The keys that every name in the formula sets to a fixed value, so that the point's own value
    /// does not matter.
    pub(in crate::scenario) fn fixed(&self) -> Vec<&str> {
        let mut common: Option<Vec<&str>> = None;
        self.formula.names(&mut |name, _| {
            let own: Vec<&str> = name.pins.iter().map(|(key, _)| key.as_str()).collect();
            common = Some(match common.take() {
                None => own,
                Some(before) => before.into_iter().filter(|key| own.contains(key)).collect(),
            });
        });
        common.unwrap_or_default()
    }

    /// Whether all points exist that the quantity refers to when it is evaluated at `point`.
    pub(in crate::scenario) fn is_defined(&self, point: usize, grid: &Grid) -> bool {
        let mut defined = true;
        self.formula.names(&mut |name, _| defined &= grid.moved(point, &name.pins).is_some());
        defined
    }

    /// The value at `point` in the runs of `sample`; `None` if a figure was not measured, or the
    /// value is not finite.
    pub(in crate::scenario) fn value(
        &self,
        runs: &Runs<'_>,
        subject: &str,
        point: usize,
        sample: Sample<'_>,
    ) -> Option<f64> {
        let place = Place { runs, subject, point, sample };
        place.value(&self.formula).filter(|value| value.is_finite())
    }
}

/// The runs, subject, point and sample for which a formula is evaluated.
struct Place<'a> {
    runs: &'a Runs<'a>,
    subject: &'a str,
    point: usize,
    sample: Sample<'a>,
}

impl Place<'_> {
    fn value(&self, formula: &Formula) -> Option<f64> {
        let figure = |name: &Name| self.figure(name).ok_or(());
        let call = |function: &str, arguments: &[Formula]| self.call(function, arguments).ok_or(());
        formula.value(&figure, &call).ok()
    }

    fn figure(&self, name: &Name) -> Option<f64> {
        let reference = Reference::of(name, None, self.subject, self.runs.grid);
        self.mean(name, |point, run| match reference {
            Reference::Key(key) => number(self.runs.grid.label(point, key)?),
            Reference::Figure(of, metric) => run.scalar(of, metric),
            Reference::Series(..) => None,
        })
    }

    fn call(&self, function: &str, arguments: &[Formula]) -> Option<f64> {
        let (Formula::Name(name), numbers) = arguments.split_first()? else { return None };
        let Reference::Series(of, metric) =
            Reference::of(name, Some(function), self.subject, self.runs.grid)
        else {
            return None;
        };
        let numbers: Option<Vec<f64>> = numbers.iter().map(|n| self.value(n)).collect();
        let numbers = numbers?;
        self.mean(name, |_, run| over_time(function, run.series(of, metric)?, &numbers))
    }

    /// The mean of `value` over the runs of the sample, at the point that `name` refers to.
    fn mean(&self, name: &Name, value: impl Fn(usize, &RunReport) -> Option<f64>) -> Option<f64> {
        let Runs { grid, runs } = *self.runs;
        let mut values = Vec::new();
        for point in grid.alike(grid.moved(self.point, &name.pins)?, self.sample.keys) {
            let runs = runs.get(point)?;
            for seed in self.sample.seeds(runs.len()) {
                values.push(value(point, runs.get(seed)?)?);
            }
        }
        (!values.is_empty()).then(|| mean(&values))
    }
}

/// The value of a sweep's key as a number, such as `5` or `0.5`. A percent sign is ignored: `5%` is
/// 5.
pub(in crate::scenario) fn number(label: &str) -> Option<f64> {
    label.trim_end_matches('%').parse().ok().filter(|number: &f64| number.is_finite())
}

/// A statistic of a series. `mean` is the mean of its points in a span of time. `reaches` is the
/// time at which it first reaches a level, s. `still` is the longest time in a span for which its
/// value does not change, s. `pauses` is how often in a span the value does not change for at least
/// a given time. `variation` is the standard deviation of the points in a span divided by their
/// mean.
fn over_time(function: &str, series: &Series, numbers: &[f64]) -> Option<f64> {
    let mut points = series.times.iter().copied().zip(series.values.iter().copied());
    match (function, numbers) {
        ("mean", [from, rest @ ..]) => {
            let to = rest.first().copied().unwrap_or(f64::INFINITY);
            let chosen: Vec<f64> =
                points.filter(|(time, _)| *time >= *from && *time <= to).map(|(_, y)| y).collect();
            (!chosen.is_empty()).then(|| chosen.iter().sum::<f64>() / chosen.len() as f64)
        }
        ("still", [from, to]) => stretches(points, *from, *to).into_iter().reduce(f64::max),
        ("pauses", [least, from, to]) => {
            let long = stretches(points, *from, *to).into_iter().filter(|time| time >= least);
            Some(long.count() as f64)
        }
        ("variation", [from, to]) => {
            let chosen = points.filter(|(time, _)| *time >= *from && *time <= *to);
            let chosen: Vec<f64> = chosen.map(|(_, value)| value).collect();
            let mean = mean(&chosen);
            (chosen.len() > 1 && mean != 0.0).then(|| standard_deviation(&chosen) / mean)
        }
        ("reaches", [level]) => points.find(|(_, value)| value >= level).map(|(time, _)| time),
        _ => None,
    }
}

/// The lengths of the successive periods between `from` and `to` in which the value of a series
/// does not change. A period lasts from its first point to its last.
fn stretches(points: impl Iterator<Item = (f64, f64)>, from: f64, to: f64) -> Vec<f64> {
    let mut stretches: Vec<(f64, f64, f64)> = Vec::new();
    for (time, value) in points.filter(|(time, _)| *time >= from && *time <= to) {
        match stretches.last_mut() {
            Some((same, _, end)) if *same == value => *end = time,
            _ => stretches.push((value, time, time)),
        }
    }
    stretches.into_iter().map(|(_, start, end)| end - start).collect()
}

/// Meaning of a name in a formula.
enum Reference<'a> {
    /// The value of a key of the sweep.
    Key(&'a str),
    /// A single figure of a subject.
    Figure(&'a str, &'a str),
    /// A figure of a subject over time.
    Series(&'a str, &'a str),
}

impl<'a> Reference<'a> {
    fn of(name: &'a Name, function: Option<&str>, subject: &'a str, grid: &Grid) -> Self {
        let name = name.name.as_str();
        let (of, metric) = name.rsplit_once('.').unwrap_or((subject, name));
        match function {
            Some(_) => Reference::Series(of, metric),
            None if grid.axis(name).is_some() => Reference::Key(name),
            None => Reference::Figure(of, metric),
        }
    }

    fn check(&self, section: &Section<'_>, key: &str, known: &Known) -> Result<(), Flaw> {
        let (of, metric, over_time) = match self {
            Reference::Key(_) => return Ok(()),
            Reference::Figure(of, metric) => (of, metric, false),
            Reference::Series(of, metric) => (of, metric, true),
        };
        let (place, path) = (section.place_of(key), section.path_of(key));
        let has = |m: &&Metric| if over_time { m.series } else { m.scalar };
        let names: Vec<&str> = METRICS.iter().filter(has).map(|metric| metric.name).collect();
        if !names.contains(metric) {
            let what = if over_time { "metric for series" } else { "metric" };
            return Err(Flaw::unknown(place, path, what, metric, &names));
        }
        if !known.subjects.contains(*of) {
            let subjects: Vec<&str> = known.subjects.iter().map(String::as_str).collect();
            let place = section.place_of(if section.has("of") { "of" } else { key });
            return Err(Flaw::unknown(place, path, "subject", of, &subjects));
        }
        if over_time && !known.series.iter().any(|(who, what)| who == of && what == metric) {
            let given = format!("no probe records {metric} of {of} over time");
            let allowed = format!("a [[probe]] with of = \"{of}\" and series = \"{metric}\"");
            return Err(Flaw::other(place, path, given, allowed));
        }
        Ok(())
    }
}

/// Refuses keys and values in `pins` that the sweep does not have, if the sweep is `whole`. A sweep
/// that was changed by an assignment or by `[quick]` may lack keys and values of the file, so
/// nothing is refused then.
pub(in crate::scenario) fn check_pins(
    section: &Section<'_>,
    key: &str,
    pins: &Pins,
    grid: &Grid,
    whole: bool,
) -> Result<(), Flaw> {
    let (place, path) = (section.place_of(key), section.path_of(key));
    for (name, value) in pins {
        let Some(axis) = grid.axis(name) else {
            if !whole {
                continue;
            }
            let known: Vec<&str> = grid.axes.iter().map(|axis| axis.name.as_str()).collect();
            return Err(Flaw::unknown(place, path, "sweep key", name, &known));
        };
        if whole && !axis.labels.contains(value) {
            let known: Vec<&str> = axis.labels.iter().map(String::as_str).collect();
            let what = if name == "variant" { "variant" } else { "point of the sweep at" };
            let value = if name == "variant" { value.clone() } else { format!("{name} = {value}") };
            return Err(Flaw::unknown(place, path, what, &value, &known));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_of_a_series_are_found() {
        let values = vec![1.0, 2.0, 2.0, 2.0, 5.0, 6.0, 6.0, 9.0, 9.0];
        let times = (0..9).map(|tenths| f64::from(tenths) / 10.0).collect();
        let (subject, metric) = (String::new(), String::new());
        let series = Series { subject, metric, times, values };
        let of = |function, numbers: &[f64]| {
            over_time(function, &series, numbers).map(|value| (value * 10.0).round() / 10.0)
        };
        assert_eq!(of("still", &[0.0, 1.0]), Some(0.2));
        assert_eq!(of("still", &[0.25, 0.65]), Some(0.1));
        assert_eq!(of("still", &[0.35, 0.5]), Some(0.0));
        assert_eq!(of("still", &[2.0, 3.0]), None);
        assert_eq!(of("pauses", &[0.05, 0.0, 1.0]), Some(3.0));
        assert_eq!(of("pauses", &[0.15, 0.0, 1.0]), Some(1.0));
        assert_eq!(of("pauses", &[0.3, 0.0, 1.0]), Some(0.0));
        // The points are 1 and 2, with a standard deviation of √½ and a mean of 1.5.
        assert_eq!(of("variation", &[0.0, 0.1]), Some(0.5));
        assert_eq!(of("variation", &[0.0, 0.05]), None);
    }
}
