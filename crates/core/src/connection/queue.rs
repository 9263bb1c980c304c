//! What is assigned to a path and has not left.

use std::collections::VecDeque;

use anabranch_policy::scheduler::{Pick, Work};
use anabranch_types::Time;

use super::Connection;
use crate::coding::send::Taken;

/// A symbol assigned to a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assigned {
    pub(super) work: Work,
    pub(super) taken: Taken,
    pub(super) not_before: Time,
    pub(super) reason: &'static str,
}

/// The queue of one path: first in, first out among the symbols that may leave.
#[derive(Debug, Default)]
pub(super) struct PathQueue {
    ripe: VecDeque<Assigned>,
    /// Symbols that must not leave yet, by rising time.
    waiting: VecDeque<Assigned>,
}

impl PathQueue {
    pub(super) fn len(&self) -> usize {
        self.ripe.len() + self.waiting.len()
    }

    pub(super) fn is_ripe(&self) -> bool {
        !self.ripe.is_empty()
    }

    /// The first symbol that may leave.
    pub(super) fn front(&self) -> Option<&Assigned> {
        self.ripe.front()
    }

    /// When the first symbol that waits may leave.
    pub(super) fn next_ripening(&self) -> Option<Time> {
        self.waiting.front().map(|assigned| assigned.not_before)
    }

    fn push(&mut self, now: Time, assigned: Assigned) {
        if assigned.not_before <= now {
            self.ripe.push_back(assigned);
            return;
        }
        let time = assigned.not_before;
        let place = self.waiting.partition_point(|other| other.not_before <= time);
        self.waiting.insert(place, assigned);
    }

    /// Moves what may leave by `now` behind what may leave already; returns whether anything moved.
    pub(super) fn ripen(&mut self, now: Time) -> bool {
        let mut moved = false;
        while self.next_ripening().is_some_and(|time| time <= now) {
            self.ripe.extend(self.waiting.pop_front());
            moved = true;
        }
        moved
    }

    fn pop_back(&mut self) -> Option<Assigned> {
        self.waiting.pop_back().or_else(|| self.ripe.pop_back())
    }
}

impl Connection {
    /// Takes the next symbol of `work` for the path in `slot`; new symbols are cut now, so that they are
    /// sent in the order of their assignment. None is taken that is longer than `room`, if there is such a
    /// limit and the length is known beforehand.
    pub(super) fn take_for(
        &mut self,
        now: Time,
        work: Work,
        slot: usize,
        room: Option<usize>,
    ) -> Option<Taken> {
        match work {
            Work::Fresh => self.cut_symbol(now, room),
            Work::Window(id) | Work::Copy(id)
                if room.is_some_and(|room| self.send.longest(id) > room) =>
            {
                None
            }
            _ => self.send.take(work, slot as u8),
        }
    }

    /// Puts the picked work into its path's queue, as far as there is any. Returns whether there was.
    pub(super) fn assign(&mut self, now: Time, pick: Pick, reason: &'static str) -> bool {
        let Some(slot) = self.slot_of(pick.path).filter(|slot| self.may_carry_data(*slot)) else {
            return false;
        };
        let before = self.queues[slot].len();
        for _ in 0..pick.count {
            let Some(taken) = self.take_for(now, pick.work, slot, None) else { break };
            let Pick { work, not_before, .. } = pick;
            self.send.enqueue(taken.carried, slot as u8);
            self.queues[slot].push(now, Assigned { work, taken, not_before, reason });
        }
        let assigned = self.queues[slot].len() > before;
        if assigned {
            self.changed();
        }
        assigned
    }

    /// Puts a symbol that found no room in a packet first in the path's queue.
    pub(super) fn put_first(&mut self, slot: usize, assigned: Assigned) {
        self.send.enqueue(assigned.taken.carried, slot as u8);
        self.queues[slot].ripe.push_front(assigned);
    }

    /// The first symbol in the path's queue that may leave and that is still needed.
    pub(super) fn next_assigned(&mut self, now: Time, slot: usize) -> Option<Assigned> {
        self.queues[slot].ripen(now);
        while let Some(assigned) = self.queues[slot].ripe.pop_front() {
            if let Some(taken) = self.send.dequeue(assigned.taken.carried, slot as u8) {
                return Some(Assigned { taken, ..assigned });
            }
        }
        None
    }

    /// Takes back what waits in the path's queue beyond its first `keep` symbols.
    pub(super) fn take_back(&mut self, slot: usize, keep: usize) {
        while self.queues[slot].len() > keep {
            let Some(assigned) = self.queues[slot].pop_back() else { break };
            self.send.take_back(assigned.taken.carried, slot as u8);
        }
        self.changed();
    }
}
