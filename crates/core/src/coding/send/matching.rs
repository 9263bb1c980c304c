//! Determines which lost symbols the repairs of a code that slides replace. Repairs cover symbols
//! of several blocks, so it does not suffice to count a block's own repairs that arrived.

use core::ops::Range;

use anabranch_policy::code::Coverage;
use anabranch_policy::view::{BlockId, SymbolId};

use super::SendBlocks;
use super::block::{Symbol, SymbolState};

/// Which missing symbols the repairs that have arrived replace. Each repair replaces one symbol
/// that it covers.
#[derive(Debug, Default)]
pub(super) struct Matching {
    /// The repairs that may still be of use, by the first symbol that they cover.
    repairs: Vec<Repair>,
    /// From the receiver's report: its first missing symbol, and how many independent symbols it
    /// needs to recover this one and all symbols that its repairs cover.
    unfinished: Option<(SymbolId, u16)>,
    /// Whether something has changed since the repairs were matched.
    is_stale: bool,
    /// Whether there may be lost symbols. If there are none, there is nothing to match.
    any_lost: bool,
    /// Symbols that were lost, and symbols in flight that repairs may cover, by rising id.
    missing: Vec<Missing>,
    /// For [`Self::assign`]; reused.
    free: Free,
}

/// A repair that has arrived.
#[derive(Clone, Copy, Debug)]
struct Repair {
    coverage: Coverage,
    /// Whether the repair has arrived since repairs were last matched.
    is_new: bool,
    /// Whether the repair replaces a symbol.
    is_used: bool,
}

/// A symbol that is not known to have arrived.
#[derive(Clone, Copy, Debug)]
struct Missing {
    id: u64,
    /// Whether the symbol was lost and is not in flight again.
    is_lost: bool,
    /// Whether a repair covers the symbol.
    is_covered: bool,
    /// Whether a repair replaces the symbol, once all other symbols that the repair covers are
    /// known.
    is_good: bool,
}

impl Matching {
    /// Notes that a source has arrived or, if a coverage is given, a repair.
    pub(super) fn on_received(&mut self, repair: Option<Coverage>) {
        self.is_stale = true;
        if let Some(coverage) = repair {
            let at = self.repairs.partition_point(|other| other.coverage.first <= coverage.first);
            self.repairs.insert(at, Repair { coverage, is_new: true, is_used: false });
        }
    }

    /// Notes that a symbol was lost.
    pub(super) fn on_lost(&mut self) {
        (self.is_stale, self.any_lost) = (true, true);
    }

    /// The end of the highest coverage: no repair covers symbols from here on.
    fn end(&self) -> u64 {
        self.repairs.iter().map(|repair| repair.coverage.end()).max().unwrap_or(0)
    }

    /// The range of `missing` with the symbols that a repair covers.
    fn covered(missing: &[Missing], coverage: &Coverage) -> Range<usize> {
        let place = |id| missing.partition_point(|one| one.id < id);
        place(coverage.first.0)..place(coverage.end())
    }

    /// Drops repairs that cover no missing symbol, and repairs that a receiver need not keep: those
    /// beyond `most`, and new ones if together with them more than `most` missing symbols are
    /// covered.
    fn forget(&mut self, most: usize) {
        let missing = &self.missing;
        self.repairs.retain(|one| !Self::covered(missing, &one.coverage).is_empty());
        self.repairs.truncate(most);
        self.mark_covered();
        if self.missing.iter().filter(|one| one.is_covered).count() > most {
            self.repairs.retain(|one| !one.is_new);
            self.mark_covered();
        }
        self.repairs.iter_mut().for_each(|one| (one.is_new, one.is_used) = (false, false));
    }

    fn mark_covered(&mut self) {
        self.missing.iter_mut().for_each(|one| one.is_covered = false);
        // Missing symbols before this index were marked for an earlier repair, or are before all
        // remaining coverages.
        let mut next = 0;
        for Repair { coverage, .. } in &self.repairs {
            let before = |one: &Missing| one.id < coverage.first.0;
            next = next.max(self.missing.partition_point(before));
            while let Some(one) = self.missing.get_mut(next).filter(|one| one.id < coverage.end()) {
                one.is_covered = true;
                next += 1;
            }
        }
    }

    /// Assigns to each repair, by falling start of coverage, the newest unassigned symbol that it
    /// covers, lost symbols before others. No other order replaces more lost symbols (Lipski and
    /// Preparata 1981). Because the newest symbols are chosen, the oldest ones, for which all
    /// others wait, do not depend on the rest of a repair's coverage.
    fn assign(&mut self) {
        for is_lost in [true, false] {
            self.free.fill(self.missing.iter().map(|one| one.is_lost == is_lost && !one.is_good));
            for repair in self.repairs.iter_mut().rev().filter(|repair| !repair.is_used) {
                let covered = Self::covered(&self.missing, &repair.coverage);
                if let Some(at) = self.free.take_last(covered) {
                    (self.missing[at].is_good, repair.is_used) = (true, true);
                }
            }
        }
    }

    /// How many more symbols than expected the receiver needs, which is the number of repairs that
    /// were of no use to it.
    fn doubt(&self) -> usize {
        let Some((first, missing)) = self.unfinished else { return 0 };
        let counts = |one: &&Missing| one.is_covered || one.id == first.0;
        let expected = self.missing.iter().filter(counts).filter(|one| !one.is_good).count();
        usize::from(missing).saturating_sub(expected)
    }

    /// Whether the symbol was lost and a repair replaces it.
    fn is_good(&self, id: u64) -> bool {
        let at = self.missing.binary_search_by_key(&id, |one| one.id);
        at.is_ok_and(|at| self.missing[at].is_good)
    }
}

/// A sequence of places, some of them free. Finding the last free place of a range stays fast as
/// places are taken.
#[derive(Debug, Default)]
struct Free {
    /// For each place, counted from 1: the place itself if it is free, else an earlier one with no
    /// free place in between.
    before: Vec<usize>,
}

impl Free {
    fn fill(&mut self, places: impl Iterator<Item = bool>) {
        self.before.clear();
        self.before.push(0);
        self.before.extend((1..).zip(places).map(|(at, is_free)| at - usize::from(!is_free)));
    }

    /// Takes the last free place of a range.
    fn take_last(&mut self, range: Range<usize>) -> Option<usize> {
        let mut at = range.end;
        while self.before[at] != at {
            self.before[at] = self.before[self.before[at]];
            at = self.before[at];
        }
        let place = at.checked_sub(1).filter(|place| *place >= range.start)?;
        self.before[at] = place;
        Some(place)
    }
}

/// Whether the source was sent, is not known to have arrived, and is not in flight, queued or due
/// again.
fn is_lost(state: &SymbolState) -> bool {
    state.carried != 0 && !state.received && state.copies == 0 && state.queued == 0 && !state.due
}

impl SendBlocks {
    /// With a code that slides: processes the receiver's report that `first` is its first missing
    /// symbol, and that it needs `missing` independent symbols to recover this one and all symbols
    /// that its repairs cover.
    pub fn on_unfinished(&mut self, first: SymbolId, missing: u16) {
        if let Some(sliding) = &mut self.sliding {
            sliding.matching.unfinished = Some((first, missing));
            sliding.matching.is_stale = true;
        }
    }

    /// Determines which symbols the repairs of a code that slides replace. `each` is called for
    /// every block that needs more symbols than was assumed.
    pub fn match_repairs(&mut self, mut each: impl FnMut(BlockId)) {
        let (Some(most), floor) = (self.limits.slides, self.floor().0) else { return };
        let Some(sliding) = &mut self.sliding else { return };
        let matching = &mut sliding.matching;
        if !core::mem::take(&mut matching.is_stale) {
            return;
        }
        matching.repairs.retain(|one| one.coverage.end() > floor);
        if !matching.any_lost {
            return;
        }
        matching.missing.clear();
        let end = matching.end();
        for (view, block) in self.views.iter().zip(&self.blocks) {
            if block.sources_acknowledged == view.sources {
                continue;
            }
            for (id, source) in (view.first.0..).zip(&block.sources) {
                let is_lost = is_lost(&source.state);
                if is_lost || (!source.state.received && id < end) {
                    let (is_covered, is_good) = (false, false);
                    matching.missing.push(Missing { id, is_lost, is_covered, is_good });
                }
            }
        }
        matching.any_lost = matching.missing.iter().any(|one| one.is_lost);
        matching.forget(most.into());
        matching.assign();
        let doubt = u16::try_from(matching.doubt()).unwrap_or(u16::MAX);
        let mut missing = matching.missing.iter().peekable();
        for (at, (view, block)) in self.views.iter_mut().zip(&mut self.blocks).enumerate() {
            let end = view.first.0 + u64::from(view.sources);
            block.matched = 0;
            while let Some(one) = missing.next_if(|one| one.id < end) {
                block.matched += u16::from(one.is_lost && one.is_good);
            }
            // The doubt counts for the first block, for which the receiver waits.
            let doubt = if at == 0 { doubt.min(block.matched) } else { 0 };
            let before = view.received;
            view.received = block.sources_acknowledged + block.matched - doubt;
            if view.received < before {
                each(view.id);
            }
        }
    }

    /// Repairs that are remembered because they may still be of use.
    #[cfg(test)]
    pub fn remembered_repairs(&self) -> usize {
        self.sliding.as_ref().map_or(0, |sliding| sliding.matching.repairs.len())
    }

    /// With a code that slides: makes up to `count` lost symbols of a block due again, first those
    /// that no repair replaces, and returns how many. Unlike a repair, a lost symbol is always of
    /// use by itself.
    pub(super) fn resend_lost(&mut self, index: usize, count: u16) -> u16 {
        if self.sliding.is_none() {
            return 0;
        }
        let mut resent = 0;
        for good in [false, true] {
            for at in 0..self.blocks[index].sources.len() {
                let id = self.views[index].first.0 + at as u64;
                let Some(sliding) = &self.sliding else { return 0 };
                let state = &self.blocks[index].sources[at].state;
                if resent < count && is_lost(state) && sliding.matching.is_good(id) == good {
                    self.flag_due(index, Symbol::Source(at));
                    resent += 1;
                }
            }
        }
        resent
    }
}
