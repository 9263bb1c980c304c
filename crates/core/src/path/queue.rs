//! What is assigned to a path and has not left.

use std::collections::VecDeque;

use anabranch_policy::scheduler::Work;
use anabranch_types::Time;

use crate::coding::send::OutgoingSymbol;

/// A symbol assigned to a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedSymbol {
    pub(crate) work: Work,
    pub(crate) symbol: OutgoingSymbol,
    pub(crate) not_before: Time,
    pub(crate) reason: &'static str,
}

/// New symbols that the scheduler gave a path at once and that leave at once: they are cut one by one as the
/// train is built, which spares them the queue.
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
    /// What comes after all that is ripe. None but while a train is built.
    granted: Option<Granted>,
}

impl PathQueue {
    pub(crate) fn len(&self) -> usize {
        let granted = self.granted.map_or(0, |granted| granted.left.into());
        self.ripe.len() + self.waiting.len() + granted
    }

    pub(crate) fn is_ripe(&self) -> bool {
        !self.ripe.is_empty()
    }

    /// The first symbol that may leave.
    pub(crate) fn front(&self) -> Option<&QueuedSymbol> {
        self.ripe.front()
    }

    /// When the first symbol that waits may leave.
    pub(crate) fn next_ripening(&self) -> Option<Time> {
        self.waiting.front().map(|assigned| assigned.not_before)
    }

    pub(crate) fn push(&mut self, now: Time, assigned: QueuedSymbol) {
        if assigned.not_before <= now {
            self.ripe.push_back(assigned);
            return;
        }
        let time = assigned.not_before;
        let place = self.waiting.partition_point(|other| other.not_before <= time);
        self.waiting.insert(place, assigned);
    }

    /// Moves what may leave by `now` behind what may leave already; returns whether anything moved.
    pub(crate) fn ripen(&mut self, now: Time) -> bool {
        let mut moved = false;
        while self.next_ripening().is_some_and(|time| time <= now) {
            self.ripe.extend(self.waiting.pop_front());
            moved = true;
        }
        moved
    }

    pub(crate) fn pop_back(&mut self) -> Option<QueuedSymbol> {
        self.waiting.pop_back().or_else(|| self.ripe.pop_back())
    }

    /// Takes the first symbol that may leave.
    pub(crate) fn pop_front(&mut self) -> Option<QueuedSymbol> {
        self.ripe.pop_front()
    }

    /// New symbols leave in this train, after all that is ripe.
    pub(crate) fn grant(&mut self, granted: Granted) {
        self.granted = Some(granted).filter(|granted| granted.left > 0);
    }

    /// Takes one of the symbols granted, of which the reason is returned.
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

    /// No more symbols can be cut.
    pub(crate) fn end_grant(&mut self) {
        self.granted = None;
    }

    /// Puts a symbol before all others.
    pub(crate) fn push_front(&mut self, queued: QueuedSymbol) {
        self.ripe.push_front(queued);
    }
}
