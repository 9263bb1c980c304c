//! Claims held against runs.

use std::collections::BTreeMap;

use super::grid::Grid;
use super::quantity::{Runs, number};
use super::{Along, Claim, Direction, Finding, Form};
use crate::stats::{Estimate, Verdict, mean};

/// Values seed by seed; `None` as soon as one is missing.
type Values = Option<Vec<f64>>;

impl Claim {
    /// What the runs say, at every point that the claim is about. Empty where the sweep was changed so that
    /// it has none of them.
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

    /// The names of what it finds.
    pub(super) fn names(&self, grid: &Grid, titles: &BTreeMap<String, String>) -> Vec<String> {
        let points = self.points(grid);
        let shown = self.shown(&points, grid);
        points.iter().map(|point| self.name_at(*point, &shown, grid, titles)).collect()
    }

    /// One point for each value of the keys that matter, as far as everything it refers to exists.
    pub(super) fn points(&self, grid: &Grid) -> Vec<usize> {
        let wanted = |point: &usize| {
            self.each.iter().all(|(key, values)| {
                values.is_empty() || grid.label(*point, key).is_some_and(|l| holds(values, l))
            })
        };
        let mut seen = Vec::new();
        let mut points = Vec::new();
        for point in grid.matching(&self.at).into_iter().filter(wanted) {
            let labels = self.labels(point, grid);
            if !seen.contains(&labels) && self.is_defined(point, grid) {
                seen.push(labels);
                points.push(point);
            }
        }
        points
    }

    /// The labels of a point as far as they matter.
    fn labels(&self, point: usize, grid: &Grid) -> Vec<(String, String)> {
        let mut apart = self.quantity.fixed();
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

    /// The keys that tell the findings apart: those of `for-each`, or those with several values.
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
            // Of keys that advance together the first says it all.
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

    /// What the claim is about, with its interval.
    fn estimate(&self, runs: &Runs<'_>, point: usize) -> Option<Estimate> {
        let less = match self.less.as_slice() {
            [] => None,
            pins => Some(runs.grid.moved(point, pins)?),
        };
        let Form::Curve(along, statistic) = &self.form else {
            let values = self.values(runs, point)?;
            let Some(less) = less else { return Estimate::of(&values) };
            let less = self.values(runs, less)?;
            let differences: Vec<f64> = values.iter().zip(&less).map(|(a, b)| a - b).collect();
            return Estimate::of(&differences);
        };
        let curve = self.curve(runs, point, along)?;
        let less = match less {
            Some(point) => Some(self.curve(runs, point, along)?),
            None => None,
        };
        let of = |without: Option<usize>| {
            let value = (statistic.of)(&means(&curve, without)?)?;
            let less = match &less {
                Some(curve) => (statistic.of)(&means(curve, without)?)?,
                None => 0.0,
            };
            Some(value - less).filter(|value| value.is_finite())
        };
        let seeds = curve.first().map_or(0, |(_, values)| values.len());
        if seeds < 2 {
            return of(None).map(|mean| Estimate { n: seeds, mean, std: 0.0, interval: None });
        }
        let without: Option<Vec<f64>> = (0..seeds).map(|seed| of(Some(seed))).collect();
        Some(Estimate::jackknife(of(None)?, &without?))
    }

    /// The step along a key that speaks most against its direction, and what it may be.
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
        let values: Option<Vec<Vec<f64>>> =
            along.points(point, runs.grid).iter().map(|at| self.values(runs, *at)).collect();
        let Some(values) = values else { return (None, min, max) };
        let step = |pair: &[Vec<f64>]| {
            let [before, after] = pair else { return None };
            let steps: Vec<f64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
            Estimate::of(&steps)
        };
        let steps: Option<Vec<Estimate>> = values.windows(2).map(step).collect();
        let against = |estimate: &Estimate| if rising { -estimate.lo() } else { estimate.hi() };
        let worst = |a: Estimate, b: Estimate| if against(&b) > against(&a) { b } else { a };
        (steps.and_then(|steps| steps.into_iter().reduce(worst)), min, max)
    }

    /// Every x along a key, with the values of every seed there.
    fn curve(&self, runs: &Runs<'_>, point: usize, along: &Along) -> Option<Vec<(f64, Vec<f64>)>> {
        let points = along.points(point, runs.grid);
        let at = |point: usize| {
            let x = number(runs.grid.label(point, &along.key)?)?;
            Some((x, self.values(runs, point)?))
        };
        points.into_iter().map(at).collect()
    }

    /// The value of every seed at a point, compared with the other point or subject if there is one.
    fn values(&self, runs: &Runs<'_>, point: usize) -> Values {
        let seeds = runs.runs.get(point)?.len();
        let other = (runs.grid.moved(point, &self.over)?, self.relative_to.as_ref());
        let value = |seed: usize| {
            let value = self.quantity.value(runs, &self.of, point, seed)?;
            let (point, subject) = (other.0, other.1.unwrap_or(&self.of));
            let compared = match self.form {
                Form::Ratio => value / self.quantity.value(runs, subject, point, seed)?,
                Form::Difference => value - self.quantity.value(runs, subject, point, seed)?,
                _ => value,
            };
            Some(compared).filter(|value| value.is_finite())
        };
        let values: Values = (0..seeds).map(value).collect();
        values.filter(|values| !values.is_empty())
    }
}

impl Along {
    /// The points along the key, all else as at `from`.
    fn points(&self, from: usize, grid: &Grid) -> Vec<usize> {
        let at = |value: &String| grid.moved(from, &[(self.key.clone(), value.clone())]);
        self.values.iter().filter_map(at).collect()
    }
}

fn holds(values: &[String], label: &str) -> bool {
    values.iter().any(|value| value == label)
}

/// The curve of the means, with one seed left out if so.
fn means(curve: &[(f64, Vec<f64>)], without: Option<usize>) -> Option<Vec<(f64, f64)>> {
    let mean_of = |(x, values): &(f64, Vec<f64>)| {
        let kept = values.iter().enumerate().filter(|(seed, _)| Some(*seed) != without);
        Some((*x, mean(&kept.map(|(_, value)| *value).collect::<Vec<f64>>())?))
    };
    curve.iter().map(mean_of).collect()
}

/// `text` with every `{KEY}` replaced by the value there, variants by their titles.
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
