//! Bounds that a scenario states for its own results.

use core::fmt;
use std::collections::BTreeSet;

use super::error::{Flaw, Place};
use super::reader::Section;
use super::sweep::Point;
use crate::probe::METRICS;
use crate::report::RunReport;

/// One `[[expect]]`: bounds for the mean of a figure over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What is bounded.
    pub metric: String,
    /// About whom.
    pub of: String,
    /// Whose figure divides, run by run.
    pub relative_to: Option<String>,
    /// The least mean.
    pub min: Option<f64>,
    /// The largest mean.
    pub max: Option<f64>,
    /// Sweep values where it holds; empty for every point.
    pub at: Vec<(String, String)>,
}

/// An expectation held against the runs of one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The expectation.
    pub expectation: Expectation,
    /// Where.
    pub point: Vec<(String, String)>,
    /// The mean over the runs; `None` if no run measured it.
    pub mean: Option<f64>,
    /// Whether the mean is within the bounds.
    pub holds: bool,
}

impl Expectation {
    /// Holds this against `runs`, all of one point. `None` where it makes no claim about that point.
    pub fn check(&self, point: &[(String, String)], runs: &[&RunReport]) -> Option<Verdict> {
        if !self.at.iter().all(|pair| point.contains(pair)) {
            return None;
        }
        let values: Vec<f64> = runs.iter().filter_map(|run| self.value(run)).collect();
        let complete = !values.is_empty() && values.len() == runs.len();
        let mean = complete.then(|| values.iter().sum::<f64>() / values.len() as f64);
        let holds = mean.is_some_and(|mean| {
            self.min.is_none_or(|min| mean >= min) && self.max.is_none_or(|max| mean <= max)
        });
        Some(Verdict { expectation: self.clone(), point: point.to_vec(), mean, holds })
    }

    fn value(&self, run: &RunReport) -> Option<f64> {
        let value = run.scalar(&self.of, &self.metric)?;
        match &self.relative_to {
            None => Some(value),
            Some(other) => Some(value / run.scalar(other, &self.metric)?),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.metric, self.of)?;
        if let Some(other) = &self.relative_to {
            write!(f, " relative to {other}")?;
        }
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, " from {min} to {max}"),
            (Some(min), None) => write!(f, " at least {min}"),
            (None, Some(max)) => write!(f, " at most {max}"),
            (None, None) => Ok(()),
        }
    }
}

/// Reads `[[expect]]`. `subjects` exist, `points` are those of the sweep. An assignment may have `changed`
/// the sweep, so that expectations are about points that it lacks now.
pub(super) fn read(
    file: &Section<'_>,
    subjects: &BTreeSet<String>,
    points: &[Point],
    changed: bool,
) -> Vec<Expectation> {
    let mut expectations = Vec::new();
    for section in file.tables("expect") {
        let Some(metric) = section.text("metric") else { continue };
        let known: Vec<&str> = METRICS.iter().filter(|m| m.scalar).map(|m| m.name).collect();
        if !known.contains(&metric.as_str()) {
            let (place, path) = (section.place_of("metric"), section.path_of("metric"));
            section.report(Flaw::unknown(place, path, "metric", &metric, &known));
        }
        let of = section.text("of").unwrap_or_else(|| "all".to_owned());
        let relative_to = section.text("relative-to");
        known_subject(&section, "of", &of, subjects);
        if let Some(other) = &relative_to {
            known_subject(&section, "relative-to", other, subjects);
        }
        let (min, max) = (section.real("min"), section.real("max"));
        match (min, max) {
            (None, None) => section.complain("min", "neither min nor max", "one of them or both"),
            (Some(min), Some(max)) if min > max => {
                section.refuse_value("max", &max.to_string(), "a number not below min");
            }
            _ => {}
        }
        let at: Vec<(String, String, Place)> = section.free("at");
        let at: Vec<(String, String)> =
            at.into_iter().map(|(key, value, _)| (key, value)).collect();
        if !changed && !points.iter().any(|point| point.matches(&at)) {
            section.complain("at", "no point of the sweep is there", axes_of(points));
        }
        expectations.push(Expectation { metric, of, relative_to, min, max, at });
    }
    expectations
}

fn axes_of(points: &[Point]) -> String {
    let mut axes: Vec<String> = Vec::new();
    for (name, value) in points.iter().flat_map(|point| &point.labels) {
        let pair = format!("{name} = {value}");
        if !axes.contains(&pair) {
            axes.push(pair);
        }
    }
    if axes.is_empty() { "nothing: the scenario has no sweep".to_owned() } else { axes.join(", ") }
}

fn known_subject(section: &Section<'_>, key: &str, subject: &str, subjects: &BTreeSet<String>) {
    if subjects.contains(subject) {
        return;
    }
    let known: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let (place, path) = (section.place_of(key), section.path_of(key));
    section.report(Flaw::unknown(place, path, "subject", subject, &known));
}
