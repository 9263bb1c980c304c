//! The outcome of an item: values with intervals, bounds on these values, and a verdict.

use anabranch_sim::scenario::{Finding, Published};
use anabranch_sim::stats::{self, Estimate};
use serde::{Deserialize, Serialize};

use crate::figure::Figure;

/// The verdict on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every claim holds, with its whole interval.
    Reproduced,
    /// No claim fails, but the interval of one reaches beyond its bounds. More seeds would decide
    /// it.
    Open,
    /// A claim fails, and ablations whose own claims hold show why.
    Differs,
    /// Nothing is checked, or a claim fails and no ablation shows why.
    NotYet,
}

impl Verdict {
    /// Every verdict with the word for it.
    pub const ALL: [(Verdict, &str); 4] = [
        (Verdict::Reproduced, "reproduced"),
        (Verdict::Open, "open"),
        (Verdict::Differs, "differs"),
        (Verdict::NotYet, "not-yet"),
    ];
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let word = Verdict::ALL.iter().find(|(verdict, _)| verdict == self);
        f.pad(word.map_or("", |(_, word)| word))
    }
}

/// How one of an item's scenarios was run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// The scenario's path in the repository.
    pub file: String,
    /// Number of seeds at each point.
    pub seeds: usize,
    /// Number of points of the scenario's sweep.
    pub points: usize,
    /// Duration of a run, warm-up included, such as `300 s, of which the first 20 s are not measured`.
    pub duration: String,
    /// Groups of flows that ran, with their protocols and policies.
    pub flows: Vec<String>,
}

/// The findings about an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Description of the item, in words.
    pub published: Published,
    /// Claims and measures, in the order in which they are shown.
    pub findings: Vec<Finding>,
    /// The item's figures.
    pub figures: Vec<Figure>,
    /// How the item's scenarios were run; none for a formula.
    pub settings: Vec<Setting>,
}

impl Outcome {
    /// An outcome without findings.
    pub fn new() -> Self {
        Outcome::default()
    }

    /// Adds a value, unless it could not be measured.
    pub fn measure(&mut self, name: impl Into<String>, estimate: impl Into<Option<Estimate>>) {
        if let Some(estimate) = estimate.into() {
            self.findings.push(finding(name.into(), Some(estimate)));
        }
    }

    /// Adds an exact value, such as that of a formula.
    pub fn exact(&mut self, name: impl Into<String>, value: f64) {
        self.measure(name, Estimate::exact(value));
    }

    /// Adds a value and the bounds within which it must lie.
    pub fn bounded(
        &mut self,
        name: impl Into<String>,
        estimate: impl Into<Option<Estimate>>,
        min: impl Into<Option<f64>>,
        max: impl Into<Option<f64>>,
    ) {
        let estimate = estimate.into();
        let (min, max) = (min.into(), max.into());
        let verdict = Some(stats::Verdict::of(estimate.as_ref(), min, max));
        self.findings.push(Finding { min, max, verdict, ..finding(name.into(), estimate) });
    }

    /// Sets the paper's value of the finding that was added last.
    pub fn paper(&mut self, value: impl core::fmt::Display) {
        if let Some(finding) = self.findings.last_mut() {
            finding.paper = Some(value.to_string());
        }
    }

    /// Adds a sentence to the note.
    pub fn remark(&mut self, text: impl AsRef<str>) {
        append(&mut self.published.note, text.as_ref());
    }

    /// The judged claims: those of ablations if `ablations`, otherwise all others.
    pub fn claims(&self, ablations: bool) -> impl Iterator<Item = (&Finding, stats::Verdict)> {
        let judged = self.findings.iter().filter(move |f| f.is_ablation == ablations);
        judged.filter_map(|finding| Some((finding, finding.verdict?)))
    }

    /// The verdict from the claims about the first reading and those about no particular reading.
    pub fn verdict(&self) -> Verdict {
        self.verdict_of(self.published.readings.first().map(String::as_str))
    }

    /// The readings after the first that have at least one judged claim, each with its verdict.
    pub fn other_readings(&self) -> Vec<(&str, Verdict)> {
        let others = self.published.readings.iter().skip(1).map(String::as_str);
        let was_run = |reading: &&str| {
            self.findings.iter().any(|f| f.verdict.is_some() && self.reading(f) == Some(*reading))
        };
        others.filter(was_run).map(|reading| (reading, self.verdict_of(Some(reading)))).collect()
    }

    /// The reading that a finding is about; `None` if it is about no particular reading.
    pub fn reading(&self, finding: &Finding) -> Option<&str> {
        let (_, variant) = finding.point.iter().find(|(key, _)| key == "variant")?;
        let is_of = |reading: &&String| {
            variant
                .strip_prefix(reading.as_str())
                .is_some_and(|r| r.is_empty() || r.starts_with('-'))
        };
        self.published.readings.iter().find(is_of).map(String::as_str)
    }

    /// Whether a finding counts for the item's verdict: it is about the first reading or about no
    /// particular reading.
    pub fn is_first(&self, finding: &Finding) -> bool {
        let reading = self.reading(finding);
        reading.is_none() || reading == self.published.readings.first().map(String::as_str)
    }

    fn verdict_of(&self, reading: Option<&str>) -> Verdict {
        let claims = |ablations| {
            let all = self.claims(ablations);
            all.filter(|(f, _)| self.reading(f).is_none() || self.reading(f) == reading)
        };
        let fails = claims(false).any(|(_, verdict)| verdict == stats::Verdict::Fails);
        let holds = claims(false).all(|(_, verdict)| verdict == stats::Verdict::Holds);
        let mut ablations = claims(true).map(|(_, verdict)| verdict).peekable();
        let is_explained =
            ablations.peek().is_some() && ablations.all(|verdict| verdict == stats::Verdict::Holds);
        match () {
            () if claims(false).next().is_none() => Verdict::NotYet,
            () if fails && is_explained => Verdict::Differs,
            () if fails => Verdict::NotYet,
            () if holds => Verdict::Reproduced,
            () => Verdict::Open,
        }
    }
}

fn finding(name: String, estimate: Option<Estimate>) -> Finding {
    Finding {
        item: None,
        name,
        point: Vec::new(),
        is_ablation: false,
        min: None,
        max: None,
        paper: None,
        reading: None,
        estimate,
        verdict: None,
    }
}

/// Adds a sentence to a text.
pub(crate) fn append(text: &mut String, sentence: &str) {
    if !text.is_empty() && !sentence.is_empty() {
        text.push(' ');
    }
    text.push_str(sentence);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(mean: f64) -> Option<Estimate> {
        Estimate::of(&[mean - 0.1, mean, mean + 0.1])
    }

    #[test]
    fn a_verdict_needs_whole_intervals() {
        let mut outcome = Outcome::new();
        outcome.exact("a", 1.0);
        assert_eq!(outcome.verdict(), Verdict::NotYet);
        outcome.bounded("b", spread(2.0), 1.0, 3.0);
        assert_eq!(outcome.verdict(), Verdict::Reproduced);
        outcome.bounded("c", spread(2.0), 1.9, None);
        assert_eq!(outcome.verdict(), Verdict::Open);
        outcome.bounded("d", None, None, 3.0);
        assert_eq!(outcome.verdict(), Verdict::NotYet);
    }

    #[test]
    fn a_difference_needs_an_ablation_that_holds() {
        let mut outcome = Outcome::new();
        outcome.bounded("a", spread(2.0), 3.0, None);
        assert_eq!(outcome.verdict(), Verdict::NotYet);
        let ablation = |outcome: &mut Outcome, name: &str, min: f64| {
            outcome.bounded(name, spread(2.0), min, None);
            outcome.findings.last_mut().unwrap().is_ablation = true;
        };
        ablation(&mut outcome, "without it", 1.0);
        assert_eq!(outcome.verdict(), Verdict::Differs);
        // An ablation whose own claim is open or fails explains nothing.
        let mut open = outcome.clone();
        ablation(&mut open, "nor that", 1.9);
        assert_eq!(open.verdict(), Verdict::NotYet);
        ablation(&mut outcome, "nor this", 2.5);
        assert_eq!(outcome.verdict(), Verdict::NotYet);
    }

    #[test]
    fn each_reading_has_a_verdict_of_its_own() {
        let mut outcome = Outcome::new();
        outcome.published.readings = ["plain", "other", "third"].map(str::to_owned).to_vec();
        let mut claim = |variant: &str, min: f64, is_ablation: bool| {
            outcome.bounded(format!("{variant} {min}"), spread(2.0), min, None);
            let last = outcome.findings.last_mut().unwrap();
            last.is_ablation = is_ablation;
            last.point = vec![("M".into(), "1".into()), ("variant".into(), variant.into())];
        };
        claim("plain", 1.0, false);
        claim("rival", 1.0, false);
        claim("other-blind", 3.0, false);
        assert_eq!(outcome.verdict(), Verdict::Reproduced);
        assert_eq!(outcome.other_readings(), [("other", Verdict::NotYet)]);
        let mut claim = |variant: &str, min: f64| {
            outcome.bounded("why", spread(2.0), min, None);
            let last = outcome.findings.last_mut().unwrap();
            (last.is_ablation, last.point) = (true, vec![("variant".into(), variant.into())]);
        };
        claim("other", 1.0);
        assert_eq!(outcome.other_readings(), [("other", Verdict::Differs)]);
        assert_eq!(outcome.verdict(), Verdict::Reproduced);
        // A claim about no particular reading counts for all readings.
        outcome.bounded("rival", spread(2.0), 3.0, None);
        assert_eq!(outcome.verdict(), Verdict::NotYet);
    }

    #[test]
    fn verdicts_are_spelt_as_people_type_them() {
        for (verdict, word) in Verdict::ALL {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{word}\""));
            assert_eq!(verdict.to_string(), word);
        }
    }
}
