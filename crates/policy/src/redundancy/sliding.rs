//! Sends a repair of the newest symbols after every few symbols.
//!
//! The rate of repairs is fixed or automatic. The automatic rate follows the loss: the repairs of a
//! round trip's symbols replace their losses except with a small probability. Symbols still missing
//! after a round trip are repaired or sent again in any case.

use crate::code::Coverage;
use crate::redundancy::equations::{k_min, redundancy};
use crate::redundancy::interval::Interval;
use crate::redundancy::{BlockShape, RedundancyPolicy, RedundancyView};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{BlockView, MAX_PATHS, SymbolId, TrafficClass};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "sliding",
    summary: "a repair of the newest symbols after every few; needs a code that slides",
    source: "RFC 8681 §3.1; the automatic rate is ours",
    options: &[
        option(
            "every",
            "symbols after which a repair follows, 1 to 255, or auto, by the loss",
            "10",
        ),
        option("reach", "newest symbols that it covers, 1 to 255", "64"),
        option("sources", "symbols that are accounted for together, 1 to 255", "64"),
        option("symbol", "payload of a symbol, bytes, at most", "65535"),
        option("together", "symbols that may share a packet, 1 to 64", "1"),
    ],
};

/// How many of the newest symbols a repair covers by default.
const REACH: u16 = 64;
/// Chance that the repairs of a round trip's symbols do not suffice, at the automatic rate. Bulk data then waits for a
/// second round, which is cheaper than further repairs.
const BULK_FAILURE: f64 = 0.1;
/// Chance that the repairs do not suffice, at the automatic rate, for classes other than bulk.
const URGENT_FAILURE: f64 = 0.005;
/// Most repairs per symbol at the automatic rate.
const MOST_REPAIRS: u16 = 3;
/// Weight of the newest interval between symbols in the smoothed one.
const GAIN: f64 = 1.0 / 16.0;

/// The rate of repairs.
#[derive(Clone, Copy, Debug)]
enum Rate {
    /// One repair for this many symbols.
    Every(u16),
    /// A rate computed from the loss.
    Automatic(Automatic),
}

/// Sends repairs at a rate, so that a loss is repaired some symbols later, whatever the round-trip
/// time.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    rate: Rate,
    reach: u16,
    sources: u16,
    symbol: u16,
    together: u16,
    /// Repairs due for the symbols sent so far, minus the repairs sent. The number is negative
    /// after the last symbols of the data have got their repair early.
    owed: f64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    let every = options.integer_unless("every", "auto", 1..=255)?;
    Ok(Box::new(Sliding {
        rate: every
            .map_or(Rate::Automatic(Automatic::default()), |every| Rate::Every(every as u16)),
        reach: options.integer("reach", 1..=255)? as u16,
        sources: options.integer("sources", 1..=255)? as u16,
        symbol: options.integer("symbol", 64..=65535)? as u16,
        together: options.integer("together", 1..=64)? as u16,
        owed: 0.0,
    }))
}

impl Sliding {
    /// Makes the policy with the automatic rate and the defaults of the other options.
    pub(super) fn automatic() -> Self {
        Sliding {
            rate: Rate::Automatic(Automatic::default()),
            reach: REACH,
            sources: REACH,
            symbol: u16::MAX,
            together: 1,
            owed: 0.0,
        }
    }
}

/// The rate that follows the loss, and the interval between symbols from which it is computed.
#[derive(Clone, Copy, Debug, Default)]
struct Automatic {
    /// Repairs for each symbol.
    share: f64,
    /// Time from one symbol to the next.
    interval: Interval,
}

impl Automatic {
    /// How many symbols leave before the fate of the first of them is known, at most the reach of a
    /// repair.
    fn round(&self, reach: u16, view: &RedundancyView<'_>) -> u16 {
        let round = view.quickest_round().as_secs_f64();
        let interval = self.interval.smoothed();
        let symbols = interval.map_or(1.0, |interval| round / interval.as_secs_f64());
        (symbols as u16).clamp(1, reach)
    }

    fn choose(&mut self, reach: u16, view: &RedundancyView<'_>) {
        let (loss, failure) = match view.class {
            TrafficClass::Bulk => (view.loss.mean, BULK_FAILURE),
            _ => (view.worst_loss(), URGENT_FAILURE),
        };
        let symbols = self.round(reach, view);
        let most = symbols.saturating_mul(MOST_REPAIRS);
        let repairs = k_min(symbols, loss, failure, most);
        self.share = f64::from(repairs) / f64::from(symbols);
    }
}

impl Rate {
    fn share(&self) -> f64 {
        match self {
            Rate::Every(symbols) => 1.0 / f64::from(*symbols),
            Rate::Automatic(automatic) => automatic.share,
        }
    }
}

impl Sliding {
    /// Subtracts whole repairs from those owed, and returns their number. A sum of shares may be
    /// slightly below a whole number because of rounding.
    fn pay(&mut self) -> u16 {
        let repairs = (self.owed + 1e-6).max(0.0) as u16;
        self.owed -= f64::from(repairs);
        repairs
    }
}

impl RedundancyPolicy for Sliding {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        if let Rate::Automatic(automatic) = &mut self.rate {
            automatic.choose(self.reach, view);
        }
        let sources = self.sources.min(view.max_symbols).max(1);
        BlockShape { sources, symbol_size: view.max_symbol_size.min(self.symbol) }
    }

    /// The last symbols of the data get a repair even if none is due yet. This is the next repair
    /// sent early, so that an application that writes symbol by symbol does not cause a repair for
    /// each symbol.
    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        let room = view.max_symbols.saturating_sub(block.sources);
        if !view.flushing || self.owed < 1e-6 || room == 0 {
            return 0;
        }
        self.owed -= 1.0;
        1
    }

    fn after_source(&mut self, _block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        if let Rate::Automatic(automatic) = &mut self.rate {
            automatic.interval.on_event(view.now, GAIN);
        }
        self.owed += self.rate.share();
        self.pay()
    }

    fn coverage(&self, block: &BlockView) -> Coverage {
        let end = block.first.0 + u64::from(block.sources);
        let first = end.saturating_sub(self.reach.into());
        Coverage { first: SymbolId(first), count: (end - first) as u16 }
    }

    fn symbols_per_packet(&self) -> u16 {
        self.together
    }

    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        let handed = hypothetical.iter().fold(0_u16, |sum, n| sum.saturating_add(*n));
        let missing = block.shortfall().saturating_sub(handed);
        match self.rate {
            Rate::Every(_) => missing,
            // Some of these symbols will be lost too.
            Rate::Automatic(_) => {
                let more = f64::from(missing) * redundancy(view.loss.mean);
                missing.saturating_add((more + 0.5) as u16)
            }
        }
    }
}
