//! From items to verdicts.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use crate::catalogue::Item;
use crate::check::{Check, check};
use crate::pool;
use crate::report::{ItemReport, Report};
use crate::simulated::Evidence;

/// How items are reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Fewer seeds and shorter runs.
    pub quick: bool,
    /// Runs at a time; at least 1.
    pub jobs: usize,
    /// Raised by whoever wants the work to end early.
    pub cancel: &'a AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Settings<'_> {
    /// In full, one run at a time, to the end.
    fn default() -> Self {
        Settings { quick: false, jobs: 1, cancel: &NEVER }
    }
}

/// Why no report came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The work was cancelled.
    Cancelled,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl core::error::Error for Failure {}

/// Checks `items` in the order of the catalogue.
///
/// # Errors
/// If it was cancelled.
pub fn reproduce(items: &[&Item], settings: &Settings<'_>) -> Result<Report, Failure> {
    let wanted: BTreeSet<&str> = items.iter().map(|item| item.id).collect();
    let items: Vec<&Item> =
        crate::catalogue::items().iter().filter(|item| wanted.contains(item.id)).collect();
    let evidence = Evidence::default();
    let reports = pool::work(&items, settings.jobs, settings.cancel, |item| judge(item, &evidence));
    let reports: Option<Vec<ItemReport>> = reports.into_iter().collect();
    Ok(Report { items: reports.ok_or(Failure::Cancelled)? })
}

fn judge(item: &Item, evidence: &Evidence) -> ItemReport {
    match check(item.id) {
        Some(Check::Formula(formula)) => ItemReport::new(item, formula()),
        Some(Check::Simulated(simulated)) => ItemReport::new(item, (simulated.check)(evidence)),
        None => ItemReport::not_yet(item, "There is no scenario and no checker for it yet."),
    }
}
