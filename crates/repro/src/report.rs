//! The verdicts of one invocation, as JSON and as a table.

use std::collections::BTreeMap;
use std::fmt::Write;

use anabranch_sim::scenario::Finding;
use anabranch_sim::stats::{self, Estimate};
use serde::{Deserialize, Serialize};

use crate::catalogue::Item;
use crate::outcome::{Outcome, Verdict, append};

/// The reports on all items that were checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The items, in the catalogue's order.
    pub items: Vec<ItemReport>,
}

/// One item's verdict, with the measured values and bounds behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemReport {
    /// The item's identifier.
    pub id: String,
    /// Name of the item's paper, such as `mplot`.
    pub paper: String,
    /// Verdict on the item.
    pub verdict: Verdict,
    /// Measured values, by name.
    pub measured: BTreeMap<String, Measure>,
    /// Bounds within which measured values must lie with their whole intervals.
    pub bounds: Vec<Bound>,
    /// Bounds of the ablations that explain a difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablations: Vec<Bound>,
    /// Result that the paper states.
    pub paper_says: String,
    /// Remarks for readers of the values.
    pub note: String,
    /// The whole outcome, for the HTML page; not part of the JSON.
    #[serde(skip)]
    pub outcome: Outcome,
}

/// A value measured in one or more runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The mean.
    pub mean: f64,
    /// Lower end of the 95 % interval; the mean itself for a single or certain value.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
    /// Number of values behind the mean.
    pub n: usize,
}

/// The range within which a measured value must lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Name of the claim.
    pub name: String,
    /// Least accepted value, if there is one.
    pub min: Option<f64>,
    /// Largest accepted value, if there is one.
    pub max: Option<f64>,
}

impl From<&Estimate> for Measure {
    fn from(estimate: &Estimate) -> Self {
        let Estimate { mean, n, .. } = *estimate;
        Measure { mean, lo: estimate.lo(), hi: estimate.hi(), n }
    }
}

impl Bound {
    /// The bound of a claim.
    pub fn of(finding: &Finding) -> Self {
        Bound { name: finding.name.clone(), min: finding.min, max: finding.max }
    }
}

impl ItemReport {
    /// The report on an item with this outcome.
    pub fn new(item: &Item, outcome: Outcome) -> Self {
        let verdict = outcome.verdict();
        let bounds = |ablations| outcome.claims(ablations).map(|(f, _)| Bound::of(f)).collect();
        let measured = |finding: &Finding| {
            Some((finding.name.clone(), Measure::from(finding.estimate.as_ref()?)))
        };
        let stated = &outcome.published.paper;
        ItemReport {
            id: item.id.to_owned(),
            paper: item.paper().to_owned(),
            verdict,
            measured: outcome.findings.iter().filter_map(measured).collect(),
            bounds: bounds(false),
            ablations: bounds(true),
            paper_says: if stated.is_empty() { item.paper_says } else { stated }.to_owned(),
            note: note(&outcome, verdict),
            outcome,
        }
    }
}

/// The item's note, followed by the claims that fail, those that are open, an explanation, and the
/// verdicts of other readings.
fn note(outcome: &Outcome, verdict: Verdict) -> String {
    let mut note = outcome.published.note.clone();
    let mut say = |before: &str, ablations: bool, wanted: fn(stats::Verdict) -> bool| {
        let named: Vec<String> = outcome
            .claims(ablations)
            .filter(|(finding, verdict)| outcome.is_first(finding) && wanted(*verdict))
            .map(|(finding, verdict)| describe(finding, verdict))
            .collect();
        if !named.is_empty() {
            append(&mut note, &format!("{before}: {}.", named.join("; ")));
        }
    };
    say("Outside its bounds", false, |verdict| verdict == stats::Verdict::Fails);
    say("Open", false, |verdict| matches!(verdict, stats::Verdict::Open { .. }));
    match verdict {
        Verdict::Differs => append(&mut note, &outcome.published.explanation),
        Verdict::NotYet => {
            say("An explanation was tested and did not hold", true, |verdict| {
                verdict != stats::Verdict::Holds
            });
        }
        _ => {}
    }
    let others = outcome.other_readings();
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(|(name, v)| format!("{name} {v}")).collect();
        append(&mut note, &format!("Other readings: {}.", others.join(", ")));
    }
    note
}

/// A finding in words, such as `ratio is 0.9 to 1.1 (at least 1; about 12 seeds would settle it)`.
fn describe(finding: &Finding, verdict: stats::Verdict) -> String {
    let value = match &finding.estimate {
        Some(estimate) if verdict == stats::Verdict::Fails || estimate.interval.is_none() => {
            number(estimate.mean)
        }
        Some(estimate) => format!("{} to {}", number(estimate.lo()), number(estimate.hi())),
        None => "not measured".to_owned(),
    };
    let settled = match verdict {
        stats::Verdict::Open { seeds: Some(seeds) } => {
            format!("; about {seeds} seeds would settle it")
        }
        _ => String::new(),
    };
    format!("{} is {value} ({}{settled})", finding.name, range(&Bound::of(finding)))
}

/// The range of a bound in words.
pub(crate) fn range(bound: &Bound) -> String {
    match (bound.min, bound.max) {
        (Some(min), Some(max)) if min == max => format!("exactly {}", number(min)),
        (Some(min), Some(max)) => format!("{} to {}", number(min), number(max)),
        (Some(min), None) => format!("at least {}", number(min)),
        (None, Some(max)) => format!("at most {}", number(max)),
        (None, None) => "any".to_owned(),
    }
}

/// A number with four significant digits at most.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "not measured".to_owned();
    }
    let decimals = match size {
        _ if size == 0.0 => 0,
        _ if size >= 1000.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 0.01 => 3,
        _ if size >= 0.0001 => 5,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

impl Report {
    /// How many items have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.items.iter().filter(|item| item.verdict == verdict).count()
    }

    /// One line per item and a summary, for a terminal.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let width = self.items.iter().map(|item| item.id.len()).max().unwrap_or(0);
        for item in &self.items {
            let (id, verdict) = (&item.id, item.verdict);
            let others = item.outcome.other_readings();
            let others: String = others.iter().map(|(name, v)| format!("[{name}: {v}] ")).collect();
            let _ = writeln!(text, "{id:width$}  {verdict:10}  {others}{}", first_line(item));
        }
        let _ = writeln!(text, "\n{}", self.sum());
        text
    }

    /// The number of items by verdict, such as `12 reproduced, 3 open, 5 differ, 1 not yet`.
    pub fn sum(&self) -> String {
        let count = |verdict| self.count(verdict);
        format!(
            "{} reproduced, {} open, {} differ, {} not yet",
            count(Verdict::Reproduced),
            count(Verdict::Open),
            count(Verdict::Differs),
            count(Verdict::NotYet)
        )
    }
}

/// The grounds of the verdict: the claims that do not hold, or else the first claims. For an item
/// without claims it is the note.
fn first_line(item: &ItemReport) -> String {
    const MOST: usize = 4;
    let claims: Vec<_> =
        item.outcome.claims(false).filter(|(f, _)| item.outcome.is_first(f)).collect();
    let loose = || claims.iter().filter(|(_, verdict)| *verdict != stats::Verdict::Holds);
    let chosen: Vec<_> =
        if loose().next().is_some() { loose().collect() } else { claims.iter().collect() };
    let shown = chosen.iter().take(MOST).map(|(finding, verdict)| describe(finding, *verdict));
    let mut line = shown.collect::<Vec<_>>().join(", ");
    if chosen.len() > MOST {
        let _ = write!(line, ", and {} more", chosen.len() - MOST);
    }
    if line.is_empty() { item.note.clone() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn json_has_the_published_shape() {
        let mut outcome = Outcome::new();
        outcome.bounded("goodput", Estimate::of(&[1.5, 1.5]), 1.0, None);
        outcome.remark("Fine.");
        let item = catalogue::find("mplot-fig3").unwrap();
        let report = Report { items: vec![ItemReport::new(item, outcome)] };
        let json = serde_json::to_value(&report).unwrap();
        let keys = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&json), ["items"]);
        let item = &json["items"][0];
        let mut found = keys(item);
        found.sort();
        assert_eq!(found, ["bounds", "id", "measured", "note", "paper", "paper_says", "verdict"]);
        assert_eq!(item["measured"]["goodput"]["mean"], 1.5);
        assert_eq!(item["measured"]["goodput"]["n"], 2);
        assert_eq!(item["bounds"][0]["min"], 1.0);
        assert!(item["bounds"][0]["max"].is_null());
        assert_eq!(item["verdict"], "reproduced");
    }

    #[test]
    fn the_note_names_what_fails_what_is_open_and_why() {
        let item = catalogue::find("mplot-fig3").unwrap();
        let mut outcome = Outcome::new();
        outcome.bounded("ratio", Estimate::of(&[0.9, 1.1, 1.3]), 1.0, None);
        let report = ItemReport::new(item, outcome.clone());
        assert_eq!(report.verdict, Verdict::Open);
        let open = "Open: ratio is 0.603 to 1.597 (at least 1; about 18 seeds would settle it).";
        assert!(report.note.contains(open), "{}", report.note);
        outcome.bounded("other", Estimate::of(&[0.4, 0.5, 0.6]), 1.0, None);
        outcome.published.explanation = "Without X it is 1.2.".to_owned();
        let report = ItemReport::new(item, outcome.clone());
        assert_eq!(report.verdict, Verdict::NotYet);
        assert!(report.note.contains("other is 0.5 (at least 1)"), "{}", report.note);
        assert!(!report.note.contains("Without X"), "an explanation that nothing shows");
        outcome.exact("without X", 1.2);
        if let Some(last) = outcome.findings.last_mut() {
            (last.is_ablation, last.min) = (true, Some(1.0));
            last.verdict = Some(stats::Verdict::Holds);
        }
        let report = ItemReport::new(item, outcome);
        assert_eq!((report.verdict, report.ablations.len()), (Verdict::Differs, 1));
        assert!(report.note.contains("Without X"), "{}", report.note);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (35.0, "35"),
            (2.75, "2.75"),
            (1234.5, "1234"),
            (0.00575, "0.00575"),
            (1e-12, "1.00e-12"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(f64::NAN), "not measured");
    }
}
