//! LATE: the slowest path carries data beyond what the faster ones are expected to deliver until its packets arrive, in
//! the mean over all that may happen to them.

use core::time::Duration;

use crate::analysis::rounds::{Forecast, Forecaster, Reading};
use crate::registry::{Entry, OptionEntry, Options, PolicyError, option};
use crate::scheduler::shares::{Expectation, Shares};
use crate::scheduler::{Scheduler, unblock};

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    name: "late",
    summary: "the slowest path carries what comes after the faster paths' expected deliveries",
    source: "Yang et al. 2021 (LATE), algorithm 1 and eqs 1–23",
    options: &[
        option("reading", "of the equations: model, or literal as they are printed", "model"),
        SPARE,
        unblock::OPTION,
    ],
};

/// The option of all schedulers that plan shares.
pub(super) const SPARE: OptionEntry =
    option("spare", "a fast path that has sent its share: send more, or wait", "send");

/// The value of [`SPARE`].
pub(super) fn goes_on(options: &Options<'_>) -> Result<bool, PolicyError> {
    options.choice("spare", &[("send", true), ("wait", false)])
}

/// Makes it from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let readings = [("model", Reading::Model), ("literal", Reading::Literal)];
    let forecaster = Forecaster::pruning(options.choice("reading", &readings)?);
    unblock::wrap(options, Shares::new(forecaster, goes_on(options)?))
}

impl Expectation for Forecaster {
    /// N(T, w, s), the mean.
    fn packets(&mut self, path: &Forecast, time: Duration, window: u32, ssthresh: u32) -> f64 {
        self.packets(path, time, window, ssthresh)
    }
}
