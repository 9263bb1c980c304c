//! LATE: the slowest path carries the data after that which the faster paths are expected to
//! deliver until its packets arrive. The expectation is the mean over all possible losses.

use core::time::Duration;

use crate::analysis::rounds::{Forecast, Forecaster, Reading};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::scheduler::shares::{Expectation, Shares, SharesOptions};
use crate::scheduler::{Scheduler, unblock};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "late",
    summary: "the slowest path carries what comes after the faster paths' expected deliveries",
    source: "Yang et al. 2021 (LATE), algorithm 1 and eqs 1–23",
    options: &[
        option("reading", "of the equations: model, or literal as they are printed", "model"),
        SharesOptions::WINDOW,
        SharesOptions::SPARE,
        SharesOptions::ARRIVAL,
        unblock::OPTION,
    ],
};

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let readings = [("model", Reading::Model), ("literal", Reading::Literal)];
    let forecaster = Forecaster::pruning(options.choice("reading", &readings)?);
    unblock::wrap(options, Shares::new(forecaster, SharesOptions::read(options)?))
}

impl Expectation for Forecaster {
    /// N(T, w, s), the mean.
    fn packets(&mut self, path: &Forecast, time: Duration, window: u32, ssthresh: u32) -> f64 {
        self.packets(path, time, window, ssthresh)
    }
}
