//! Turns application bytes into source symbols, and opens and closes blocks.

use anabranch_policy::view::{BlockId, BlockView, SymbolSpace, TrafficClass};
use anabranch_types::Time;

use super::Connection;
use crate::coding::send::OutgoingSymbol;
use crate::observe::Observation;

/// Most bytes of a STREAM frame before its data.
const STREAM_HEAD: usize = 1 + 8 + 8 + 2;

/// How long the redundancy policy keeps a block open after its newest symbol while no data waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linger {
    block: BlockId,
    sources: u16,
    /// Until when it stays open.
    until: Time,
}

impl Linger {
    /// Whether no symbol has joined the block since.
    fn is_about(&self, block: &BlockView) -> bool {
        (self.block, self.sources) == (block.id, block.sources)
    }
}

impl Connection {
    /// Makes one source symbol from waiting bytes; `None` if there are none, the credit is used up, or the
    /// symbol may become longer than `room`, if there is such a limit.
    pub(super) fn next_source_symbol(
        &mut self,
        now: Time,
        room: Option<usize>,
    ) -> Option<OutgoingSymbol> {
        loop {
            let before = self.pending();
            let class = before.class?;
            let space = self.send.of_class(class);
            if self.symbol_credit(space) == 0 {
                return None;
            }
            self.open_block_for(now, class);
            if room.is_some_and(|room| self.longest_fresh(space, before.bytes) > room) {
                return None;
            }
            let streams = &mut self.streams;
            let cut = self.send[space].push(|id, buffer| streams.fill_symbol(class, id, buffer));
            if let Some((taken, full)) = cut {
                self.was_drained = false;
                if self.send[space].slides() {
                    self.slide(now, space);
                }
                if full || self.is_known_last(space) {
                    self.close_block(now, space);
                }
                return Some(taken);
            }
            // A datagram that does not fit into a symbol any more was dropped, and the data after
            // it is next.
            let after = self.pending();
            if (after.class, after.bytes) == (before.class, before.bytes) {
                return None;
            }
        }
    }

    /// Whether the symbol just made is marked as its block's last although the block is not full,
    /// since no other symbol can follow soon.
    fn is_known_last(&self, space: SymbolSpace) -> bool {
        self.peer_parameters.whole_blocks
            && !self.send[space].slides()
            && (!self.is_waiting(space) || self.symbol_credit(space) == 0)
    }

    /// Whether data for a space is waiting.
    #[inline]
    pub(super) fn is_waiting(&self, space: SymbolSpace) -> bool {
        self.send.classes(space).any(|class| self.streams.is_waiting(class))
    }

    /// Bound on the length of the next source symbol of a space, when `pending` bytes of one stream wait.
    fn longest_fresh(&self, space: SymbolSpace, pending: u64) -> usize {
        let size = self.send[space].open_symbol_size().unwrap_or(u16::MAX);
        let waiting =
            usize::try_from(pending).map_or(usize::MAX, |n| n.saturating_add(STREAM_HEAD));
        waiting.min(usize::from(size))
    }

    /// Makes sure that the open block of the class's space takes data of the class.
    fn open_block_for(&mut self, now: Time, class: TrafficClass) {
        let space = self.send.of_class(class);
        let capacity = self.symbol_capacity();
        let least = self.streams.least_symbol(class).min(capacity);
        // A block holds data of one class, so more urgent data closes a less urgent block of the
        // same space. A path with too small an MTU for the planned symbols closes the block too,
        // and so does a datagram that is too long for them.
        let unfit = |size: u16| size > capacity || size < least;
        let send = &self.send[space];
        if send.open_symbol_size().is_some_and(unfit)
            || send.open_block().is_some_and(|view| view.class != class)
        {
            self.close_early(now, space);
        }
        if self.send[space].open_block().is_none() {
            let shape = self.ask_redundancy(now, class, |policy, view| policy.next_block(view));
            let size = shape.symbol_size.max(least).clamp(1, capacity);
            self.send[space].open(now, class, shape.sources, size);
        }
    }

    /// Makes the repairs that follow at once when a symbol has joined the open block of a code that
    /// slides.
    fn slide(&mut self, now: Time, space: SymbolSpace) {
        let Some(&block) = self.send[space].open_block() else { return };
        let (repairs, coverage) = self.ask_redundancy(now, block.class, |policy, view| {
            (policy.after_source(&block, view), policy.coverage(&block))
        });
        self.send[space].set_coverage(block.id, coverage);
        self.send[space].add_repairs(block.id, repairs);
    }

    /// Closes the open block of a space and plans its proactive repairs.
    pub(super) fn close_block(&mut self, now: Time, space: SymbolSpace) {
        let Some(id) = self.send[space].close() else { return };
        self.plan(now, id);
        self.changed();
    }

    /// Closes the open block although it is not full. The block is provisioned immediately, since
    /// no acknowledgement or loss will trigger this later if none of its packets is in flight.
    fn close_early(&mut self, now: Time, space: SymbolSpace) {
        let id = self.send[space].open_block().map(|view| view.id);
        self.close_block(now, space);
        if let Some(id) = id {
            self.provision(now, id);
        }
    }

    fn plan(&mut self, now: Time, id: BlockId) {
        let send = &self.send[id.space()];
        let Some(&block) = send.views().last().filter(|view| view.id == id) else { return };
        if !send.makes_repairs() {
            return;
        }
        let (repairs, loss) = self.ask_redundancy(now, block.class, |policy, view| {
            (policy.proactive(&block, view), view.loss.mean)
        });
        let loss_permille = (loss * 1000.0) as u16;
        self.send[id.space()].plan_repairs(id, repairs);
        let (first, sources) = (block.first, block.sources);
        self.observe(now, Observation::BlockClosed { first, sources, repairs, loss_permille });
    }

    /// Closes each space's unfilled block if no more data waits or may be sent, unless the policy
    /// keeps the block open for a while.
    #[inline]
    pub(super) fn flush_blocks(&mut self, now: Time) {
        for space in self.send.names() {
            if self.send[space].open_block().is_some_and(|view| view.sources > 0)
                && (!self.is_waiting(space) || self.symbol_credit(space) == 0)
                && self.lingers_until(now, space).is_none_or(|until| until <= now)
            {
                self.close_early(now, space);
            }
        }
    }

    /// Until when the open block stays open although no data waits. `None` if there is no open
    /// block, or if waiting is of no use. The policy is asked once after each symbol.
    fn lingers_until(&mut self, now: Time, space: SymbolSpace) -> Option<Time> {
        let send = &self.send[space];
        let block = *send.open_block()?;
        if !send.makes_repairs() || self.symbol_credit(space) == 0 {
            return None;
        }
        let mut linger = self.linger[space as usize].filter(|linger| linger.is_about(&block));
        if linger.is_none() {
            let until = self
                .ask_redundancy(now, block.class, |policy, view| policy.open_until(&block, view));
            linger = Some(Linger { block: block.id, sources: block.sources, until });
            self.linger[space as usize] = linger;
        }
        linger.map(|linger| linger.until)
    }

    /// When a block that has stayed open is closed.
    pub(super) fn linger_ends(&self) -> Option<Time> {
        let ends = self.send.names().filter_map(|space| {
            let block = self.send[space].open_block().filter(|_| !self.is_waiting(space))?;
            self.linger[space as usize].filter(|linger| linger.is_about(block))
        });
        ends.map(|linger| linger.until).min()
    }
}
