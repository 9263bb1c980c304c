//! Counts losses before repair: source symbols that lost every early copy. A copy is early if it left before the fate
//! of any copy of its symbol was known.

use std::collections::VecDeque;

use anabranch_policy::view::SymbolId;

/// Most symbols of recovered blocks that are remembered; the oldest are dropped without being
/// counted.
const MOST_KEPT: usize = 256;

/// The early copies of one symbol.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Early {
    /// Paths, by slot, with an early copy in flight.
    open: u16,
    /// Whether copies that leave from now on are not early.
    over: bool,
    /// Whether the symbol has been counted: one early copy arrived, or all are lost.
    settled: bool,
}

impl Early {
    /// Notes that a copy left on the path in `slot`, and returns whether it is early. A second copy
    /// on a path where one is in flight is a probe: neither it nor later copies are early.
    #[inline]
    pub(super) fn on_sent(&mut self, slot: u8) -> bool {
        self.over |= self.open & (1 << slot) != 0;
        self.open |= if self.over { 0 } else { 1 << slot };
        !self.over
    }

    /// Notes that the fate of a copy is known or no longer matters, so that copies that leave from
    /// now on are not early.
    #[inline]
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    /// Notes the fate of the early copy on the path in `slot`. Once it is certain whether all early
    /// copies are lost, returns that.
    #[inline]
    pub(super) fn on_fate(&mut self, slot: u8, received: bool) -> Option<bool> {
        self.over = true;
        if self.settled || self.open & (1 << slot) == 0 {
            return None;
        }
        self.open &= !(1 << slot);
        self.settled = received || self.open == 0;
        self.settled.then_some(!received)
    }

    fn is_undecided(&self) -> bool {
        !self.settled && self.open != 0
    }
}

/// Symbols of recovered blocks with early copies in flight, in the order of their ids. The capacity
/// is kept, so that packets allocate nothing.
#[derive(Debug, Default)]
pub(super) struct Undecided(VecDeque<(SymbolId, Early)>);

impl Undecided {
    /// Remembers a symbol whose block has been retired, if its loss before repair is undecided.
    pub(super) fn keep(&mut self, symbol: SymbolId, early: Early) {
        if !early.is_undecided() {
            return;
        }
        if self.0.len() == MOST_KEPT {
            self.0.pop_front();
        }
        // Most symbols are newer than all others and go to the end.
        let place = self.0.partition_point(|(other, _)| *other < symbol);
        self.0.insert(place, (symbol, early));
    }

    /// Notes the fate of an early copy. Returns the same as [`Early::on_fate`].
    pub(super) fn on_fate(&mut self, symbol: SymbolId, slot: u8, received: bool) -> Option<bool> {
        let place = self.0.binary_search_by_key(&symbol, |(other, _)| *other).ok()?;
        let answer = self.0.get_mut(place)?.1.on_fate(slot, received);
        if answer.is_some() {
            self.0.remove(place);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_arrival_settles_it_and_so_does_the_last_loss() {
        let mut early = Early::default();
        early.on_sent(0);
        early.on_sent(3);
        let mut other = early;
        assert_eq!(early.on_fate(3, true), Some(false));
        assert_eq!(early.on_fate(0, false), None, "no news");
        assert_eq!(other.on_fate(0, false), None, "the other is under way");
        assert_eq!(other.on_fate(3, false), Some(true));
    }

    #[test]
    fn what_leaves_after_a_loss_repairs() {
        let mut early = Early::default();
        early.on_sent(0);
        early.on_sent(1);
        assert_eq!(early.on_fate(0, false), None);
        assert!(!early.on_sent(0) && !early.on_sent(2));
        assert_eq!(early.on_fate(1, false), Some(true));
        assert!(!early.on_sent(1));
    }

    #[test]
    fn a_probe_on_the_same_path_does_not_count_nor_what_follows() {
        let mut early = Early::default();
        assert!(early.on_sent(0));
        assert!(!early.on_sent(0) && !early.on_sent(1));
        assert_eq!(early.on_fate(0, false), Some(true));
    }

    #[test]
    fn symbols_of_blocks_that_are_gone_are_settled_as_well() {
        let mut early = Early::default();
        early.on_sent(0);
        let mut undecided = Undecided::default();
        undecided.keep(SymbolId(7), early);
        undecided.keep(SymbolId(8), Early::default());
        assert_eq!(undecided.on_fate(SymbolId(8), 0, false), None, "it never left");
        assert_eq!(undecided.on_fate(SymbolId(7), 1, true), None);
        assert_eq!(undecided.on_fate(SymbolId(7), 0, false), Some(true));
        assert_eq!(undecided.on_fate(SymbolId(7), 0, false), None);
        for id in 0..1000 {
            undecided.keep(SymbolId(id), early);
        }
        assert_eq!(undecided.0.len(), MOST_KEPT);
        assert_eq!(undecided.on_fate(SymbolId(999), 0, true), Some(false));
    }
}
