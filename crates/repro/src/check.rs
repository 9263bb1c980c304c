//! Which items can be checked, and how.

use anabranch_sim::scenario::Published;

use crate::experiments;
use crate::formula;
use crate::outcome::Outcome;

/// An item that is computed from a formula.
#[derive(Debug)]
pub struct Formula {
    /// Identifier of the item, such as `late-fig1`.
    pub id: &'static str,
    title: &'static str,
    source: &'static str,
    paper: &'static str,
    compute: fn() -> Outcome,
}

impl Formula {
    /// Computes the item's result.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = (self.compute)();
        let note = core::mem::take(&mut outcome.published.note);
        let [item, title, source, paper] =
            [self.id, self.title, self.source, self.paper].map(str::to_owned);
        outcome.published = Published { item, title, source, paper, note, ..Published::default() };
        outcome
    }
}

/// The formula of an item, if it has one.
pub fn formula(id: &str) -> Option<&'static Formula> {
    FORMULAS.iter().find(|formula| formula.id == id)
}

/// Status of an item without a checker.
pub const NOT_YET: &str = "not-yet";

/// How an item is checked, in a word: `formula`, `simulation` or [`NOT_YET`].
pub fn status(id: &str) -> &'static str {
    if formula(id).is_some() {
        "formula"
    } else if experiments::of_item(id).next().is_some() {
        "simulation"
    } else {
        NOT_YET
    }
}

const FORMULAS: [Formula; 9] = [
    Formula {
        id: "mplot-tab2",
        title: "Repairs that a block needs for a given chance of failure",
        source: "Table II",
        paper: "α(ε) is 1.28, 1.20, 1.12, 1.08 and 1.00 for ε = .01, .1, .2, .3 and .5",
        compute: formula::mplot::table_ii,
    },
    Formula {
        id: "mplot-gpx",
        title: "Goodput against the share of repairs",
        source: "Equation 8",
        paper: "goodput never rises with repairs, is flat at first, and falls beyond p/(1 − p)",
        compute: formula::mplot::goodput_shape,
    },
    Formula {
        id: "mplot-fig3-sd",
        title: "How much the loss of several paths together varies",
        source: "§IV-A",
        paper: "the deviation of the aggregate loss is .132 on one path and .067 on four",
        compute: formula::mplot::volatility,
    },
    Formula {
        id: "fmtcp-bmin",
        title: "Receive buffer that keeps a connection sending through a timeout",
        source: "Equation 2",
        paper: "more than 100 MB for paths of 54 and 300 Mb/s",
        compute: formula::fmtcp::least_buffer,
    },
    Formula {
        id: "fmtcp-lstar",
        title: "Extra packets that cover the losses of a window",
        source: "Equation 4",
        paper: "one up to 5 % loss, two at 10 %",
        compute: formula::fmtcp::least_extra,
    },
    Formula {
        id: "fmtcp-thm2",
        title: "Which path carries the symbols that replace lost ones",
        source: "Theorem 2",
        paper: "never to a path that is expected to deliver later",
        compute: formula::fmtcp::destinations,
    },
    Formula {
        id: "fmtcp-thm4",
        title: "Delivery time of a symbol whose loss may be repaired on the better path",
        source: "Theorem 4",
        paper: "bounded by equation 16, where a retransmission on its own path takes m times as long",
        compute: formula::fmtcp::delivery_ratio,
    },
    Formula {
        id: "late-fig1",
        title: "An in-order plan over two paths, and one loss that upsets it",
        source: "Figure 1",
        paper: "11 packets for the fast subflow and 5 for the slow one; one loss breaks the order",
        compute: formula::late::plan,
    },
    Formula {
        id: "ptcp-fig10",
        title: "The bandwidth fluctuation that pTCP is tested with",
        source: "Figure 10",
        paper: "every second a new rate between 20 % and 100 %, in steps of 10 %",
        compute: formula::ptcp::fluctuation,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::outcome::Verdict;

    #[test]
    fn what_follows_from_formulas_is_reproduced() {
        for formula in &FORMULAS {
            let id = formula.id;
            catalogue::find(id).unwrap();
            let outcome = formula.outcome();
            assert_eq!(outcome.verdict(), Verdict::Reproduced, "{id}: {outcome:?}");
            assert!(!outcome.published.note.is_empty(), "{id}");
        }
    }
}
