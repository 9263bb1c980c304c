//! A set of numbers stored as ranges, for example the received bytes of a stream or the
//! acknowledged packets.

use std::collections::VecDeque;

/// Capacity, in ranges, that is kept once it has been reached.
const SPARE: usize = 256;

/// The contiguous range from 0 that was seen, and the ranges beyond the first gap. Inserting
/// numbers again costs very little, regardless of their count.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    contiguous: u64,
    /// Disjoint ranges `(start, end)` in ascending order, none adjacent to another or to the
    /// contiguous range.
    beyond: VecDeque<(u64, u64)>,
}

impl Runs {
    /// All numbers below this one have been seen.
    pub(crate) const fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Number of ranges beyond the first gap.
    pub(crate) fn pieces(&self) -> usize {
        self.beyond.len()
    }

    /// Whether all of `range` has been seen.
    pub(crate) fn holds(&self, range: core::ops::Range<u64>) -> bool {
        let start = range.start.max(self.contiguous);
        let behind = self.beyond.partition_point(|piece| piece.1 <= start);
        let covers = |piece: &(u64, u64)| piece.0 <= start && range.end <= piece.1;
        range.end <= start || self.beyond.get(behind).is_some_and(covers)
    }

    /// The seen ranges from `start` on, in ascending order.
    pub(crate) fn from(&self, start: u64) -> impl Iterator<Item = core::ops::Range<u64>> + '_ {
        let pieces = self.beyond.iter().map(|piece| piece.0..piece.1);
        core::iter::once(start..self.contiguous.max(start)).chain(pieces)
    }

    /// Removes the ranges beyond the first gap.
    pub(crate) fn clear(&mut self) {
        self.beyond = VecDeque::new();
    }

    /// Marks `start..end` as seen. Calls `fresh` with each part that was not seen before, in
    /// ascending order.
    #[inline]
    pub(crate) fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
        let start = start.max(self.contiguous);
        if start >= end {
            return;
        }
        if start == self.contiguous && self.beyond.is_empty() {
            fresh(start, end);
            self.contiguous = end;
            return;
        }
        let first = self.beyond.partition_point(|piece| piece.1 < start);
        let mut merged = (start, end);
        let mut cursor = start;
        let mut last = first;
        while let Some(&(piece_start, piece_end)) = self.beyond.get(last)
            && piece_start <= end
        {
            if cursor < piece_start {
                fresh(cursor, piece_start);
            }
            cursor = cursor.max(piece_end);
            merged = (merged.0.min(piece_start), merged.1.max(piece_end));
            last += 1;
        }
        if cursor < end {
            fresh(cursor, end);
        }
        self.replace(first, last, merged);
    }

    /// Marks all numbers below `start` as seen.
    pub(crate) fn raise(&mut self, start: u64) {
        if start > self.contiguous {
            self.insert(self.contiguous, start, |_, _| {});
        }
    }

    /// Replaces the ranges `first..last` by `merged`, which covers them.
    fn replace(&mut self, first: usize, last: usize, merged: (u64, u64)) {
        if merged.0 == self.contiguous {
            // No range lies before the one adjacent to the contiguous range, so `first` is 0.
            self.contiguous = merged.1;
            self.beyond.drain(..last);
        } else if first == last {
            self.beyond.insert(first, merged);
        } else {
            if let Some(piece) = self.beyond.get_mut(first) {
                *piece = merged;
            }
            self.beyond.drain(first + 1..last);
        }
        // Shrink the list; otherwise each stream could keep the large capacity that one gap needed.
        if self.beyond.capacity() > SPARE && self.beyond.len() < self.beyond.capacity() / 4 {
            self.beyond.shrink_to(SPARE.max(2 * self.beyond.len()));
        }
    }
}
