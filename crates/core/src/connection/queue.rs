//! Puts symbols into the queues of paths, and takes them out.

use anabranch_policy::scheduler::{Pick, Work};
use anabranch_types::Time;

use super::Connection;
use super::paths::PathIndex;
use crate::coding::send::OutgoingSymbol;
use crate::path::queue::QueuedSymbol;

impl Connection {
    /// Takes the next symbol of `work` for the path in `slot`; new symbols are cut now, so that
    /// they are sent in the order of their assignment. If `room` is given and the symbol's length
    /// is known in advance, a symbol longer than `room` is not taken.
    pub(super) fn take_for(
        &mut self,
        now: Time,
        work: Work,
        slot: PathIndex,
        room: Option<usize>,
    ) -> Option<OutgoingSymbol> {
        match work {
            Work::Fresh | Work::Ahead => self.next_source_symbol(now, room),
            Work::Block(id) | Work::Copy(id) | Work::Repair(id)
                if room.is_some_and(|room| self.send[id.space()].longest(id) > room) =>
            {
                None
            }
            Work::Repair(_) if self.resends() => None,
            Work::Block(id) | Work::Copy(id) | Work::Repair(id) => {
                self.send[id.space()].take(work, slot.0)
            }
        }
    }

    /// Puts the picked work into its path's queue, as far as it exists. Returns whether there was
    /// any.
    pub(super) fn assign(&mut self, now: Time, pick: Pick, reason: &'static str) -> bool {
        let Some(slot) = self.paths.open(pick.path).filter(|slot| self.may_carry_data(*slot))
        else {
            return false;
        };
        if pick.work == Work::Ahead {
            return self.cut_ahead(now, pick.count);
        }
        let before = self.paths[slot].queue.len();
        for _ in 0..pick.count {
            let Some(symbol) = self.take_for(now, pick.work, slot, None) else { break };
            let not_before = pick.not_before;
            self.send[symbol.carried.space()].enqueue(symbol.carried, slot.0);
            self.paths[slot].queue.push(now, QueuedSymbol { symbol, not_before, reason });
        }
        let assigned = self.paths[slot].queue.len() > before;
        if assigned {
            self.changed();
        }
        assigned
    }

    /// Cuts up to `count` new symbols, which become due at once. Returns whether there were any.
    fn cut_ahead(&mut self, now: Time, count: u16) -> bool {
        let mut any = false;
        for _ in 0..count {
            let Some(symbol) = self.next_source_symbol(now, None) else { break };
            self.send[symbol.carried.space()].make_due(symbol.carried);
            any = true;
        }
        if any {
            self.changed();
        }
        any
    }

    /// Puts a symbol that did not fit into a packet at the front of the path's queue.
    pub(super) fn put_first(&mut self, slot: PathIndex, assigned: QueuedSymbol) {
        let carried = assigned.symbol.carried;
        self.send[carried.space()].enqueue(carried, slot.0);
        self.paths[slot].queue.push_front(assigned);
    }

    /// The first symbol in the path's queue that may leave and that is still needed.
    #[inline(always)] // once for each packet
    pub(super) fn next_assigned(&mut self, now: Time, slot: PathIndex) -> Option<QueuedSymbol> {
        self.paths[slot].queue.ripen(now);
        while let Some(assigned) = self.paths[slot].queue.pop_front() {
            let carried = assigned.symbol.carried;
            if let Some(symbol) = self.send[carried.space()].dequeue(carried, slot.0) {
                return Some(QueuedSymbol { symbol, ..assigned });
            }
        }
        None
    }

    /// Takes back all symbols in the path's queue except the first `keep`.
    pub(super) fn take_back(&mut self, slot: PathIndex, keep: usize) {
        while self.paths[slot].queue.len() > keep {
            let Some(assigned) = self.paths[slot].queue.pop_back() else { break };
            let carried = assigned.symbol.carried;
            self.send[carried.space()].take_back(carried, slot.0);
        }
        self.changed();
    }
}
