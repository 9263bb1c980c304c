//! State changes of symbols that were sent: acknowledged, lost, or recovered with their block.

use anabranch_policy::view::{BlockId, BlockView, MAX_PATHS, SymbolId};

use super::block::{Block, Symbol};
use super::take::Written;
use super::{Change, MAX_TRAILING, SendBlocks};
use crate::path::sent::Carried;

impl SendBlocks {
    /// Notes that a packet with the symbol left on the path in `slot`.
    pub fn on_sent(&mut self, carried: Carried, slot: u8) {
        if let Some((index, symbol)) = self.locate(carried) {
            self.on_written(Written { index, symbol }, slot);
        }
    }

    /// Notes that the packet to which the symbol was written left on the path in `slot`; nothing
    /// may have changed since the write. Returns whether the copy is early, so that its
    /// [fate](Self::on_fate) must be reported.
    #[inline]
    pub fn on_written(&mut self, written: Written, slot: u8) -> bool {
        let Written { index, symbol } = written;
        let view = &mut self.views[index];
        let block = &mut self.blocks[index];
        let first_round = match symbol {
            Symbol::Source(_) => true,
            Symbol::Repair(_) => !block.first_reported,
        };
        let Some(state) = block.state(symbol) else { return false };
        let fresh = state.carried == 0;
        // A symbol that is known to have arrived since it was taken does not count as in flight.
        if state.copies == 0 && !state.received {
            view.in_flight += 1;
            view.queued -= u16::from(state.waits());
        }
        state.copies = state.copies.saturating_add(1);
        state.carried |= 1 << slot;
        state.on |= 1 << slot;
        state.last = slot;
        let early = state.early.on_sent(slot);
        view.carried_on |= 1 << slot;
        if let Some(tally) = &mut self.tally {
            tally.sent(view.id);
        }
        view.in_flight_on[usize::from(slot) % MAX_PATHS] += 1;
        match symbol {
            Symbol::Source(_) if fresh => self.totals.sources += 1,
            Symbol::Source(_) => self.totals.resends += 1,
            Symbol::Repair(_) => self.totals.repairs += 1,
        }
        if fresh && first_round {
            state.first_open = true;
            block.first_open += 1;
        }
        early
    }

    /// Notes the fate of an early copy of the symbol.
    #[inline]
    pub fn on_fate(&mut self, carried: Carried, slot: u8, received: bool) {
        let Carried::Source(_, symbol) = carried else { return };
        let lost = match self.locate(carried) {
            Some((index, symbol)) => {
                let state = self.blocks[index].state(symbol);
                state.and_then(|state| state.early.on_fate(slot, received))
            }
            None => self.undecided.on_fate(symbol, slot, received),
        };
        if let Some(lost) = lost {
            self.totals.settled += 1;
            self.totals.lost_early += u64::from(lost);
        }
    }

    /// Notes that a packet with the symbol is no longer in flight: it arrived, was lost, or was
    /// written off.
    pub fn on_resolved(&mut self, carried: Carried, slot: u8, received: bool) -> Change {
        if let Some(tally) = &mut self.tally {
            tally.resolved(carried.block(), received);
        }
        let Some((index, symbol)) = self.locate(carried) else {
            return self.trailing_resolved(carried.block());
        };
        let view = &mut self.views[index];
        let block = &mut self.blocks[index];
        let Some(state) = block.state(symbol) else { return Change::default() };
        let mut change = Change::default();
        let on_path = &mut view.in_flight_on[usize::from(slot) % MAX_PATHS];
        *on_path = on_path.saturating_sub(1);
        state.on &= !(1 << slot);
        if state.copies > 0 {
            state.copies -= 1;
            if state.copies == 0 && !state.received {
                view.in_flight -= 1;
                view.queued += u16::from(state.waits());
            }
        }
        if received && !state.received {
            change.news = true;
        }
        let due = state.due;
        let first = core::mem::take(&mut state.first_open);
        state.early.end();
        if received {
            self.mark_received(index, symbol, due);
        } else if let Some(sliding) = &mut self.sliding {
            sliding.matching.on_lost();
        }
        let block = &mut self.blocks[index];
        block.first_open -= u16::from(first);
        let view = &self.views[index];
        if block.first_open == 0 && view.closed && view.proactive_left == 0 && !block.first_reported
        {
            block.first_reported = true;
            change.first_resolved = true;
        }
        change
    }

    fn trailing_resolved(&mut self, id: BlockId) -> Change {
        let Some(index) = self.trailing.iter().position(|(block, _)| *block == id) else {
            return Change::default();
        };
        self.trailing[index].1 -= 1;
        let first_resolved = self.trailing[index].1 == 0;
        if first_resolved {
            self.trailing.remove(index);
        }
        Change { first_resolved, ..Change::default() }
    }

    /// Notes that a symbol that had been counted as missing has arrived.
    pub fn on_late(&mut self, carried: Carried) {
        if let Some(tally) = &mut self.tally {
            tally.late(carried.block());
        }
        let Some((index, symbol)) = self.locate(carried) else { return };
        let due = self.blocks[index].state(symbol).is_some_and(|state| state.due);
        self.mark_received(index, symbol, due);
    }

    #[inline(always)] // once for each packet, by way of `on_resolved`
    fn mark_received(&mut self, index: usize, symbol: Symbol, due: bool) {
        let view = &mut self.views[index];
        let block = &mut self.blocks[index];
        let Some(state) = block.state(symbol) else { return };
        if state.received {
            return;
        }
        if state.copies > 0 {
            // Further copies in flight no longer count.
            view.in_flight -= 1;
        }
        view.queued -= u16::from(state.waits());
        state.received = true;
        state.due = false;
        block.acknowledged += 1;
        block.sources_acknowledged += u16::from(matches!(symbol, Symbol::Source(_)));
        if due {
            view.due -= 1;
        }
        match &mut self.sliding {
            None => {
                view.received = block.received(view.sources, self.limits.any_symbols_suffice);
            }
            Some(sliding) => {
                let repair = match symbol {
                    Symbol::Repair(key) => block.covered.get(key).map(|(coverage, _)| *coverage),
                    Symbol::Source(_) => None,
                };
                sliding.matching.on_received(repair);
                let known = block.sources_acknowledged.saturating_add(block.matched);
                view.received = known.min(view.sources);
            }
        }
    }

    /// Notes that the receiver holds every symbol below `below`, as it has reported, even if
    /// acknowledgements were lost.
    pub fn on_all_received(&mut self, below: SymbolId) {
        for index in 0..self.views.len() {
            let view = self.views[index];
            if view.first >= below {
                break;
            }
            let known = below.0.min(view.first.0 + u64::from(view.sources)) - view.first.0;
            for i in 0..known as usize {
                let due = self.blocks[index].sources.get(i).is_some_and(|s| s.state.due);
                self.mark_received(index, Symbol::Source(i), due);
            }
        }
    }

    /// Notes that the receiver needs `missing` more independent symbols of the block that starts at
    /// `first`; 0 if it has recovered the block. Returns the block if it needs more symbols than
    /// was assumed.
    pub fn on_rank(&mut self, first: SymbolId, missing: u16) -> Option<BlockId> {
        let index = self.views.binary_search_by_key(&first, |view| view.first).ok()?;
        let (view, block) = (&mut self.views[index], &mut self.blocks[index]);
        let rank = view.sources.saturating_sub(missing);
        // The rank of a block never falls: a report with a lower rank was overtaken by another.
        if !view.closed || rank < block.reported {
            return None;
        }
        block.reported = rank;
        block.recovered |= missing == 0;
        if !self.limits.any_symbols_suffice {
            block.dependent = block.acknowledged.saturating_sub(rank);
        }
        self.update_received(index)
    }

    fn update_received(&mut self, index: usize) -> Option<BlockId> {
        let (view, block) = (&mut self.views[index], &self.blocks[index]);
        let before = view.received;
        view.received = block.received(view.sources, self.limits.any_symbols_suffice);
        (view.received < before).then_some(view.id)
    }

    /// Removes blocks that the receiver is known to have recovered; `each` is called for every one.
    pub fn retire(&mut self, mut each: impl FnMut(&BlockView)) {
        let oldest = (0..self.views.len()).take_while(|index| self.is_retired(*index)).count();
        for index in 0..oldest {
            let view = self.views[index];
            each(&view);
            if let Some(block) = self.blocks.pop_front() {
                self.let_go(&view, block);
            }
        }
        self.views.drain(..oldest);
        // Sliding repairs cover runs of symbols without gaps.
        let mut index = if self.slides() { self.views.len() } else { 0 };
        while index < self.views.len() {
            if !self.is_retired(index) {
                index += 1;
                continue;
            }
            let view = self.views.remove(index);
            each(&view);
            if let Some(block) = self.blocks.remove(index) {
                self.let_go(&view, block);
            }
        }
        // The receiver has all symbols, so no repair has to cover any of them.
        if oldest > 0 && self.views.is_empty() {
            self.forget_history();
        }
    }

    fn is_retired(&self, index: usize) -> bool {
        let (view, block) = (&self.views[index], &self.blocks[index]);
        view.closed && block.is_recovered(view.sources, self.limits.any_symbols_suffice)
    }

    /// Finishes a block that the receiver has recovered and that was removed from the lists.
    fn let_go(&mut self, view: &BlockView, block: Block) {
        if let Some(tally) = &mut self.tally {
            tally.recovered(view.id, view.sources);
        }
        let late = block.repairs.iter().filter(|r| r.copies > 0 && !r.received).count();
        self.totals.repairs_unneeded += late as u64;
        for (symbol, source) in (view.first.0..).zip(&block.sources) {
            self.undecided.keep(SymbolId(symbol), source.state.early);
        }
        self.trail(view.id, &block);
        self.recycle(block);
    }

    /// Remembers how many packets of a retired block's first transmission have no known fate yet,
    /// since their fates still count.
    pub(super) fn trail(&mut self, id: BlockId, block: &Block) {
        if block.first_open > 0 && !block.first_reported {
            self.trailing.push_back((id, block.first_open));
            if self.trailing.len() > MAX_TRAILING {
                self.trailing.pop_front();
            }
        }
    }
}
