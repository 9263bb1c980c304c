//! A repair of the newest symbols after every few of them.

use crate::code::Coverage;
use crate::redundancy::{BlockShape, RedundancyPolicy, RedundancyView};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{BlockView, MAX_PATHS, SymbolId};

/// Its entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "sliding",
    summary: "a repair of the newest symbols after every few; needs a code that slides",
    source: "RFC 8681 §3.1",
    options: &[
        option("every", "symbols after which a repair follows, 1 to 255", "10"),
        option("reach", "newest symbols that it covers, 1 to 255", "64"),
        option("sources", "symbols that are accounted for together, 1 to 255", "64"),
        option("symbol", "payload of a symbol, bytes, at most", "65535"),
        option("together", "symbols that may share a packet, 1 to 64", "1"),
    ],
};

/// Repairs at a fixed rate, so that a loss is repaired some symbols later whatever the round-trip time.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    every: u16,
    reach: u16,
    sources: u16,
    symbol: u16,
    together: u16,
    /// Symbols since the last repair; less than none where the last symbols of the data got theirs early.
    since: i32,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    Ok(Box::new(Sliding {
        every: options.integer("every", 1..=255)? as u16,
        reach: options.integer("reach", 1..=255)? as u16,
        sources: options.integer("sources", 1..=255)? as u16,
        symbol: options.integer("symbol", 64..=65535)? as u16,
        together: options.integer("together", 1..=64)? as u16,
        since: 0,
    }))
}

impl RedundancyPolicy for Sliding {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        let sources = self.sources.min(view.max_symbols).max(1);
        BlockShape { sources, symbol_size: view.max_symbol_size.min(self.symbol) }
    }

    /// What the rate leaves over: the last symbols of the data get a repair too. It is the next one's, sent
    /// early: who writes symbol by symbol always writes the last, and does not get a repair for each.
    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        let room = view.max_symbols.saturating_sub(block.sources);
        if !view.flushing || self.since <= 0 || room == 0 {
            return 0;
        }
        self.since -= i32::from(self.every);
        1
    }

    fn after_source(&mut self, _block: &BlockView, _view: &RedundancyView<'_>) -> u16 {
        self.since += 1;
        if self.since < i32::from(self.every) {
            return 0;
        }
        self.since = 0;
        1
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
        _view: &RedundancyView<'_>,
    ) -> u16 {
        let handed = hypothetical.iter().fold(0_u16, |sum, n| sum.saturating_add(*n));
        block.shortfall().saturating_sub(handed)
    }
}
