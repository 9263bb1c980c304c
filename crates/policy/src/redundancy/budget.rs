//! Automatic redundancy within a byte budget.
//!
//! A repair that is sent before it is known to be needed either saves its block a second round or
//! is wasted. A bulk block gets another repair as long as few are wasted for each round saved. If a
//! round trip matters more (at the end of the data, or for a block that has already waited a round
//! trip), more may be wasted, but all wasted repairs stay within a share of the data. A block of an
//! urgent class gets enough repairs to make a second round improbable.
//!
//! Live data has its own sliding window if the peer offers one ([`Sliding`]). Otherwise, a block of
//! live data that arrives little by little stays open for a part of a round trip, so that several
//! symbols share its repairs.

use anabranch_types::{Time, math};
use core::time::Duration;

use crate::code::Coverage;
use crate::redundancy::equations::k_min;
use crate::redundancy::interval::Interval;
use crate::redundancy::sliding::Sliding;
use crate::redundancy::{BlockShape, RedundancyPolicy, RedundancyView, whole};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{BlockView, LossView, MAX_PATHS, TrafficClass};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "budget",
    summary: "repairs by urgency, the wasted ones within a share of the data",
    source: "own; block size cap as in the reading of MPLOT's 255 limit",
    options: &[
        option("overhead", "wasted repairs over data, at most", "0.2"),
        option("sources", "source symbols in a bulk block, at most", "128"),
        option("urgent-failure", "chance that an urgent block needs a further round", "0.005"),
        option("linger", "round trips that a live block waits for more data, at most", "0.33"),
        option("live", "sliding: live data has a sliding window of its own; or blocks", "sliding"),
    ],
};

/// Least number of source symbols in a bulk block, while there is data.
const LEAST_SOURCES: u16 = 3;
/// The longest time in which a bulk block fills, in round trips of the slowest path. A larger block
/// delays the repairs of its losses, which cannot be made before it closes; a smaller one needs
/// more repairs for its size.
const BLOCK_ROUNDS: f64 = 1.5;
/// Least number of source symbols in a block of an urgent class, while there is data.
const URGENT_SOURCES: u16 = 16;
/// Weight of the newest pause in the smoothed one.
const GAIN: f64 = 0.125;
/// Most repairs per source symbol of a live block.
const LIVE_REPAIRS: u16 = 3;
/// Most repairs per source symbol of an interactive block. Interactive messages are short: with
/// half of the packets lost, a single symbol needs seven repairs to keep the chance of a further
/// round within 0.005.
const INTERACTIVE_REPAIRS: u16 = 7;
/// Largest loss for which repairs are provided.
const MAX_LOSS: f64 = 0.9;
/// Most repairs of a block.
const MAX_REPAIRS: u16 = 255;
/// Share of the variance of observed loss that is attributed to changes of the loss rate and not to
/// chance.
const CHANGE: f64 = 0.25;
/// A full block's repairs must cover the mean number of losses plus this many standard deviations;
/// one block in a thousand has too few.
const COVERED_DEVIATIONS: f64 = 3.0;
/// Repairs that may be wasted for each second round that they spare a bulk block.
const ROUND_WORTH: f64 = 5.0;
/// Repairs that may be wasted for each second round spared at the end of the data, for a block that
/// has been open for more than a round trip (later blocks wait for it), and for reactive repairs of
/// urgent classes.
const LATE_ROUND_WORTH: f64 = 20.0;

/// Redundancy within a byte budget; the module's documentation describes it.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    overhead: f64,
    sources: u16,
    urgent_failure: f64,
    /// Round trips of the quickest path for which a live block stays open. A loss is repaired later
    /// by that time, which is still sooner than after a report of the loss. Interactive blocks
    /// close as soon as no data waits.
    linger: f64,
    /// Smoothed time between moments at which no live data waits.
    pauses: Interval,
    /// Repairs of live data that has a sliding window.
    sliding: Sliding,
    /// Whether live data is to have a sliding window.
    separates_live: bool,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    Ok(Box::new(Budget {
        overhead: options.real("overhead", 0.0..=10.0)?,
        sources: options.integer("sources", 1..=255)? as u16,
        urgent_failure: options.real("urgent-failure", 1e-9..=0.5)?,
        linger: options.real("linger", 0.0..=4.0)?,
        pauses: Interval::default(),
        sliding: Sliding::automatic(),
        separates_live: options.choice("live", &[("sliding", true), ("blocks", false)])?,
    }))
}

impl Budget {
    /// Most sources of a block that leave room for enough repairs.
    fn cap(&self, view: &RedundancyView<'_>) -> u16 {
        let loss = (view.loss.mean + view.loss.deviation).clamp(0.0, MAX_LOSS);
        let total = u64::from(view.max_symbols);
        let spread = math::sqrt(total as f64 * loss * (1.0 - loss));
        let spare = if loss > 0.0 { COVERED_DEVIATIONS * spread + 2.0 } else { 0.0 };
        let cap = total as f64 * (1.0 - loss) - spare;
        (cap as u16).clamp(8, view.max_symbols)
    }

    /// How many repairs may still be wasted: `overhead` · (sources sent + 64), minus those already
    /// wasted.
    fn allowance(&self, view: &RedundancyView<'_>) -> f64 {
        let budget = self.overhead * (view.sources_sent + 64) as f64;
        (budget - view.repairs_unneeded as f64).max(0.0)
    }

    /// How many repairs are worth sending beyond the `coming` symbols, which are in flight or will
    /// be sent.
    fn reserve(
        &self,
        block: &BlockView,
        coming: u16,
        worth: f64,
        view: &RedundancyView<'_>,
    ) -> u16 {
        let surplus = coming.saturating_sub(block.deficit());
        let wanted = repairs_worth(worth, need(block, coming, view)).saturating_sub(surplus);
        wanted.min(self.allowance(view) as u16)
    }

    /// How many repairs an urgent block needs so that the chance of a further round is at most the
    /// one allowed.
    fn urgent_repairs(&self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        let most = match block.class {
            TrafficClass::Interactive => INTERACTIVE_REPAIRS,
            _ => LIVE_REPAIRS,
        };
        let most = block.sources.saturating_mul(most);
        k_min(block.sources, view.worst_loss().min(MAX_LOSS), self.urgent_failure, most)
    }
}

/// Mean and variance of the number of symbols needed to replace losses among symbols in flight or
/// still to be sent. Replacements that are lost too are included.
fn need(block: &BlockView, coming: u16, view: &RedundancyView<'_>) -> (f64, f64) {
    let mut rest = coming;
    let (mut lost, mut change) = (0.0, 0.0);
    let mut add = |symbols: u16, loss: LossView| {
        let symbols = f64::from(symbols);
        lost += symbols * loss.mean.clamp(0.0, MAX_LOSS);
        change += symbols * symbols * loss.deviation * loss.deviation;
    };
    for path in view.paths {
        let here = block.in_flight_by(path).min(rest);
        rest -= here;
        add(here, path.loss);
    }
    add(rest, view.loss);
    let arriving = 1.0 - view.loss.mean.clamp(0.0, MAX_LOSS);
    let mean = lost / arriving;
    (mean, (mean + CHANGE * change / arriving) / arriving)
}

/// The largest number of repairs k whose last repair wastes at most `worth` repairs for each second
/// round that it spares. This ratio is P(need < k) / P(need = k) and rises with k. The need is
/// assumed to be negative binomial, as it is with independent losses.
fn repairs_worth(worth: f64, (mean, variance): (f64, f64)) -> u16 {
    if mean <= 0.0 {
        return 0;
    }
    let variance = variance.max(mean);
    // P(k + 1) / P(k) = (first + k * growth) / (k + 1).
    let (first, growth) = (mean * mean / variance, 1.0 - mean / variance);
    let mut wasted = 0.0;
    let mut repairs = 0;
    while repairs < MAX_REPAIRS {
        let k = f64::from(repairs);
        wasted = (wasted + 1.0) * (k + 1.0) / (first + k * growth);
        if wasted > worth {
            break;
        }
        repairs += 1;
    }
    repairs
}

fn longest_round(view: &RedundancyView<'_>) -> Duration {
    view.usable().map(|path| path.rtt.smoothed).max().unwrap_or_default()
}

/// How many source symbols arrive within this many round trips.
fn sources_within(rounds: f64, round: Duration, view: &RedundancyView<'_>) -> u16 {
    let bytes: f64 = view
        .usable()
        .map(|path| path.rate.bytes_in(round) as f64 * (1.0 - path.loss.mean.clamp(0.0, MAX_LOSS)))
        .sum();
    (rounds * bytes / f64::from(view.max_symbol_size.max(1))) as u16
}

/// Whether the data is live and has a sliding window.
fn is_sliding(view: &RedundancyView<'_>) -> bool {
    view.slides && view.class == TrafficClass::Live
}

impl RedundancyPolicy for Budget {
    fn separates_live(&self) -> bool {
        self.separates_live
    }

    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        if is_sliding(view) {
            return self.sliding.next_block(view);
        }
        let sources = match view.class {
            TrafficClass::Bulk => {
                let within = sources_within(BLOCK_ROUNDS, longest_round(view), view);
                self.sources.min(self.cap(view)).min(within.max(LEAST_SOURCES))
            }
            TrafficClass::Live => {
                let most = self.sources.min(self.cap(view)).max(URGENT_SOURCES);
                sources_within(self.linger, view.quickest_round(), view).clamp(URGENT_SOURCES, most)
            }
            TrafficClass::Interactive => URGENT_SOURCES,
        };
        let sources = sources.min(view.max_symbols).max(1);
        BlockShape { sources, symbol_size: view.max_symbol_size }
    }

    /// A live block stays open if more data is expected soon, so that several symbols share repairs.
    fn open_until(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> Time {
        if block.class != TrafficClass::Live || is_sliding(view) {
            return view.now;
        }
        let until = block.opened + view.quickest_round().mul_f64(self.linger);
        self.pauses.on_event(view.now, GAIN);
        let next = self.pauses.smoothed().map(|pause| view.now + pause);
        if next.is_some_and(|next| next <= until) { until } else { view.now }
    }

    fn after_source(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        if is_sliding(view) { self.sliding.after_source(block, view) } else { 0 }
    }

    fn coverage(&self, block: &BlockView) -> Coverage {
        match block.class {
            TrafficClass::Live => self.sliding.coverage(block),
            TrafficClass::Bulk | TrafficClass::Interactive => whole(block),
        }
    }

    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        if is_sliding(view) {
            return self.sliding.proactive(block, view);
        }
        let room = view.max_symbols.saturating_sub(block.sources);
        let wanted = match block.class {
            TrafficClass::Bulk => {
                let worth = if view.flushing { LATE_ROUND_WORTH } else { ROUND_WORTH };
                self.reserve(block, block.deficit(), worth, view)
            }
            _ => self.urgent_repairs(block, view),
        };
        wanted.min(room)
    }

    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        if is_sliding(view) {
            return self.sliding.still_needed(block, hypothetical, view);
        }
        let handed = hypothetical.iter().fold(0_u16, |sum, n| sum.saturating_add(*n));
        let certain = block.shortfall().saturating_sub(handed);
        let urgent = view.flushing || block.class != TrafficClass::Bulk;
        // At an acknowledgement without a loss, fewer symbols are unresolved than when the reserve was computed.
        if block.deficit() == 0 || (certain == 0 && !urgent) {
            return certain;
        }
        let late = view.now.since(block.opened) > longest_round(view);
        let worth = if urgent || late { LATE_ROUND_WORTH } else { ROUND_WORTH };
        let coming = block.in_flight + block.due + block.proactive_left + handed + certain;
        certain.saturating_add(self.reserve(block, coming, worth, view))
    }
}
