//! A fixed share of repairs for every block, whatever the losses. It is for measurements, and for
//! links whose loss is known in advance.

use crate::redundancy::{BlockShape, RedundancyPolicy, RedundancyView};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{BlockView, MAX_PATHS};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "fixed",
    summary: "a fixed share of repairs with every block, then on deficit",
    source: "block codes of a fixed rate",
    options: &[
        option("share", "repairs for each source symbol", "0.05"),
        option("sources", "source symbols in a block, at most", "100"),
        option("symbol", "payload of a symbol, bytes, at most", "65535"),
        option("together", "symbols that may share a packet, 1 to 64", "1"),
    ],
};

/// Blocks of a fixed number of symbols and a fixed share of repairs.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    share: f64,
    sources: u16,
    symbol: u16,
    together: u16,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    Ok(Box::new(Fixed {
        share: options.real("share", 0.0..=10.0)?,
        sources: options.integer("sources", 1..=1024)? as u16,
        symbol: options.integer("symbol", 64..=65535)? as u16,
        together: options.integer("together", 1..=64)? as u16,
    }))
}

impl Fixed {
    /// Repairs of a block of `sources` symbols, rounded up, so that a short block gets at least
    /// one.
    fn repairs(&self, sources: u16) -> u16 {
        (f64::from(sources) * self.share).ceil() as u16
    }
}

impl RedundancyPolicy for Fixed {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        // Half of the codeword is left for repairs, or more if the share requires more.
        let most = f64::from(view.max_symbols) / (1.0 + self.share.max(1.0));
        let sources = self.sources.min(most as u16).min(view.max_symbols).max(1);
        BlockShape { sources, symbol_size: view.max_symbol_size.min(self.symbol) }
    }

    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        self.repairs(block.sources).min(view.max_symbols.saturating_sub(block.sources))
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
