//! The verdicts of one invocation, as JSON and as a table.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::catalogue::Item;
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::{Bound, Outcome, Verdict};

/// Everything that was checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The items, in the catalogue's order.
    pub items: Vec<ItemReport>,
}

/// One item's verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemReport {
    /// The item's identifier.
    pub id: String,
    /// Its paper.
    pub paper: String,
    /// How it came out.
    pub verdict: Verdict,
    /// Figures by name.
    pub measured: BTreeMap<String, Measure>,
    /// What they must lie within.
    pub bounds: Vec<Bound>,
    /// What the paper states.
    pub paper_says: String,
    /// What a reader should know beside the figures.
    pub note: String,
    /// The item's figures: for the page, not for JSON.
    #[serde(skip)]
    pub figures: Vec<Figure>,
    /// Names of the figures in the order in which they were measured.
    #[serde(skip)]
    pub order: Vec<String>,
}

impl ItemReport {
    /// What a checker found about an item.
    pub fn new(item: &Item, outcome: Outcome) -> Self {
        let verdict = outcome.verdict();
        let mut note = outcome.note.clone();
        let broken: Vec<String> = outcome.broken().map(|bound| describe(bound, &outcome)).collect();
        if !broken.is_empty() {
            append(&mut note, &format!("Outside its bounds: {}.", broken.join("; ")));
        }
        if let (Verdict::Differs, Some(mechanism)) = (verdict, &outcome.mechanism) {
            append(&mut note, mechanism);
        }
        ItemReport {
            id: item.id.to_owned(),
            paper: item.paper().to_owned(),
            verdict,
            order: outcome.measured.iter().map(|(name, _)| name.clone()).collect(),
            measured: outcome.measured.into_iter().collect(),
            bounds: outcome.bounds,
            paper_says: item.paper_says.to_owned(),
            note,
            figures: outcome.figures,
        }
    }

    /// An item that nothing was found about.
    pub fn not_yet(item: &Item, note: impl Into<String>) -> Self {
        ItemReport { note: note.into(), ..ItemReport::new(item, Outcome::new()) }
    }
}

fn append(note: &mut String, sentence: &str) {
    if !note.is_empty() {
        note.push(' ');
    }
    note.push_str(sentence);
}

fn describe(bound: &Bound, outcome: &Outcome) -> String {
    let value = outcome.value(&bound.name).unwrap_or(f64::NAN);
    format!("{} is {} ({})", bound.name, number(value), range(bound))
}

/// A bound's range in words.
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

    /// One line an item and a sum, for a terminal.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let width = self.items.iter().map(|item| item.id.len()).max().unwrap_or(0);
        for item in &self.items {
            let (id, verdict) = (&item.id, item.verdict);
            let _ = writeln!(text, "{id:width$}  {verdict:10}  {}", first_line(item));
        }
        let _ = writeln!(
            text,
            "\n{} reproduced, {} differ, {} not yet",
            self.count(Verdict::Reproduced),
            self.count(Verdict::Differs),
            self.count(Verdict::NotYet)
        );
        text
    }
}

/// The bounded figures of an item that is checked, the note of one that is not.
fn first_line(item: &ItemReport) -> String {
    const MOST: usize = 4;
    let shown = item.bounds.iter().take(MOST).map(|bound| {
        let value = item.measured.get(&bound.name).map_or(f64::NAN, |measure| measure.mean);
        format!("{} {} ({})", bound.name, number(value), range(bound))
    });
    let mut line = shown.collect::<Vec<_>>().join(", ");
    if item.bounds.len() > MOST {
        let _ = write!(line, ", and {} more", item.bounds.len() - MOST);
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
        outcome.bounded("goodput", Measure::of(&[1.0, 2.0]), 1.0, None);
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
    fn a_broken_bound_is_named_in_the_note() {
        let mut outcome = Outcome::new();
        outcome.bounded("ratio", Measure::exact(0.5), 1.0, None);
        let item = catalogue::find("mplot-fig3").unwrap();
        let report = ItemReport::new(item, outcome.clone());
        assert_eq!(report.verdict, Verdict::NotYet);
        assert!(report.note.contains("ratio is 0.5 (at least 1)"), "{}", report.note);
        outcome.explain("Without X it is 1.2.");
        let report = ItemReport::new(item, outcome);
        assert_eq!(report.verdict, Verdict::Differs);
        assert!(report.note.contains("Without X"), "{}", report.note);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(0.0, "0"), (35.0, "35"), (2.75, "2.75"), (1234.5, "1234"), (1e-12, "1.00e-12")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(f64::NAN), "not measured");
    }
}
