//! A set of the numbers seen so far as runs: bytes of a stream that arrived, packets that were acknowledged.

use std::collections::VecDeque;

/// Capacity, in pieces, that is kept once it has been reached.
const SPARE: usize = 256;

/// The stretch that was seen without a hole, and the pieces beyond it. What is seen again costs next to nothing,
/// however long it is.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    contiguous: u64,
    /// Disjoint `(start, end)`, rising, none touching another or the contiguous stretch.
    beyond: VecDeque<(u64, u64)>,
}

impl Runs {
    /// Everything below this has been seen.
    pub(crate) const fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Pieces beyond the first hole.
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

    /// Ranges seen from `start` on, in rising order.
    pub(crate) fn from(&self, start: u64) -> impl Iterator<Item = core::ops::Range<u64>> + '_ {
        let pieces = self.beyond.iter().map(|piece| piece.0..piece.1);
        core::iter::once(start..self.contiguous.max(start)).chain(pieces)
    }

    /// Forgets the pieces.
    pub(crate) fn clear(&mut self) {
        self.beyond = VecDeque::new();
    }

    /// Marks `start..end` as seen; `fresh` is called with every part of it that was not, rising.
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

    /// Everything below `start` counts as seen.
    pub(crate) fn raise(&mut self, start: u64) {
        if start > self.contiguous {
            self.insert(self.contiguous, start, |_, _| {});
        }
    }

    /// Puts `merged` in the place of the pieces `first..last`, which it covers.
    fn replace(&mut self, first: usize, last: usize, merged: (u64, u64)) {
        if merged.0 == self.contiguous {
            // No piece lies before one that touches the contiguous stretch, so `first` is 0.
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
        // Shrink the list; otherwise every stream in turn would keep the capacity that one hole took.
        if self.beyond.capacity() > SPARE && self.beyond.len() < self.beyond.capacity() / 4 {
            self.beyond.shrink_to(SPARE.max(2 * self.beyond.len()));
        }
    }
}
