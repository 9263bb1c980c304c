//! Identifiers of paths. An identifier is never reused, because it is part of the nonce
//! (`docs/spec/wire-0.md`).

use std::collections::BTreeSet;

use anabranch_types::PathId;

/// Which identifiers have been used up.
#[derive(Debug, Default)]
pub(super) struct Identifiers {
    /// The next identifier to assign: one above the highest seen.
    next: u32,
    /// All identifiers below are open, closed, or will never be opened.
    floor: u32,
    /// Closed identifiers from the floor on.
    closed: BTreeSet<u32>,
}

/// Most closed identifiers kept individually. If there are more, the gaps below the lowest ones
/// count as closed too.
const MOST_CLOSED: usize = 64;

impl Identifiers {
    /// The highest identifier seen so far.
    pub(super) fn highest(&self) -> u32 {
        self.next.saturating_sub(1)
    }

    /// The identifier of the next path.
    pub(super) fn next(&self) -> PathId {
        PathId(self.next)
    }

    /// Notes that a path with this identifier exists.
    pub(super) fn seen(&mut self, path: PathId) {
        self.next = self.next.max(path.0.saturating_add(1));
    }

    /// Whether the path with this identifier, which is not open, was closed, or was given up before
    /// any of its packets arrived.
    pub(super) fn is_closed(&self, path: PathId) -> bool {
        path.0 < self.floor || self.closed.contains(&path.0)
    }

    /// Notes that the path with this identifier is closed.
    pub(super) fn close(&mut self, path: PathId) {
        self.seen(path);
        if path.0 >= self.floor {
            self.closed.insert(path.0);
        }
        while self.closed.len() > MOST_CLOSED
            || self.closed.first().is_some_and(|first| *first == self.floor)
        {
            let Some(first) = self.closed.pop_first() else { break };
            self.floor = first + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_identifiers_stay_closed_in_bounded_memory() {
        let mut ids = Identifiers::default();
        ids.seen(PathId(3));
        assert_eq!((ids.highest(), ids.next()), (3, PathId(4)));
        for id in [1, 3] {
            ids.close(PathId(id));
        }
        assert!(ids.is_closed(PathId(1)) && ids.is_closed(PathId(3)));
        assert!(!ids.is_closed(PathId(0)) && !ids.is_closed(PathId(2)));
        for id in 4..10_000 {
            ids.close(PathId(id));
        }
        assert!(ids.closed.len() <= MOST_CLOSED);
        assert!((0..10_000).all(|id| id < 3 || ids.is_closed(PathId(id))));
        assert!(!ids.is_closed(PathId(10_000)));
    }
}
