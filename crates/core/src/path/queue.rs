//! Symbols assigned to a path that have not been sent yet.

use std::collections::VecDeque;

use anabranch_types::Time;

use super::UDP_OVERHEAD;
use crate::coding::send::OutgoingSymbol;
use crate::wire::REPAIR_OVERHEAD;
use crate::wire::header::DATA_OVERHEAD;

/// A symbol assigned to a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedSymbol {
    pub(crate) symbol: OutgoingSymbol,
    pub(crate) not_before: Time,
    pub(crate) reason: &'static str,
}

/// New symbols that the scheduler assigned to a path together and that may leave at once. They are
/// cut one by one while the train is built, so they need no queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    /// Symbols not cut yet.
    pub(crate) left: u16,
    pub(crate) reason: &'static str,
}

/// The queue of one path: first in, first out among the symbols that may leave.
#[derive(Debug, Default)]
pub(crate) struct PathQueue {
    ripe: VecDeque<QueuedSymbol>,
    /// Symbols that must not leave yet, by rising time.
    waiting: VecDeque<QueuedSymbol>,
    /// New symbols that follow all ripe ones. `Some` only while a train is built.
    granted: Option<Granted>,
    /// Bytes on the wire of all ripe and waiting symbols.
    bytes: u64,
}

/// Bytes on the wire of a symbol in its own packet.
fn wire_bytes(queued: &QueuedSymbol) -> u64 {
    let overhead = (DATA_OVERHEAD + REPAIR_OVERHEAD) as u64 + UDP_OVERHEAD;
    overhead + u64::from(queued.symbol.length)
}

impl PathQueue {
    pub(crate) fn len(&self) -> usize {
        self.ripe.len() + self.waiting.len()
    }

    /// Bytes on the wire of all queued symbols, each in its own packet.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_ripe(&self) -> bool {
        !self.ripe.is_empty()
    }

    /// The first symbol that may leave.
    pub(crate) fn front(&self) -> Option<&QueuedSymbol> {
        self.ripe.front()
    }

    /// When the first waiting symbol may leave.
    pub(crate) fn next_ripening(&self) -> Option<Time> {
        self.waiting.front().map(|assigned| assigned.not_before)
    }

    pub(crate) fn push(&mut self, now: Time, assigned: QueuedSymbol) {
        self.bytes += wire_bytes(&assigned);
        if assigned.not_before <= now {
            self.ripe.push_back(assigned);
            return;
        }
        let time = assigned.not_before;
        let place = self.waiting.partition_point(|other| other.not_before <= time);
        self.waiting.insert(place, assigned);
    }

    /// Moves the waiting symbols that may leave by `now` behind the ripe ones. Returns whether any
    /// were moved.
    pub(crate) fn ripen(&mut self, now: Time) -> bool {
        let mut moved = false;
        while self.next_ripening().is_some_and(|time| time <= now) {
            self.ripe.extend(self.waiting.pop_front());
            moved = true;
        }
        moved
    }

    pub(crate) fn pop_back(&mut self) -> Option<QueuedSymbol> {
        let last = self.waiting.pop_back().or_else(|| self.ripe.pop_back());
        self.left(last)
    }

    /// Takes the first symbol that may leave.
    pub(crate) fn pop_front(&mut self) -> Option<QueuedSymbol> {
        let first = self.ripe.pop_front();
        self.left(first)
    }

    fn left(&mut self, queued: Option<QueuedSymbol>) -> Option<QueuedSymbol> {
        self.bytes -= queued.as_ref().map_or(0, wire_bytes);
        queued
    }

    /// Grants new symbols, which leave in this train after all ripe ones.
    pub(crate) fn grant(&mut self, granted: Granted) {
        self.granted = Some(granted).filter(|granted| granted.left > 0);
    }

    /// Takes one of the granted symbols; returns the scheduler's reason for it.
    #[inline]
    pub(crate) fn take_granted(&mut self) -> Option<&'static str> {
        let granted = self.granted.as_mut()?;
        let reason = granted.reason;
        granted.left -= 1;
        if granted.left == 0 {
            self.granted = None;
        }
        Some(reason)
    }

    /// Ends the grant because no more symbols can be cut.
    pub(crate) fn end_grant(&mut self) {
        self.granted = None;
    }

    /// Puts a symbol before all others.
    pub(crate) fn push_front(&mut self, queued: QueuedSymbol) {
        self.bytes += wire_bytes(&queued);
        self.ripe.push_front(queued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::sent::Carried;
    use anabranch_policy::code::Coverage;
    use anabranch_policy::view::{BlockId, SymbolId};

    fn symbol(length: u16, not_before: u64) -> QueuedSymbol {
        let carried = Carried::Source(BlockId(0), SymbolId(0));
        let coverage = Coverage { first: SymbolId(0), count: 1 };
        let symbol = OutgoingSymbol { carried, coverage, length, again: false };
        let not_before = Time::from_millis(not_before);
        QueuedSymbol { symbol, not_before, reason: "" }
    }

    #[test]
    fn short_symbols_count_for_what_they_take() {
        let empty = wire_bytes(&symbol(0, 0));
        let mut queue = PathQueue::default();
        for (length, not_before) in [(1000, 0), (10, 0), (300, 7), (20, 3)] {
            queue.push(Time::from_millis(1), symbol(length, not_before));
        }
        assert_eq!(queue.bytes(), 4 * empty + 1330);
        let first = queue.pop_front().unwrap();
        assert_eq!(queue.bytes(), 3 * empty + 330);
        queue.push_front(first);
        queue.ripen(Time::from_millis(3));
        assert_eq!(queue.bytes(), 4 * empty + 1330);
        assert_eq!(queue.pop_back().map(|last| last.symbol.length), Some(300));
        assert_eq!(queue.bytes(), 3 * empty + 1030);
        while queue.pop_front().is_some() {}
        assert_eq!((queue.bytes(), queue.pop_back().is_none()), (0, true));
    }
}
