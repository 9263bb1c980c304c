//! Which bytes of a stream have arrived.

use std::collections::VecDeque;

/// Pieces that there is always room for once there were as many.
const SPARE: usize = 256;

/// The stretch that arrived without a hole, and the pieces beyond it.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    contiguous: u64,
    /// Disjoint `(start, end)`, rising, none touching another or the contiguous stretch.
    beyond: VecDeque<(u64, u64)>,
}

impl Assembler {
    /// Everything below this offset has arrived.
    pub(super) const fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Pieces beyond the first hole.
    pub(super) fn pieces(&self) -> usize {
        self.beyond.len()
    }

    /// Whether all bytes of `range` have arrived.
    pub(super) fn holds(&self, range: core::ops::Range<u64>) -> bool {
        let start = range.start.max(self.contiguous);
        let behind = self.beyond.partition_point(|piece| piece.1 <= start);
        let covers = |piece: &(u64, u64)| piece.0 <= start && range.end <= piece.1;
        range.end <= start || self.beyond.get(behind).is_some_and(covers)
    }

    /// Forgets the pieces.
    pub(super) fn clear(&mut self) {
        self.beyond = VecDeque::new();
    }

    /// Marks `start..end` as arrived; `fresh` is called with every part of it that had not, rising.
    #[inline]
    pub(super) fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
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
        // The room that one hole took must not stay with every stream in turn.
        if self.beyond.capacity() > SPARE && self.beyond.len() < self.beyond.capacity() / 4 {
            self.beyond.shrink_to(SPARE.max(2 * self.beyond.len()));
        }
    }
}
