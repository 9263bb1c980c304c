//! Delivery of whole blocks: symbols wait until their block and all blocks before it are complete.

use anabranch_policy::view::SymbolId;
use std::collections::BTreeSet;

use super::super::pool::{Buffer, Pool};
use super::{Held, ReceiveBlocks, Slot, SymbolSink};

/// Most block ends remembered. A block whose end is not remembered is delivered with the next one whose end is.
const MOST_ENDS: usize = 1 << 16;

/// Where blocks end.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// All symbols below this have been delivered.
    delivered: u64,
    /// Symbol ids above `delivered` before which a block ends.
    ends: BTreeSet<u64>,
    /// Symbols that a block's decoder has just recovered: indices of their slots, bytes and
    /// lengths.
    recovered: Vec<(usize, Buffer, u16)>,
}

impl Whole {
    /// All symbols below this have been delivered.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Notes that a block ends before this symbol.
    pub(super) fn note(&mut self, end: u64) {
        if end > self.delivered && self.ends.len() < MOST_ENDS {
            self.ends.insert(end);
        }
    }

    /// Keeps a recovered symbol until its slot can be written.
    pub(super) fn keep(&mut self, place: usize, bytes: &[u8], pool: &mut Pool) {
        let mut buffer = pool.take();
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        self.recovered.push((place, buffer, length as u16));
    }
}

impl ReceiveBlocks {
    /// Makes the receiver deliver blocks only as a whole and in order: no symbol of a block is
    /// delivered before the block is complete (MPLOT §II-A). Has no effect for codes that slide,
    /// which have no such blocks.
    #[must_use]
    pub fn in_whole_blocks(mut self) -> Self {
        self.whole = self.sliding.is_none().then(Whole::default);
        self
    }

    /// Notes that a block ends with this symbol.
    pub fn note_end(&mut self, last: SymbolId) {
        if let Some(whole) = &mut self.whole {
            whole.note(last.0.saturating_add(1));
        }
    }

    /// Notes that blocks end before `first` and before `end`.
    pub(super) fn note_block(&mut self, first: u64, end: u64) {
        if let Some(whole) = &mut self.whole {
            whole.note(first);
            whole.note(end);
        }
    }

    /// Puts recovered symbols into their slots if `is_sound`, or discards them.
    pub(super) fn place_recovered(&mut self, is_sound: bool) {
        let Some(whole) = &mut self.whole else { return };
        for (place, bytes, length) in whole.recovered.drain(..) {
            match self.slots.get_mut(place) {
                Some(slot) if is_sound && matches!(slot, Slot::Missing) => {
                    *slot = Slot::Held(Held { bytes, length, pieces: 0 });
                }
                _ => self.pool.put(bytes),
            }
        }
    }

    /// Delivers the complete blocks that precede the first incomplete one.
    pub(super) fn deliver_whole(&mut self, sink: &mut dyn SymbolSink) {
        let Some(whole) = &self.whole else { return };
        if let Some(end) = whole.ends.range(..=self.first_missing).next_back() {
            self.deliver_up_to(*end, sink);
        }
    }

    /// Delivers the held symbols below `end`, wherever blocks end.
    pub(super) fn deliver_up_to(&mut self, end: u64, sink: &mut dyn SymbolSink) {
        let Some(whole) = &mut self.whole else { return };
        let (from, to) = (whole.delivered, whole.delivered.max(end));
        whole.delivered = to;
        whole.ends = whole.ends.split_off(&to.saturating_add(1));
        let held = from.max(self.base)..to.min(self.base + self.slots.len() as u64);
        self.finish(held, sink);
    }
}
