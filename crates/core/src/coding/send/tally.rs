//! Counts the fate of each block's packets, for measurements.

use std::collections::VecDeque;

use anabranch_policy::view::{BlockId, SymbolId};

/// A recovered block, once the fate of every packet with a symbol of it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockRecord {
    /// First symbol of the block.
    pub first: SymbolId,
    /// Source symbols.
    pub sources: u16,
    /// Symbols sent, including repairs and symbols sent again.
    pub sent: u32,
    /// Symbols among `sent` that were lost.
    pub lost: u32,
}

/// The blocks whose packets are counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Blocks in order, from the oldest incomplete one on.
    blocks: VecDeque<Entry>,
    complete: Vec<BlockRecord>,
}

#[derive(Debug)]
struct Entry {
    id: BlockId,
    record: BlockRecord,
    in_flight: u32,
    recovered: bool,
}

impl Tally {
    pub(super) fn opened(&mut self, id: BlockId, first: SymbolId) {
        let record = BlockRecord { first, ..BlockRecord::default() };
        self.blocks.push_back(Entry { id, record, in_flight: 0, recovered: false });
    }

    pub(super) fn sent(&mut self, id: BlockId) {
        if let Some(entry) = self.entry(id) {
            entry.in_flight += 1;
            entry.record.sent += 1;
        }
    }

    pub(super) fn resolved(&mut self, id: BlockId, received: bool) {
        if let Some(entry) = self.entry(id) {
            entry.in_flight = entry.in_flight.saturating_sub(1);
            entry.record.lost += u32::from(!received);
        }
        self.collect();
    }

    /// Notes that a symbol that counted as lost has arrived.
    pub(super) fn late(&mut self, id: BlockId) {
        if let Some(entry) = self.entry(id) {
            entry.record.lost = entry.record.lost.saturating_sub(1);
        }
    }

    pub(super) fn recovered(&mut self, id: BlockId, sources: u16) {
        if let Some(entry) = self.entry(id) {
            entry.recovered = true;
            entry.record.sources = sources;
        }
        self.collect();
    }

    /// Drops a block that will not be recovered because it was empty or is sent in another form.
    pub(super) fn dropped(&mut self, id: BlockId) {
        self.blocks.retain(|entry| entry.id != id);
    }

    /// The blocks that have become complete since the last call.
    pub(super) fn take(&mut self) -> Vec<BlockRecord> {
        core::mem::take(&mut self.complete)
    }

    fn entry(&mut self, id: BlockId) -> Option<&mut Entry> {
        let index = self.blocks.binary_search_by_key(&id, |entry| entry.id).ok()?;
        self.blocks.get_mut(index)
    }

    fn collect(&mut self) {
        let complete = &mut self.complete;
        self.blocks.retain(|entry| {
            let is_over = entry.recovered && entry.in_flight == 0;
            complete.extend(is_over.then_some(entry.record));
            !is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_until_its_last_packet_is_accounted_for() {
        let mut tally = Tally::default();
        let (first, second) = (BlockId(0), BlockId(1));
        tally.opened(first, SymbolId(0));
        tally.opened(second, SymbolId(3));
        for block in [first, first, first, first, second] {
            tally.sent(block);
        }
        tally.resolved(first, true);
        tally.resolved(first, false);
        tally.resolved(first, true);
        tally.recovered(first, 3);
        assert_eq!(tally.take(), [], "a repair is under way");
        tally.resolved(first, false);
        let record = BlockRecord { first: SymbolId(0), sources: 3, sent: 4, lost: 2 };
        assert_eq!(tally.take(), [record]);
        tally.resolved(second, false);
        tally.late(second);
        tally.recovered(second, 1);
        let record = BlockRecord { first: SymbolId(3), sources: 1, sent: 1, lost: 0 };
        assert_eq!(tally.take(), [record]);
    }

    #[test]
    fn a_block_that_is_dropped_is_not_reported() {
        let mut tally = Tally::default();
        tally.opened(BlockId(7), SymbolId(0));
        tally.sent(BlockId(7));
        tally.dropped(BlockId(7));
        tally.resolved(BlockId(7), true);
        tally.recovered(BlockId(7), 1);
        assert_eq!(tally.take(), []);
    }
}
