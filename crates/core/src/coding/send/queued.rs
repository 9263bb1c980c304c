//! Symbols that wait in paths' queues.

use anabranch_policy::view::MAX_PATHS;

use super::block::{Symbol, SymbolState};
use super::{OutgoingSymbol, SendBlocks};
use crate::path::sent::Carried;

impl SendBlocks {
    /// Notes that a taken symbol waits in the queue of the path in `slot`.
    pub fn enqueue(&mut self, carried: Carried, slot: u8) {
        self.requeue(carried, slot, |state, bit| state.queued |= bit);
    }

    /// Takes a symbol from the queue of the path in `slot`, to be sent; `None` if it is no longer
    /// needed.
    pub fn dequeue(&mut self, carried: Carried, slot: u8) -> Option<OutgoingSymbol> {
        let (index, symbol) = self.requeue(carried, slot, |state, bit| state.queued &= !bit)?;
        let needed = !self.blocks[index].state(symbol)?.received;
        needed.then(|| self.outgoing(index, symbol))
    }

    /// Takes a symbol back from the queue of the path in `slot`. The symbol becomes due again,
    /// unless it has arrived, is in flight, or waits in another queue.
    pub fn take_back(&mut self, carried: Carried, slot: u8) {
        self.requeue(carried, slot, |state, bit| state.queued &= !bit);
        let Some((index, symbol)) = self.locate(carried) else { return };
        let Some(state) = self.blocks[index].state(symbol) else { return };
        let sent = state.carried != 0;
        self.make_due(carried);
        // If this was the newest repair, its key is free again.
        if let Symbol::Repair(key) = symbol
            && !sent
            && key + 1 == self.blocks[index].repairs.len()
        {
            self.blocks[index].repairs.pop();
            self.views[index].repairs -= 1;
        }
    }

    /// Applies `change` to the state of a symbol's queues and updates the block's view; returns the
    /// symbol's position.
    #[inline]
    fn requeue(
        &mut self,
        carried: Carried,
        slot: u8,
        change: impl FnOnce(&mut SymbolState, u16),
    ) -> Option<(usize, Symbol)> {
        let (index, symbol) = self.locate(carried)?;
        let view = &mut self.views[index];
        let state = self.blocks[index].state(symbol)?;
        let bit = 1 << slot;
        let before = (state.waits(), state.queued & bit != 0);
        change(state, bit);
        let after = (state.waits(), state.queued & bit != 0);
        view.queued = view.queued + u16::from(after.0) - u16::from(before.0);
        let on_path = &mut view.queued_on[usize::from(slot) % MAX_PATHS];
        *on_path = *on_path + u16::from(after.1) - u16::from(before.1);
        Some((index, symbol))
    }

    /// Clears what blocks remember of the slot's path, before another path takes the slot.
    pub fn forget_slot(&mut self, slot: u8) {
        for view in &mut self.views {
            view.carried_on &= !(1 << slot);
            view.lost_on &= !(1 << slot);
        }
    }
}
