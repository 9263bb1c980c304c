//! What a checker found: figures with intervals, bounds on them, and a verdict.

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::measure::Measure;

/// How an item came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every bound holds.
    Reproduced,
    /// A bound does not hold, and an ablation shows the mechanism.
    Differs,
    /// There is no checker, or a bound does not hold and why is not shown.
    NotYet,
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::NotYet => "not-yet",
        })
    }
}

/// What a measured figure must lie within.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The figure's name.
    pub name: String,
    /// Its least value, if there is one.
    pub min: Option<f64>,
    /// Its largest value, if there is one.
    pub max: Option<f64>,
}

impl Bound {
    /// Whether `value` is inside. Not a number never is.
    pub fn holds(&self, value: f64) -> bool {
        !value.is_nan()
            && self.min.is_none_or(|min| value >= min)
            && self.max.is_none_or(|max| value <= max)
    }
}

/// A checker's findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Figures by name, in the order in which they were measured.
    pub measured: Vec<(String, Measure)>,
    /// Bounds on some of them.
    pub bounds: Vec<Bound>,
    /// What a reader should know beside the figures.
    pub note: String,
    /// The ablation that shows why a bound does not hold, if one was run.
    pub mechanism: Option<String>,
    /// The item's figure.
    pub figures: Vec<Figure>,
}

impl Outcome {
    /// Nothing found yet.
    pub fn new() -> Self {
        Outcome::default()
    }

    /// Adds a figure, unless no run measured it.
    pub fn measure(&mut self, name: impl Into<String>, measure: Measure) {
        if measure.n > 0 {
            self.measured.push((name.into(), measure));
        }
    }

    /// Adds a figure that is certain, such as a formula's value.
    pub fn exact(&mut self, name: impl Into<String>, value: f64) {
        self.measure(name, Measure::exact(value));
    }

    /// Adds a figure and the bounds on it.
    pub fn bounded(
        &mut self,
        name: impl Into<String>,
        measure: Measure,
        min: impl Into<Option<f64>>,
        max: impl Into<Option<f64>>,
    ) {
        let name = name.into();
        self.bounds.push(Bound { name: name.clone(), min: min.into(), max: max.into() });
        self.measure(name, measure);
    }

    /// Adds a sentence to the note.
    pub fn remark(&mut self, text: impl AsRef<str>) {
        if !self.note.is_empty() {
            self.note.push(' ');
        }
        self.note.push_str(text.as_ref());
    }

    /// Adds the sentence that tells what an ablation showed: used if a bound does not hold.
    pub fn explain(&mut self, mechanism: impl Into<String>) {
        self.mechanism = Some(mechanism.into());
    }

    /// The figure of this name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.measured.iter().find(|(other, _)| other == name).map(|(_, measure)| measure.mean)
    }

    /// The bounds that do not hold for the mean of their figure.
    pub fn broken(&self) -> impl Iterator<Item = &Bound> {
        self.bounds.iter().filter(|bound| !self.value(&bound.name).is_some_and(|v| bound.holds(v)))
    }

    /// Reproduced if there are bounds and all hold; otherwise it differs if an ablation says why.
    pub fn verdict(&self) -> Verdict {
        if !self.bounds.is_empty() && self.broken().next().is_none() {
            Verdict::Reproduced
        } else if self.mechanism.is_some() && !self.bounds.is_empty() {
            Verdict::Differs
        } else {
            Verdict::NotYet
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_bounds_and_a_difference_needs_a_mechanism() {
        let mut outcome = Outcome::new();
        outcome.exact("a", 1.0);
        assert_eq!(outcome.verdict(), Verdict::NotYet);
        outcome.bounded("b", Measure::exact(2.0), 1.0, 3.0);
        assert_eq!(outcome.verdict(), Verdict::Reproduced);
        outcome.bounded("c", Measure::exact(f64::NAN), None, 3.0);
        assert_eq!(outcome.verdict(), Verdict::NotYet);
        assert_eq!(outcome.broken().count(), 1);
        outcome.explain("because");
        assert_eq!(outcome.verdict(), Verdict::Differs);
    }

    #[test]
    fn verdicts_are_spelt_as_people_type_them() {
        for verdict in [Verdict::Reproduced, Verdict::Differs, Verdict::NotYet] {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
        }
    }
}
