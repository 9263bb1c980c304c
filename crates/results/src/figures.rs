//! Chooses the figures to draw for results: single values over a sweep, series over time,
//! distributions.

mod data;
mod movement;
mod over_time;
mod sweep;
#[cfg(test)]
mod tests;

use anabranch_plot::{BarSeries, Bars, Figure, Line};

use crate::Provenance;
use crate::stats::Estimate;

pub use data::Data;
pub use movement::{MOVEMENT, movement};
pub use over_time::{distributions, series, shares};
pub use sweep::Sweep;

/// A figure and its file's name.
pub type Named = (String, Figure);

const INTERVAL: &str = "Means over the seeds with their 95 % intervals (Student's t).";
const CUT: &str = "Intervals end at zero, as no value is below it.";
const NO_INTERVAL: &str = "One seed, so no interval.";

/// The provenance of a figure, for its caption.
pub fn origin(provenance: &Provenance) -> String {
    let mut text = format!("Scenario {}", provenance.scenario);
    if !provenance.settings.is_empty() {
        text += &format!(" with {}", provenance.settings.join(", "));
    }
    let commit = provenance.commit.get(..10).unwrap_or(&provenance.commit);
    text + &format!("; anabranch {} at {commit}.", provenance.version)
}

/// Figures of single values: lines over the sweep, or bars. Figures with a single bar, or with no
/// finite value except zeros, are left out unless they were `asked` for.
pub fn scalars(data: &Data, sweep: &Sweep, asked: bool) -> Vec<Named> {
    let mut figures = Vec::new();
    for metric in data.metrics() {
        let subjects = data.groups(metric);
        let values = || subjects.iter().flat_map(|s| data.values(metric, s)).flat_map(|(_, v)| v);
        let says_nothing = values().all(|value| *value == 0.0 || !value.is_finite());
        let alone = subjects.len() < 2 && sweep.is_empty();
        if (says_nothing || alone) && !asked {
            continue;
        }
        // If no value is below zero, intervals are not drawn below zero.
        let positive = !values().any(|value| *value < 0.0);
        let least = if positive { 0.0 } else { f64::NEG_INFINITY };
        let mut figure = match sweep.numbers() {
            Some(numbers) => lines(data, metric, (&subjects, least), sweep, &numbers),
            None => bars(data, metric, (&subjects, least), sweep),
        };
        figure.y.zero = positive && unit(metric).is_some();
        let reaches_below = |(_, values): &(usize, Vec<f64>)| {
            Estimate::of(values).is_some_and(|estimate| estimate.lo() < least)
        };
        let is_cut = subjects.iter().any(|s| data.values(metric, s).iter().any(reaches_below));
        let seeds = values().count() > subjects.len() * sweep.len().max(1);
        let caption = match (seeds, is_cut) {
            (true, true) => format!("{INTERVAL} {CUT}"),
            (true, false) => INTERVAL.to_owned(),
            (false, _) => NO_INTERVAL.to_owned(),
        };
        figures.push((metric.to_owned(), figure.caption(caption)));
    }
    figures
}

/// A line for every subject and every combination of the keys that are not along the axis.
fn lines(
    data: &Data,
    metric: &str,
    (subjects, least): (&[&str], f64),
    sweep: &Sweep,
    numbers: &[(usize, f64)],
) -> Figure {
    let mut figure = Figure::new(title(metric), sweep.axis(), label(metric));
    for subject in subjects {
        let mut of_line: Vec<(String, Vec<(f64, Estimate)>)> = Vec::new();
        for (point, values) in data.values(metric, subject) {
            let place = numbers.iter().find(|(index, _)| index == point).map(|(_, x)| *x);
            let (Some(x), Some(estimate)) = (place, Estimate::of(values)) else { continue };
            let rest = sweep.others(*point);
            match of_line.iter_mut().find(|(name, _)| *name == rest) {
                Some((_, line)) => line.push((x, estimate)),
                None => of_line.push((rest, vec![(x, estimate)])),
            }
        }
        let single = subjects.len() == 1;
        for (rest, mut points) in of_line {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let name = match (single, rest.is_empty()) {
                (true, false) => rest,
                (_, true) => (*subject).to_owned(),
                (false, false) => format!("{subject}, {rest}"),
            };
            let mut line = Line::new(name, points.iter().map(|(x, e)| (*x, e.mean)).collect());
            if points.iter().any(|(_, estimate)| estimate.interval.is_some()) {
                line = line.band(points.iter().map(|(_, e)| (e.lo().max(least), e.hi())).collect());
            }
            figure = figure.line(line);
        }
    }
    let ends = numbers
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(low, high), (_, x)| (low.min(*x), high.max(*x)));
    figure.x.log = ends.0 > 0.0 && ends.1 / ends.0 >= 50.0;
    figure
}

/// Without a sweep there is one bar for each subject; with a sweep, one group of bars for each
/// point.
fn bars(data: &Data, metric: &str, (subjects, least): (&[&str], f64), sweep: &Sweep) -> Figure {
    let bar = |subject: &str, point: usize| {
        let values = data.values(metric, subject).iter().find(|(index, _)| *index == point);
        let estimate = values.and_then(|(_, values)| Estimate::of(values));
        estimate.map_or((f64::NAN, f64::NAN, f64::NAN), |e| (e.mean, e.lo().max(least), e.hi()))
    };
    let named =
        |name: &str, values| BarSeries { name: name.to_owned(), values, is_outlined: false };
    let bars = if sweep.is_empty() {
        let values = subjects.iter().map(|subject| bar(subject, 0)).collect();
        let categories = subjects.iter().map(|subject| (*subject).to_owned()).collect();
        Bars { categories, series: vec![named(metric, values)] }
    } else {
        let points = sweep.points();
        let series = subjects.iter().map(|subject| {
            named(subject, points.iter().map(|point| bar(subject, *point)).collect())
        });
        let categories = points.iter().map(|point| sweep.values(*point)).collect();
        Bars { series: series.collect(), categories }
    };
    Figure::new(title(metric), sweep.varying(), label(metric)).bars(bars)
}

/// A metric's name as a title, such as `Goodput` for `goodput_mbps`.
pub(super) fn title(metric: &str) -> String {
    let words = words(metric);
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A metric's name as the label of an axis, such as `goodput (Mb/s)` for `goodput_mbps`.
pub(super) fn label(metric: &str) -> String {
    match unit(metric) {
        Some((_, unit)) => format!("{} ({unit})", words(metric)),
        None => words(metric),
    }
}

fn words(metric: &str) -> String {
    let name = unit(metric).map_or(metric, |(name, _)| name);
    name.replace('_', " ")
}

/// The name without the unit at its end, and the unit.
pub(super) fn unit(metric: &str) -> Option<(&str, &'static str)> {
    const UNITS: [(&str, &str); 5] = [
        ("_mbps", "Mb/s"),
        ("_bytes", "bytes"),
        ("_packets", "packets"),
        ("_ms", "ms"),
        ("_s", "s"),
    ];
    UNITS.iter().find_map(|(suffix, unit)| Some((metric.strip_suffix(suffix)?, *unit)))
}
