//! Takes symbols for sending, and gives their bytes.

use anabranch_policy::code::{CodeError, Coverage};
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{BlockId, SymbolId};

use super::block::{Source, Symbol, SymbolState};
use super::{OutgoingSymbol, SendBlocks};
use crate::path::sent::Carried;

/// Position of the symbol that was just written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub(super) index: usize,
    pub(super) symbol: Symbol,
}

impl SendBlocks {
    /// Takes the symbol that `work` stands for, to be sent on the path in `slot`. The caller must send it.
    pub fn take(&mut self, work: Work, slot: u8) -> Option<OutgoingSymbol> {
        match work {
            Work::Fresh | Work::Ahead => None,
            Work::Block(id) => self.take_due(id, slot),
            Work::Repair(id) => self.take_due(id, slot).or_else(|| {
                let index = self.index(id).filter(|index| self.views[*index].closed)?;
                self.fresh_repair(index)
            }),
            Work::Copy(id) => self.take_copy(id, slot),
        }
    }

    pub(super) fn outgoing(&self, index: usize, symbol: Symbol) -> OutgoingSymbol {
        let view = &self.views[index];
        let block = &self.blocks[index];
        match symbol {
            Symbol::Source(i) => {
                let id = SymbolId(view.first.0 + i as u64);
                OutgoingSymbol {
                    carried: Carried::Source(view.id, id),
                    coverage: Coverage { first: id, count: 1 },
                    length: block.sources.get(i).map_or(0, |s| s.length),
                    again: block.sources.get(i).is_some_and(|s| s.state.carried != 0),
                }
            }
            Symbol::Repair(key) => {
                let whole = Coverage { first: view.first, count: view.sources };
                let covered = block.covered.get(key).copied();
                let (coverage, length) = covered.unwrap_or((whole, block.longest));
                let carried = Carried::Repair(view.id, key as u32);
                OutgoingSymbol { carried, coverage, length, again: false }
            }
        }
    }

    /// The next due symbol of the block, except those that the path in `slot` has in flight, since
    /// a copy must go on another path.
    fn take_due(&mut self, id: BlockId, slot: u8) -> Option<OutgoingSymbol> {
        let index = self.index(id)?;
        let (view, block) = (&mut self.views[index], &mut self.blocks[index]);
        let flagged = view.due > block.repairs_due;
        let wanted = |s: &Source| s.state.due && s.state.on & (1 << slot) == 0;
        if flagged && let Some(i) = block.sources.iter().position(wanted) {
            block.sources[i].state.due = false;
            view.due -= 1;
            return Some(self.outgoing(index, Symbol::Source(i)));
        }
        let may_repair = view.closed || (self.sliding.is_some() && view.sources > 0);
        if view.closed && view.proactive_left > 0 {
            view.proactive_left -= 1;
        } else if block.repairs_due > 0 && may_repair {
            block.repairs_due -= 1;
            view.due -= 1;
        } else {
            return None;
        }
        self.fresh_repair(index)
    }

    /// A repair that was never sent or, if there is none left, a symbol that has not arrived.
    fn fresh_repair(&mut self, index: usize) -> Option<OutgoingSymbol> {
        let keys = usize::from(self.keys(self.views[index].sources));
        let (view, block) = (&mut self.views[index], &mut self.blocks[index]);
        let symbol = if block.repairs.len() < keys {
            let key = block.repairs.len();
            block.repairs.push(SymbolState::default());
            view.repairs = block.repairs.len() as u16;
            self.cover(index);
            Symbol::Repair(key)
        } else {
            self.wrap(index)?
        };
        Some(self.outgoing(index, symbol))
    }

    /// After every repair has been sent, starts again with the symbols that have not arrived.
    fn wrap(&mut self, index: usize) -> Option<Symbol> {
        let block = &mut self.blocks[index];
        let (sources, total) = (block.sources.len(), block.sources.len() + block.repairs.len());
        self.totals.wraps += u64::from(block.cursor == 0);
        for step in 0..total {
            let at = (block.cursor + step) % total;
            let symbol =
                if at < sources { Symbol::Source(at) } else { Symbol::Repair(at - sources) };
            if block.state(symbol).is_some_and(|state| !state.received) {
                block.cursor = at + 1;
                return Some(symbol);
            }
        }
        None
    }

    /// The carried symbol itself again, if it has not arrived yet.
    pub fn again(&mut self, carried: Carried) -> Option<OutgoingSymbol> {
        let (index, symbol) = self.locate(carried)?;
        let state = *self.blocks[index].state(symbol)?;
        (!state.received).then(|| self.outgoing(index, symbol))
    }

    fn take_copy(&mut self, id: BlockId, slot: u8) -> Option<OutgoingSymbol> {
        let index = self.index(id)?;
        let wanted = |state: &SymbolState| {
            let here = (state.on | state.queued) & (1 << slot) != 0;
            !state.received && state.copies > 0 && !here
        };
        let block = &self.blocks[index];
        let source = block.sources.iter().position(|source| wanted(&source.state));
        let repair = || block.repairs.iter().position(wanted).map(Symbol::Repair);
        let symbol = source.map(Symbol::Source).or_else(repair)?;
        Some(self.outgoing(index, symbol))
    }

    /// Writes the bytes of a taken symbol to `out`, which is as long as the symbol.
    #[inline]
    pub fn write(&mut self, taken: &OutgoingSymbol, out: &mut [u8]) -> Result<Written, CodeError> {
        let (index, symbol) = self.locate(taken.carried).ok_or(CodeError::Coverage)?;
        match symbol {
            Symbol::Source(i) => {
                let source = self.blocks[index].sources.get(i).ok_or(CodeError::Coverage)?;
                let bytes = source.bytes.get(..out.len()).ok_or(CodeError::Length)?;
                out.copy_from_slice(bytes);
            }
            Symbol::Repair(_) if self.slides() => self.write_sliding(taken, out)?,
            Symbol::Repair(key) => self.write_repair(index, key, taken.coverage, out)?,
        }
        Ok(Written { index, symbol })
    }

    #[inline(never)] // it has lists of sources on the stack
    fn write_repair(
        &mut self,
        index: usize,
        key: usize,
        coverage: Coverage,
        out: &mut [u8],
    ) -> Result<(), CodeError> {
        let keys = usize::from(self.keys(self.views[index].sources));
        let (view, block) = (&self.views[index], &mut self.blocks[index]);
        // Fresh repairs have rising keys, so the repairs still planned or due follow the newest
        // one.
        let newest = key + 1 == block.repairs.len();
        let coming = usize::from(view.proactive_left) + usize::from(block.repairs_due);
        let left = keys.saturating_sub(block.repairs.len());
        let more = if newest { coming.min(left) } else { 0 };
        block.write_repair(&mut self.pool, coverage, key, more, out)
    }
}
