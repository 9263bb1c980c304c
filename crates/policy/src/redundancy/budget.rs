//! Automatic redundancy within a byte budget.
//!
//! Bulk windows get the repairs that they will need on average, and the rest when losses are known:
//! little is wasted. Where a round trip matters (urgent classes, the end of the data, a window
//! that has waited long), repairs are sent for the loss that may come, as long as those that turn out
//! not to be needed stay within a share of the data.

use anabranch_types::math;
use core::time::Duration;

use crate::redundancy::{RedundancyPolicy, RedundancyView, WindowShape};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{LossView, MAX_PATHS, TrafficClass, WindowView};

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    axis: "redundancy",
    name: "budget",
    summary: "repairs by urgency, the wasted ones within a share of the data",
    source: "own; block size cap as in the reading of MPLOT's 255 limit",
    options: &[
        option("overhead", "wasted repairs over data, at most", "0.2"),
        option("sources", "source symbols in a bulk window, at most", "128"),
        option("urgent-failure", "chance that an urgent window needs a further round", "0.005"),
    ],
};

/// Source symbols in a bulk window, at least, while there is data.
const LEAST_SOURCES: u16 = 3;
/// Longest round trips in which a bulk window fills up, at most.
const WINDOW_ROUNDS: f64 = 1.5;
/// Source symbols in a window of an urgent class: it closes as soon as nothing more waits.
const URGENT_SOURCES: u16 = 16;
/// Repairs for each source symbol of an urgent window, at most.
const URGENT_REPAIRS: u16 = 3;
/// Loss beyond this is not provided for.
const MAX_LOSS: f64 = 0.9;
/// Deviations of the number of losses that a full window's repairs must cover: one window in a thousand
/// runs out.
const COVERED_DEVIATIONS: f64 = 3.0;
/// Round trips after which a bulk window becomes urgent.
const PATIENCE: u32 = 1;

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    overhead: f64,
    sources: u16,
    urgent_failure: f64,
}

/// Makes it from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    Ok(Box::new(Budget {
        overhead: options.real("overhead", 0.0..=10.0)?,
        sources: options.integer("sources", 1..=255)? as u16,
        urgent_failure: options.real("urgent-failure", 1e-9..=0.5)?,
    }))
}

impl Budget {
    /// Most sources of a window whose repairs should not run out.
    fn cap(&self, view: &RedundancyView<'_>) -> u16 {
        let loss = (view.loss.mean + view.loss.deviation).clamp(0.0, MAX_LOSS);
        let total = u64::from(view.max_symbols);
        let spread = math::sqrt(total as f64 * loss * (1.0 - loss));
        let spare = if loss > 0.0 { COVERED_DEVIATIONS * spread + 2.0 } else { 0.0 };
        let cap = total as f64 * (1.0 - loss) - spare;
        (cap as u16).clamp(8, view.max_symbols)
    }

    /// Repairs that may still be wasted, counting half of those just planned as wasted.
    fn allowance(&self, view: &RedundancyView<'_>) -> f64 {
        let budget = self.overhead * (view.sources_sent + 64) as f64;
        (budget - view.repairs_unneeded as f64).max(0.0)
    }

    /// Least k such that more than k of n + k symbols are lost with at most the urgent failure chance.
    fn repairs_for(&self, sources: u16, view: &RedundancyView<'_>) -> u16 {
        // Urgent symbols go to the quickest path, which may be the worst.
        let worst = view.paths.iter().filter(|path| path.usable()).map(|path| path.loss.mean);
        let spread = view.loss.mean + view.loss.deviation / 2.0;
        let p = worst.fold(spread, f64::max).clamp(0.0, MAX_LOSS);
        let most = sources.saturating_mul(URGENT_REPAIRS);
        (0..most)
            .find(|k| {
                let n = u64::from(sources + k);
                let arrived_enough = 1.0 - math::binomial_below(n, 1.0 - p, u64::from(sources));
                arrived_enough >= 1.0 - self.urgent_failure
            })
            .unwrap_or(most)
    }
}

/// Mean and deviation of the number of repairs that `sources` symbols need at this loss.
fn expected_need(sources: f64, loss: LossView) -> (f64, f64) {
    let p = loss.mean.clamp(0.0, MAX_LOSS);
    let mean = sources * p / (1.0 - p);
    let by_chance = sources * p / ((1.0 - p) * (1.0 - p));
    let by_change = sources * loss.deviation / ((1.0 - p) * (1.0 - p));
    (mean, math::sqrt(by_chance + by_change * by_change))
}

fn longest_round(view: &RedundancyView<'_>) -> Duration {
    let usable = view.paths.iter().filter(|path| path.usable());
    usable.map(|path| path.rtt.smoothed).max().unwrap_or_default()
}

/// Source symbols that arrive within [`WINDOW_ROUNDS`]: a larger window would keep its losses waiting for
/// repairs, which cannot be made before it closes, and a smaller one needs more repairs for its size.
fn round_of_sources(view: &RedundancyView<'_>) -> u16 {
    let round = longest_round(view);
    let usable = view.paths.iter().filter(|path| path.usable());
    let bytes: f64 = usable
        .map(|path| path.rate.bytes_in(round) as f64 * (1.0 - path.loss.mean.clamp(0.0, MAX_LOSS)))
        .sum();
    let sources = WINDOW_ROUNDS * bytes / f64::from(view.max_symbol_size.max(1));
    (sources as u16).max(LEAST_SOURCES)
}

impl RedundancyPolicy for Budget {
    fn next_window(&mut self, view: &RedundancyView<'_>) -> WindowShape {
        let sources = match view.class {
            TrafficClass::Bulk => self.sources.min(self.cap(view)).min(round_of_sources(view)),
            _ => URGENT_SOURCES,
        };
        let sources = sources.min(view.max_symbols).max(1);
        WindowShape { sources, repairs: 0, symbol_size: view.max_symbol_size }
    }

    fn proactive(&mut self, window: &WindowView, view: &RedundancyView<'_>) -> u16 {
        let room = view.max_symbols.saturating_sub(window.sources);
        let wanted = match window.class {
            TrafficClass::Bulk => {
                let (mean, deviation) = expected_need(f64::from(window.sources), view.loss);
                if view.flushing {
                    let extra = (1.5 * deviation + 1.0).min(self.allowance(view));
                    if view.loss.mean > 0.0 { mean + extra } else { 0.0 }
                } else {
                    mean
                }
            }
            _ => f64::from(self.repairs_for(window.sources, view)),
        };
        (wanted.max(0.0).round() as u16).min(room)
    }

    fn still_needed(
        &self,
        window: &WindowView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        let handed = hypothetical.iter().fold(0_u16, |sum, n| sum.saturating_add(*n));
        let certain = window.shortfall().saturating_sub(handed);
        let age = view.now.since(window.opened);
        let late = age > longest_round(view) * PATIENCE;
        let urgent = late || view.flushing || window.class != TrafficClass::Bulk;
        if !urgent || window.deficit() == 0 {
            return certain;
        }
        // Of what is in flight, due and planned, only the share that survives will help.
        let loss = view.loss.mean.clamp(0.0, MAX_LOSS);
        let coming = window.in_flight + window.due + window.proactive_left + handed;
        let missing = f64::from(window.deficit()) - f64::from(coming) * (1.0 - loss);
        let wanted = (missing / (1.0 - loss)).ceil().max(0.0);
        let extra = (wanted - f64::from(certain)).clamp(0.0, self.allowance(view).floor());
        certain.saturating_add(extra as u16)
    }
}
