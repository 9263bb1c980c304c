//! Judges claims against runs.

use std::collections::{BTreeMap, BTreeSet};

use super::average::{Sample, jackknife};
use super::grid::Grid;
use super::quantity::{Runs, number};
use super::{Along, Claim, Direction, Finding, Form};
use crate::stats::{Estimate, Verdict};

impl Claim {
    /// The findings at every point that the claim is about. There are none if the sweep was changed
    /// and no longer has these points.
    pub(in crate::scenario) fn judge(
        &self,
        runs: &Runs<'_>,
        titles: &BTreeMap<String, String>,
    ) -> Vec<Finding> {
        let points = self.points(runs.grid);
        let shown = self.shown(&points, runs.grid);
        let finding = |point: &usize| {
            let (estimate, min, max) = match &self.form {
                Form::Order(along, direction) => self.order(runs, *point, along, *direction),
                _ => (self.estimate(runs, *point), self.min, self.max),
            };
            Finding {
                item: self.item.clone(),
                name: self.name_at(*point, &shown, runs.grid, titles),
                point: self.labels(*point, runs.grid),
                is_ablation: self.is_ablation,
                min,
                max,
                paper: self.paper.clone(),
                reading: self.reading.clone(),
                verdict: self.is_judged.then(|| Verdict::of(estimate.as_ref(), min, max)),
                estimate,
            }
        };
        points.iter().map(finding).collect()
    }

    pub(super) fn names(&self, grid: &Grid, titles: &BTreeMap<String, String>) -> Vec<String> {
        let points = self.points(grid);
        let shown = self.shown(&points, grid);
        points.iter().map(|point| self.name_at(*point, &shown, grid, titles)).collect()
    }

    /// The points that the claim is about: one for each combination of values of the keys that
    /// matter to it, if all points that the claim compares exist.
    pub(super) fn points(&self, grid: &Grid) -> Vec<usize> {
        let wanted = |point: &usize| {
            self.each.iter().all(|(key, values)| {
                values.is_empty() || grid.label(*point, key).is_some_and(|l| holds(values, l))
            })
        };
        let mut seen = BTreeSet::new();
        let mut points = Vec::new();
        for point in grid.matching(&self.at).into_iter().filter(wanted) {
            let labels = self.labels(point, grid);
            if !seen.contains(&labels) && self.is_defined(point, grid) {
                seen.insert(labels);
                points.push(point);
            }
        }
        points
    }

    /// The labels of a point that matter to the claim.
    fn labels(&self, point: usize, grid: &Grid) -> Vec<(String, String)> {
        let mut apart = self.quantity.fixed();
        apart.extend(self.average.keys.iter().map(String::as_str));
        if let Form::Order(along, _) | Form::Curve(along, _) = &self.form {
            apart.push(&along.key);
        }
        grid.apart(point, &apart).into_iter().cloned().collect()
    }

    fn is_defined(&self, point: usize, grid: &Grid) -> bool {
        let other = |pins: &[(String, String)]| grid.moved(point, pins);
        let Some((over, less)) = other(&self.over).zip(other(&self.less)) else { return false };
        let enough = match &self.form {
            Form::Order(along, _) | Form::Curve(along, _) => along.points(point, grid).len() > 1,
            _ => true,
        };
        enough && [point, over, less].iter().all(|point| self.quantity.is_defined(*point, grid))
    }

    /// The keys that distinguish the findings: those of `for-each`, or else those with several
    /// values.
    fn shown<'a>(&'a self, points: &[usize], grid: &'a Grid) -> Vec<&'a str> {
        if !self.each.is_empty() {
            return self.each.iter().map(|(key, _)| key.as_str()).collect();
        }
        let several = |key: &str| {
            let labels = || points.iter().map(|point| grid.label(*point, key));
            labels().skip(1).any(|label| Some(label) != labels().next())
        };
        let own = points.first().map(|point| self.labels(*point, grid)).unwrap_or_default();
        let mut shown: Vec<&str> = Vec::new();
        for key in grid.axes.iter().map(|axis| axis.name.as_str()) {
            // Of keys that change together, show only the first.
            let is_told = shown.iter().any(|other| grid.together(key, other));
            if several(key) && !is_told && own.iter().any(|(name, _)| name == key) {
                shown.push(key);
            }
        }
        shown
    }

    fn name_at(
        &self,
        point: usize,
        shown: &[&str],
        grid: &Grid,
        titles: &BTreeMap<String, String>,
    ) -> String {
        let mut name = fill(&self.name, point, grid, titles);
        for key in shown {
            if !self.name.contains(&format!("{{{key}}}"))
                && let Some(label) = grid.label(point, key)
            {
                name.push_str(&format!(", {key}={label}"));
            }
        }
        name
    }

    /// The claimed value with its confidence interval.
    fn estimate(&self, runs: &Runs<'_>, point: usize) -> Option<Estimate> {
        match self.less.as_slice() {
            [] => self.difference(runs, point, None),
            pins => self.difference(runs, point, Some(runs.grid.moved(point, pins)?)),
        }
    }

    /// The claimed value at `point`, minus the value at the point `less` if one is given.
    fn difference(&self, runs: &Runs<'_>, point: usize, less: Option<usize>) -> Option<Estimate> {
        let seeds = runs.runs.get(point)?.len();
        let of = |value: &dyn Fn(usize) -> Option<f64>| {
            let less = less.map_or(Some(0.0), value)?;
            Some(value(point)? - less).filter(|value| value.is_finite())
        };
        if matches!(self.form, Form::Curve(..)) {
            return jackknife(seeds, |without| of(&|at| self.along_curve(runs, at, without)));
        }
        self.average.estimate(seeds, |sample| of(&|at| self.compared(runs, at, sample)))
    }

    /// The step along a key whose confidence interval reaches furthest against the claimed
    /// direction, and the bounds of a step.
    fn order(
        &self,
        runs: &Runs<'_>,
        point: usize,
        along: &Along,
        direction: Direction,
    ) -> (Option<Estimate>, Option<f64>, Option<f64>) {
        let rising = direction == Direction::Rising;
        let (min, max) = match (self.min, self.max) {
            (None, None) if rising => (Some(0.0), None),
            (None, None) => (None, Some(0.0)),
            given => given,
        };
        let points = along.points(point, runs.grid);
        let step = |pair: &[usize]| {
            let [before, after] = pair else { return None };
            self.difference(runs, *after, Some(*before))
        };
        let steps: Option<Vec<Estimate>> = points.windows(2).map(step).collect();
        let against = |estimate: &Estimate| if rising { -estimate.lo() } else { estimate.hi() };
        let worst = |a: Estimate, b: Estimate| if against(&b) > against(&a) { b } else { a };
        (steps.and_then(|steps| steps.into_iter().reduce(worst)), min, max)
    }

    /// The statistic of the curve along a key, from all seeds except `without` if one is given.
    fn along_curve(&self, runs: &Runs<'_>, point: usize, without: Option<usize>) -> Option<f64> {
        let Form::Curve(along, statistic) = &self.form else { return None };
        let at = |point: usize| {
            let x = number(runs.grid.label(point, &along.key)?)?;
            let seeds = runs.runs.get(point)?.len();
            let of = |sample: Sample<'_>| self.compared(runs, point, sample);
            Some((x, self.average.mean(seeds, without, of)?))
        };
        let curve: Option<Vec<_>> = along.points(point, runs.grid).into_iter().map(at).collect();
        (statistic.of)(&curve?)
    }

    /// The value of the quantity in the runs of `sample` at `point`, compared with the other point
    /// or subject if there is one.
    fn compared(&self, runs: &Runs<'_>, point: usize, sample: Sample<'_>) -> Option<f64> {
        let other = || {
            let point = runs.grid.moved(point, &self.over)?;
            self.quantity.value(runs, self.relative_to.as_ref().unwrap_or(&self.of), point, sample)
        };
        let value = self.quantity.value(runs, &self.of, point, sample)?;
        let compared = match self.form {
            Form::Ratio => value / other()?,
            Form::Difference => value - other()?,
            _ => value,
        };
        Some(compared).filter(|value| value.is_finite())
    }
}

impl Along {
    /// The points along the key that otherwise equal `from`.
    fn points(&self, from: usize, grid: &Grid) -> Vec<usize> {
        let at = |value: &String| grid.moved(from, &[(self.key.clone(), value.clone())]);
        self.values.iter().filter_map(at).collect()
    }
}

fn holds(values: &[String], label: &str) -> bool {
    values.iter().any(|value| value == label)
}

/// `text` with every `{KEY}` replaced by the key's value at `point`. A variant is replaced by its
/// title.
pub(in crate::scenario) fn fill(
    text: &str,
    point: usize,
    grid: &Grid,
    titles: &BTreeMap<String, String>,
) -> String {
    let mut filled = text.to_owned();
    for axis in &grid.axes {
        let label = grid.label(point, &axis.name).unwrap_or_default();
        let label = titles.get(label).filter(|_| axis.name == "variant").map_or(label, |t| t);
        filled = filled.replace(&format!("{{{}}}", axis.name), label);
    }
    filled
}
