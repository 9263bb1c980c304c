//! Detects replayed Initiations by the timestamps of each static key.

use crate::crypto::PublicKey;
use std::collections::BTreeMap;

/// Timestamps further ahead of the responder's clock than this, in nanoseconds, are remembered
/// separately, because one of the two clocks is wrong. If they were remembered with the others, one
/// holder of a key could lock out another for years. If they were refused, a responder whose clock
/// is slow after a restart would serve no peer.
const AHEAD: u64 = 300 * 1_000_000_000;
/// How many timestamps far ahead are remembered for each peer; the ones accepted last are kept.
const REMEMBERED_AHEAD: usize = 8;

/// How many of the newest timestamps of each peer are remembered. Connections that one key opens at
/// nearly the same time over paths of different delay arrive out of order; up to this many may
/// overtake one another.
const REMEMBERED: usize = 32;

/// Accepted timestamps of the peers used most recently.
///
/// Memory is bounded: the peer used least recently is dropped. A replay of a dropped peer's message
/// costs only a half-open connection, since its sender cannot make a data packet.
#[derive(Debug)]
pub(super) struct Replays {
    peers: BTreeMap<PublicKey, Accepted>,
    by_use: BTreeMap<u64, PublicKey>,
    uses: u64,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Accepted {
    /// Ascending, with the newest at the end; unused entries are zero.
    timestamps: [u64; REMEMBERED],
    /// Timestamps that were far ahead of the clock on arrival, with the latest arrival at the end.
    ahead: [u64; REMEMBERED_AHEAD],
    used: u64,
}

impl Accepted {
    fn is_fresh(&self, timestamp: u64, limit: u64) -> bool {
        let oldest = if self.has_room(limit) { 0 } else { self.timestamps[0] };
        let newer = timestamp > limit || timestamp > oldest;
        newer && !self.timestamps.contains(&timestamp) && !self.ahead.contains(&timestamp)
    }

    fn record(&mut self, timestamp: u64, limit: u64) {
        if !self.is_fresh(timestamp, limit) {
            return;
        }
        if timestamp > limit {
            self.ahead.rotate_left(1);
            self.ahead[REMEMBERED_AHEAD - 1] = timestamp;
            return;
        }
        let place = if self.has_room(limit) { REMEMBERED - 1 } else { 0 };
        self.timestamps[place] = timestamp;
        self.timestamps.sort_unstable();
    }

    /// Whether the largest remembered timestamp is beyond the limit because the clock was set back
    /// since. It may then be replaced.
    fn has_room(&self, limit: u64) -> bool {
        self.timestamps[REMEMBERED - 1] > limit
    }
}

impl Replays {
    pub(super) fn new(capacity: usize) -> Self {
        Replays { peers: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0, capacity }
    }

    /// Whether a message of `peer` with this timestamp may be accepted: the timestamp must not be a
    /// remembered one or older than all of them. `clock` is the responder's wall clock. Both are in
    /// nanoseconds since 1970.
    pub(super) fn is_fresh(&self, peer: &PublicKey, timestamp: u64, clock: u64) -> bool {
        let limit = clock.saturating_add(AHEAD);
        self.peers.get(peer).map_or(timestamp > 0, |accepted| accepted.is_fresh(timestamp, limit))
    }

    /// Remembers an accepted message.
    pub(super) fn record(&mut self, peer: PublicKey, timestamp: u64, clock: u64) {
        self.uses += 1;
        let accepted = self.peers.entry(peer).or_default();
        self.by_use.remove(&accepted.used);
        accepted.used = self.uses;
        accepted.record(timestamp, clock.saturating_add(AHEAD));
        self.by_use.insert(self.uses, peer);
        while self.peers.len() > self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.peers.remove(&oldest);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.peers.len().max(self.by_use.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock later than the timestamps in the tests.
    const CLOCK: u64 = 1000;

    fn key(value: u64) -> PublicKey {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&value.to_be_bytes());
        PublicKey(bytes)
    }

    #[test]
    fn no_accepted_timestamp_is_fresh_again() {
        let mut replays = Replays::new(4);
        let arrivals = [50, 48, 53, 49, 60, 61, 62, 63, 64, 65, 66, 67, 52];
        for timestamp in arrivals {
            if replays.is_fresh(&key(1), timestamp, CLOCK) {
                replays.record(key(1), timestamp, CLOCK);
            }
            assert!(!replays.is_fresh(&key(1), timestamp, CLOCK), "{timestamp}");
        }
        assert!(replays.is_fresh(&key(1), 68, CLOCK));
        assert!(replays.is_fresh(&key(2), 1, CLOCK));
        assert!(!replays.is_fresh(&key(2), 0, CLOCK));
    }

    #[test]
    fn an_overtaken_message_is_still_fresh() {
        let mut replays = Replays::new(4);
        replays.record(key(1), 100, CLOCK);
        assert!(replays.is_fresh(&key(1), 99, CLOCK));
    }

    #[test]
    fn the_table_forgets_the_peer_used_longest_ago() {
        let mut replays = Replays::new(3);
        for peer in 0..3 {
            replays.record(key(peer), 10, CLOCK);
        }
        replays.record(key(0), 11, CLOCK);
        for peer in 3..5 {
            replays.record(key(peer), 10, CLOCK);
        }
        assert_eq!(replays.len(), 3);
        assert!(!replays.is_fresh(&key(0), 10, CLOCK));
        assert!(replays.is_fresh(&key(1), 10, CLOCK));
        assert!(replays.is_fresh(&key(2), 10, CLOCK));
    }

    /// A snapshot was restored, or the clock was wrong, so the remembered timestamps are years in
    /// the future.
    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let mut replays = Replays::new(4);
        let later = 10 * AHEAD;
        for timestamp in 0..100 {
            replays.record(key(1), later + timestamp, later);
        }
        assert!(!replays.is_fresh(&key(1), later, later));
        for timestamp in [500, 400, 300] {
            assert!(replays.is_fresh(&key(1), timestamp, CLOCK), "{timestamp}");
            replays.record(key(1), timestamp, CLOCK);
            assert!(!replays.is_fresh(&key(1), timestamp, CLOCK), "{timestamp}");
        }
    }

    #[test]
    fn timestamps_far_ahead_are_remembered_apart() {
        let mut replays = Replays::new(4);
        for year in 2..2 + REMEMBERED_AHEAD as u64 {
            assert!(replays.is_fresh(&key(1), year * AHEAD, CLOCK));
            replays.record(key(1), year * AHEAD, CLOCK);
        }
        for year in 2..2 + REMEMBERED_AHEAD as u64 {
            assert!(!replays.is_fresh(&key(1), year * AHEAD, CLOCK));
            // The timestamp is not fresh either once the clock has reached it.
            assert!(!replays.is_fresh(&key(1), year * AHEAD, year * AHEAD));
        }
        assert!(replays.is_fresh(&key(1), 1, CLOCK));
    }
}
