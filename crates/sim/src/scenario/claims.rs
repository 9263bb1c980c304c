//! Claims, which state what the results of a scenario must show, and the verdicts on claims.
//!
//! A claim is about a *quantity*, which is computed from figures of a run. The claim is about its
//! value at one point of the sweep, a comparison of two points, or its course along a key of the
//! sweep. Points are compared seed by seed. A claim holds if the whole 95 % confidence interval
//! lies within its bounds.

mod average;
mod grid;
mod judge;
mod quantity;
mod read;
mod statistic;
#[cfg(test)]
mod tests;

pub(super) use average::{Average, Sample};
pub(super) use grid::{Grid, Pins};
pub(super) use judge::fill;
pub(super) use quantity::{Known, Quantity, Runs, check_pins, number};
pub(super) use read::{Context, read};

use crate::stats::{Estimate, Verdict};
use statistic::Statistic;

/// The values that the key `kind` accepts.
pub(super) const KINDS: &[&str] = &[
    "value",
    "ratio",
    "difference",
    "order",
    "slope",
    "r2",
    "peak",
    "highest",
    "fall",
    "spread",
    "knee",
    "monotone",
    "diversity-r2",
    "diversity-limit",
];

/// One `[[claim]]` or `[[measure]]`.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The published result that the claim is about.
    pub item: Option<String>,
    /// Name of the claim, as given or made from its other keys.
    pub name: String,
    /// Whether the claim is judged. A measure is only reported.
    pub is_judged: bool,
    /// Whether the claim shows why other claims fail.
    pub is_ablation: bool,
    /// The lower bound of the claimed value.
    pub min: Option<f64>,
    /// The upper bound of the claimed value.
    pub max: Option<f64>,
    /// The value given in the paper, as text.
    pub paper: Option<String>,
    /// The interpretation of the paper that the claim depends on.
    pub reading: Option<String>,
    form: Form,
    quantity: Quantity,
    of: String,
    relative_to: Option<String>,
    at: Pins,
    over: Pins,
    less: Pins,
    average: Average,
    each: Vec<(String, Vec<String>)>,
}

/// How a claim evaluates its quantity.
#[derive(Clone, Debug)]
enum Form {
    /// The mean of the quantity over the seeds.
    Value,
    /// The mean of the ratios of the quantity to that at another point, of another subject, or
    /// both.
    Ratio,
    /// The mean of the differences between the quantity and that at another point, of another
    /// subject, or both.
    Difference,
    /// The differences between neighbouring values along a key.
    Order(Along, Direction),
    /// A statistic of the curve that the quantity's means form along a key.
    Curve(Along, Statistic),
}

/// A key of the sweep, and its values in the order of the comparison.
#[derive(Clone, Debug)]
struct Along {
    key: String,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Rising,
    Falling,
}

/// The result of one claim or measure at one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The published result that the finding is about.
    pub item: Option<String>,
    /// The name of the claim or measure in reports.
    pub name: String,
    /// The values of the sweep's keys at this point.
    pub point: Vec<(String, String)>,
    /// Whether the finding shows why other claims fail.
    pub is_ablation: bool,
    /// The lower bound of the claimed value.
    pub min: Option<f64>,
    /// The upper bound of the claimed value.
    pub max: Option<f64>,
    /// The value given in the paper, as text.
    pub paper: Option<String>,
    /// The interpretation of the paper that the finding depends on.
    pub reading: Option<String>,
    /// The measured value with its confidence interval; `None` if a figure that the claim needs was
    /// not measured, or the value is not finite.
    pub estimate: Option<Estimate>,
    /// The verdict; `None` for a measure, which is not judged.
    pub verdict: Option<Verdict>,
}

impl Claim {
    /// The single figures that the claim needs, by subject.
    pub(super) fn figures(&self, grid: &Grid) -> Vec<(String, &'static str)> {
        let subjects = [Some(&self.of), self.relative_to.as_ref()];
        let of = |subject: &String| self.quantity.figures(subject, grid);
        subjects.into_iter().flatten().flat_map(of).collect()
    }

    /// The series that the claim needs, by subject.
    pub(super) fn series(&self, grid: &Grid) -> Vec<(String, String)> {
        let subjects = [Some(&self.of), self.relative_to.as_ref()];
        let of = |subject: &String| self.quantity.series(subject, grid);
        subjects.into_iter().flatten().flat_map(of).collect()
    }
}
