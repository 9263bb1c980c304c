//! Sliding repairs: they may cover symbols of several blocks, and can be made before the newest block is full.

use std::collections::VecDeque;

use anabranch_policy::code::{CodeError, Coverage, Encoder};
use anabranch_policy::view::{BlockId, SymbolId};

use super::block::Block;
use super::matching::Matching;
use super::{OutgoingSymbol, SendBlocks};
use crate::coding::USUAL_BLOCK;
use crate::coding::pool::Buffer;
use crate::path::sent::Carried;

/// State of a code that slides, in addition to its blocks.
#[derive(Debug)]
pub(super) struct Sliding {
    /// `None` only while a repair is made.
    encoder: Option<Box<dyn Encoder>>,
    /// The newest symbols of retired blocks, up to the first block not retired. The receiver keeps
    /// as many symbols below its first missing one.
    history: VecDeque<(Buffer, u16)>,
    /// Most symbols in `history`.
    most: usize,
    /// Which symbols the repairs that have arrived replace.
    pub(super) matching: Matching,
}

impl Sliding {
    /// How many symbols of retired blocks are kept.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn held(&self) -> usize {
        self.history.len()
    }

    /// Lengths, bytes, of the symbols in `history`.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u16> {
        self.history.iter().map(|(_, length)| *length)
    }

    pub(super) fn new(encoder: Box<dyn Encoder>, most: u16) -> Self {
        let (history, matching) = (VecDeque::new(), Matching::default());
        Sliding { encoder: Some(encoder), history, most: most.into(), matching }
    }
}

impl SendBlocks {
    /// Whether the code slides: repairs may overlap, and may be made while the block is filling.
    pub fn slides(&self) -> bool {
        self.limits.slides.is_some()
    }

    /// Sets which symbols the next repairs of the block shall cover, as far as the symbols are
    /// kept.
    pub fn set_coverage(&mut self, id: BlockId, coverage: Coverage) {
        if let Some(index) = self.index(id) {
            self.blocks[index].reach = Some(coverage);
        }
    }

    /// Determines which symbols the newest repair of a block covers.
    pub(super) fn cover(&mut self, index: usize) {
        let Some(sliding) = &self.sliding else { return };
        let (view, block) = (&self.views[index], &self.blocks[index]);
        let whole = Coverage { first: view.first, count: view.sources };
        let wanted = block.reach.unwrap_or(whole);
        let most = self.max_sources(block.symbol_size).min(USUAL_BLOCK as u16);
        let newest = whole.end();
        let end = if view.closed { newest } else { wanted.end().clamp(view.first.0 + 1, newest) };
        // The repair may wait in a queue until all blocks before its own are retired.
        let kept = view.first.0.saturating_sub(sliding.most as u64);
        let least = self.oldest_needed().0.max(end.saturating_sub(most.into())).max(kept);
        // A repair covers all of a closed block, since any of the block's symbols may be missing.
        let wanted = if view.closed { wanted.first.min(view.first) } else { wanted.first };
        let first = wanted.0.clamp(least, end - 1);
        let length = (first..end).filter_map(|id| self.source(id)).map(<[u8]>::len).max();
        let coverage = Coverage { first: SymbolId(first), count: (end - first) as u16 };
        let block = &mut self.blocks[index];
        // There may still be entries of repairs that were taken back before they were sent.
        block.covered.truncate(block.repairs.len() - 1);
        block.covered.push((coverage, length.unwrap_or(0) as u16));
    }

    /// Limits the symbols of retired blocks that are kept. The receiver has to hold them too,
    /// within the credit that it grants.
    pub fn limit_history(&mut self, symbols: u64) {
        if let Some(sliding) = &mut self.sliding {
            sliding.most = sliding.most.min(usize::try_from(symbols).unwrap_or(usize::MAX));
        }
    }

    /// The oldest symbol that repairs may still cover; the receiver may discard the symbols below
    /// it.
    pub fn oldest_needed(&self) -> SymbolId {
        let kept = self.sliding.as_ref().map_or(0, |sliding| sliding.history.len());
        SymbolId(self.floor().0 - kept as u64)
    }

    fn source(&self, id: u64) -> Option<&[u8]> {
        let floor = self.floor().0;
        if id < floor {
            let history = &self.sliding.as_ref()?.history;
            let at = history.len().checked_sub(usize::try_from(floor - id).ok()?)?;
            let (bytes, length) = history.get(at)?;
            return bytes.get(..usize::from(*length));
        }
        let index = self.views.partition_point(|view| view.first.0 <= id).checked_sub(1)?;
        let at = usize::try_from(id - self.views[index].first.0).ok()?;
        let source = self.blocks[index].sources.get(at)?;
        source.bytes.get(..usize::from(source.length))
    }

    pub(super) fn write_sliding(
        &mut self,
        taken: &OutgoingSymbol,
        out: &mut [u8],
    ) -> Result<(), CodeError> {
        let Carried::Repair(_, key) = taken.carried else { return Err(CodeError::Key) };
        let coverage = taken.coverage;
        let sliding = self.sliding.as_mut().and_then(|sliding| sliding.encoder.take());
        let Some(mut encoder) = sliding else { return Err(CodeError::Coverage) };
        let made = self.sources_of(coverage).and_then(|list| {
            let sources = list.get(..usize::from(coverage.count)).ok_or(CodeError::Coverage)?;
            encoder.repairs(coverage, key, sources, &mut [out])
        });
        if let Some(sliding) = &mut self.sliding {
            sliding.encoder = Some(encoder);
        }
        made
    }

    fn sources_of(&self, coverage: Coverage) -> Result<[&[u8]; USUAL_BLOCK], CodeError> {
        let mut list: [&[u8]; USUAL_BLOCK] = [&[]; USUAL_BLOCK];
        for (slot, id) in list.iter_mut().zip(coverage.first.0..coverage.end()) {
            *slot = self.source(id).ok_or(CodeError::Coverage)?;
        }
        Ok(list)
    }

    /// Keeps the symbols of the oldest block, which is being retired.
    pub(super) fn keep_history(&mut self, block: &mut Block) {
        let Some(sliding) = &mut self.sliding else { return };
        let sources = block.sources.drain(..);
        sliding.history.extend(sources.map(|source| (source.bytes, source.length)));
        while sliding.history.len() > sliding.most {
            if let Some((bytes, _)) = sliding.history.pop_front() {
                self.pool.put(bytes);
            }
        }
    }

    /// Drops all symbols of retired blocks; no repair may cover them any more.
    pub(super) fn forget_history(&mut self) {
        if let Some(sliding) = &mut self.sliding {
            sliding.history.drain(..).for_each(|(bytes, _)| self.pool.put(bytes));
        }
    }
}
