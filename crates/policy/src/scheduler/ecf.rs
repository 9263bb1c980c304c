//! ECF, earliest completion first: a slower path stays idle if the fastest path would finish the
//! waiting data sooner, even including the wait for it.

use anabranch_types::PathId;

use crate::registry::{Entry, Options, PolicyError, option};
use crate::scheduler::best::fastest_unless;
use crate::scheduler::unblock;
use crate::scheduler::{Pick, Pull, Scheduler};
use crate::view::{PathView, SchedulerView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "ecf",
    summary: "least RTT first; a slower path waits if the fastest finishes the rest sooner",
    source: "Lim et al. 2017, algorithm 1; the MPTCP implementation for Linux, its ecf scheduler",
    options: &[
        option("beta", "how much later it may be once waiting, as a share", "0.25"),
        unblock::OPTION,
    ],
};

/// The ECF scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Ecf {
    beta: f64,
    /// Whether slower paths currently wait for the fastest one; the threshold that ends waiting is
    /// then 1 + β times as high.
    waiting: bool,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    unblock::wrap(options, Ecf { beta: options.real("beta", 0.0..=10.0)?, waiting: false })
}

impl Ecf {
    /// Whether to wait for `fast` instead of using `slow`.
    fn waits(&mut self, slow: &PathView, fast: &PathView, view: &SchedulerView<'_>) -> bool {
        let rtt = |path: &PathView| path.rtt.smoothed.as_secs_f64();
        let waiting_data =
            f64::from(view.fresh.of_all_classes()) * f64::from(view.fresh.symbol_size);
        // Round trips in which a path sends the waiting data, at least one.
        let rounds = |path: &PathView| (waiting_data / path.cwnd.max(1) as f64).max(1.0);
        let spread = slow.rtt.variation.max(fast.rtt.variation).as_secs_f64();
        let hysteresis = if self.waiting { 1.0 + self.beta } else { 1.0 };
        if (1.0 + rounds(fast)) * rtt(fast) >= hysteresis * (rtt(slow) + spread) {
            self.waiting = false;
            return false;
        }
        if rounds(slow) * rtt(slow) < 2.0 * rtt(fast) + spread {
            return false;
        }
        self.waiting = true;
        true
    }
}

impl Scheduler for Ecf {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let yields = |slow: &PathView, fast: &PathView| self.waits(slow, fast, view);
        fastest_unless(path, view, picks, yields, "the fastest path finishes the rest sooner")
    }
}
