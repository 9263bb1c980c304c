//! A set of stream offsets as sorted ranges.

use std::collections::VecDeque;

/// Disjoint half-open ranges `[start, end)`, sorted, with a gap between any two.
///
/// An insertion at the upper end takes constant time. Elsewhere it takes a binary search and moves
/// the ranges on one side. Nothing is allocated once the list has reached its largest size.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    list: VecDeque<(u64, u64)>,
    covered: u64,
}

impl Ranges {
    /// The empty set.
    pub fn new() -> Self {
        Ranges::default()
    }

    /// Adds `[start, end)` and hands every part that was not in the set to `fresh`, in rising order.
    pub fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let first = match self.list.back() {
            // The common cases: beyond everything, or into the last range.
            None => 0,
            Some(last) if start > last.1 => self.list.len(),
            Some(last) if start >= last.0 => self.list.len() - 1,
            Some(_) => self.list.partition_point(|range| range.1 < start),
        };
        let (mut from, mut to, mut cursor, mut last) = (start, end, start, first);
        while let Some(&(s, e)) = self.list.get(last) {
            if s > end {
                break;
            }
            if cursor < s {
                fresh(cursor, s);
                self.covered += s - cursor;
            }
            cursor = cursor.max(e);
            from = from.min(s);
            to = to.max(e);
            last += 1;
        }
        if cursor < end {
            fresh(cursor, end);
            self.covered += end - cursor;
        }
        match self.list.get_mut(first) {
            Some(range) if last > first => {
                *range = (from, to);
                if last - first > 1 {
                    self.list.drain(first + 1..last);
                }
            }
            _ => self.list.insert(first, (from, to)),
        }
    }

    /// Removes everything below `offset`.
    pub fn remove_below(&mut self, offset: u64) {
        while let Some(front) = self.list.front_mut() {
            if front.1 <= offset {
                self.covered -= front.1 - front.0;
                self.list.pop_front();
            } else {
                if front.0 < offset {
                    self.covered -= offset - front.0;
                    front.0 = offset;
                }
                break;
            }
        }
    }

    /// The range that holds `offset`.
    pub fn containing(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.list.partition_point(|range| range.1 <= offset);
        self.list.get(index).copied().filter(|range| range.0 <= offset)
    }

    /// The first range that ends above `offset`.
    pub fn at_or_after(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.list.partition_point(|range| range.1 <= offset);
        self.list.get(index).copied()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.list.front().copied()
    }

    /// The highest range.
    pub fn last(&self) -> Option<(u64, u64)> {
        self.list.back().copied()
    }

    /// All ranges in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.list.iter().copied()
    }

    /// Number of offsets in the set.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.list.clear();
        self.covered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_offsets(
            operations in proptest::collection::vec((0_u64..60, 0_u64..12, any::<bool>()), 1..80),
        ) {
            let (mut ranges, mut model) = (Ranges::new(), BTreeSet::new());
            for (start, len, remove) in operations {
                if remove && len == 0 {
                    ranges.remove_below(start);
                    model.retain(|offset| *offset >= start);
                    continue;
                }
                let mut fresh = BTreeSet::new();
                ranges.insert(start, start + len, |s, e| fresh.extend(s..e));
                for offset in start..start + len {
                    prop_assert_eq!(model.insert(offset), fresh.contains(&offset));
                }
                prop_assert_eq!(ranges.covered(), model.len() as u64);
                let flat: Vec<u64> = ranges.iter().flat_map(|(s, e)| s..e).collect();
                prop_assert!(flat.iter().eq(model.iter()));
                let gaps = ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0);
                prop_assert!(gaps);
                for offset in 0..75 {
                    prop_assert_eq!(ranges.containing(offset).is_some(), model.contains(&offset));
                }
            }
        }
    }
}
