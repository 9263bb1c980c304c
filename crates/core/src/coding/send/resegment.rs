//! Re-segments blocks whose symbols have become too long for every path.

use anabranch_policy::view::{BlockView, TrafficClass};

use super::SendBlocks;
use super::sliding::Sliding;

impl SendBlocks {
    /// Bound on the length, bytes, of every symbol still needed: sources, repairs, and symbols that
    /// repairs may cover.
    pub fn widest(&self) -> u16 {
        self.widest
    }

    /// Makes [`widest`](Self::widest) exact, and returns it.
    pub fn measure(&mut self) -> u16 {
        let needed = self.blocks.iter().map(|block| block.longest);
        let covered = self.sliding.iter().flat_map(Sliding::lengths);
        self.widest = needed.chain(covered).max().unwrap_or(0);
        self.widest
    }

    /// Releases all blocks with symbols of more than `most` bytes; with a code that slides, every
    /// block if any symbol is that long. `each` is called for every released block. `symbol` is
    /// called for every source that is not known to have arrived, with its class, its bytes, and
    /// whether it was sent.
    pub fn release_oversized(
        &mut self,
        most: u16,
        mut each: impl FnMut(&BlockView),
        mut symbol: impl FnMut(TrafficClass, &[u8], bool),
    ) {
        let all = self.slides() && self.measure() > most;
        let mut index = 0;
        while index < self.views.len() {
            if self.blocks[index].longest <= most && !all {
                index += 1;
                continue;
            }
            let view = self.views.remove(index);
            each(&view);
            if let Some(tally) = &mut self.tally {
                tally.dropped(view.id);
            }
            let Some(block) = self.blocks.remove(index) else { break };
            for source in block.sources.iter().filter(|source| !source.state.received) {
                let bytes = source.bytes.get(..usize::from(source.length)).unwrap_or_default();
                symbol(view.class, bytes, source.state.carried != 0);
            }
            self.trail(view.id, &block);
            self.recycle(block);
        }
        // Otherwise the history stays, since repairs of the remaining blocks may cover it.
        if all {
            self.forget_history();
        }
        self.measure();
    }
}
