//! Which items can be checked, and how.

use crate::formula;
use crate::outcome::Outcome;
use crate::simulated::Simulated;

/// Computes what an item shows.
pub type Formula = fn() -> Outcome;

/// How an item is checked.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Computed.
    Formula(Formula),
    /// Simulated.
    Simulated(&'static Simulated),
}

/// The checker of an item; `None` if there is none yet.
pub fn check(id: &str) -> Option<Check> {
    FORMULAS
        .iter()
        .find(|(name, _)| *name == id)
        .map(|(_, formula)| Check::Formula(*formula))
        .or_else(|| crate::simulated::find(id).map(Check::Simulated))
}

/// What an item without a checker is listed as.
pub const NOT_YET: &str = "not-yet";

/// How an item is checked, in a word: `formula`, `simulation` or [`NOT_YET`].
pub fn status(id: &str) -> &'static str {
    match check(id) {
        Some(Check::Formula(_)) => "formula",
        Some(Check::Simulated(_)) => "simulation",
        None => NOT_YET,
    }
}

const FORMULAS: [(&str, Formula); 9] = [
    ("mplot-tab2", formula::mplot::table_ii),
    ("mplot-gpx", formula::mplot::goodput_shape),
    ("mplot-fig3-sd", crate::simulated::mplot::diversity::volatility),
    ("fmtcp-bmin", formula::fmtcp::least_buffer),
    ("fmtcp-lstar", formula::fmtcp::least_extra),
    ("fmtcp-thm4", formula::fmtcp::delivery_ratio),
    ("late-fig1", formula::late::plan),
    ("ptcp-fig10", formula::ptcp::fluctuation),
    ("ptcp-buffer", formula::ptcp::striping),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::outcome::Verdict;

    #[test]
    fn every_checker_is_of_an_item() {
        for (id, _) in FORMULAS {
            catalogue::find(id).unwrap();
        }
    }

    #[test]
    fn what_follows_from_formulas_is_reproduced() {
        for (id, formula) in FORMULAS {
            let outcome = formula();
            let broken: Vec<_> = outcome.broken().collect();
            println!("{id}: {:?}", outcome.measured);
            // Its other half is simulated.
            let expected = if id == "ptcp-buffer" { Verdict::NotYet } else { Verdict::Reproduced };
            assert_eq!(outcome.verdict(), expected, "{id}: {broken:?} {outcome:?}");
            assert!(!outcome.note.is_empty(), "{id}");
        }
    }
}
