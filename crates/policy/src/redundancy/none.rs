//! No redundancy: blocks are plain runs of symbols, and losses are sent again.

use crate::redundancy::{BlockShape, RedundancyPolicy, RedundancyView};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{BlockView, MAX_PATHS};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "none",
    summary: "no repairs; a block is a run of symbols",
    source: "uncoded transports",
    options: &[option("sources", "symbols in a block", "64")],
};

/// Blocks of a fixed number of symbols and no repairs.
#[derive(Clone, Copy, Debug)]
pub struct NoRedundancy {
    sources: u16,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    let sources = options.integer("sources", 1..=65_535)? as u16;
    Ok(Box::new(NoRedundancy { sources }))
}

impl RedundancyPolicy for NoRedundancy {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        BlockShape {
            sources: self.sources.min(view.max_symbols).max(1),
            symbol_size: view.max_symbol_size,
        }
    }

    fn proactive(&mut self, _block: &BlockView, _view: &RedundancyView<'_>) -> u16 {
        0
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
