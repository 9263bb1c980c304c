//! Which Initiations have been accepted before, by the timestamps of each static key.

use crate::crypto::PublicKey;
use std::collections::BTreeMap;

/// Newest timestamps remembered of one peer. Connections that one key opens at nearly the same time
/// over paths of different delay arrive out of order; up to this many may overtake one another.
const REMEMBERED: usize = 32;

/// Accepted timestamps of the peers used most recently.
///
/// Memory is bounded; what is forgotten is the peer used longest ago. A replay from a forgotten peer
/// costs one half-open connection and nothing more, since its sender cannot make a data packet.
#[derive(Debug)]
pub(super) struct Replays {
    peers: BTreeMap<PublicKey, Accepted>,
    by_use: BTreeMap<u64, PublicKey>,
    uses: u64,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Accepted {
    /// Ascending, the newest at the end; zeros where none was accepted.
    timestamps: [u64; REMEMBERED],
    used: u64,
}

impl Accepted {
    fn is_fresh(&self, timestamp: u64) -> bool {
        timestamp > self.timestamps[0] && !self.timestamps.contains(&timestamp)
    }

    fn record(&mut self, timestamp: u64) {
        if self.is_fresh(timestamp) {
            self.timestamps[0] = timestamp;
            self.timestamps.sort_unstable();
        }
    }
}

impl Replays {
    pub(super) fn new(capacity: usize) -> Self {
        Replays { peers: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0, capacity }
    }

    /// Whether no message of `peer` with this timestamp can have been accepted before.
    pub(super) fn is_fresh(&self, peer: &PublicKey, timestamp: u64) -> bool {
        self.peers.get(peer).map_or(timestamp > 0, |accepted| accepted.is_fresh(timestamp))
    }

    /// Remembers an accepted message.
    pub(super) fn record(&mut self, peer: PublicKey, timestamp: u64) {
        self.uses += 1;
        let accepted = self.peers.entry(peer).or_default();
        self.by_use.remove(&accepted.used);
        accepted.used = self.uses;
        accepted.record(timestamp);
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
            if replays.is_fresh(&key(1), timestamp) {
                replays.record(key(1), timestamp);
            }
            assert!(!replays.is_fresh(&key(1), timestamp), "{timestamp}");
        }
        assert!(replays.is_fresh(&key(1), 68));
        assert!(replays.is_fresh(&key(2), 1));
        assert!(!replays.is_fresh(&key(2), 0));
    }

    #[test]
    fn an_overtaken_message_is_still_fresh() {
        let mut replays = Replays::new(4);
        replays.record(key(1), 100);
        assert!(replays.is_fresh(&key(1), 99));
    }

    #[test]
    fn the_table_forgets_the_peer_used_longest_ago() {
        let mut replays = Replays::new(3);
        for peer in 0..3 {
            replays.record(key(peer), 10);
        }
        replays.record(key(0), 11);
        for peer in 3..5 {
            replays.record(key(peer), 10);
        }
        assert_eq!(replays.len(), 3);
        assert!(!replays.is_fresh(&key(0), 10));
        assert!(replays.is_fresh(&key(1), 10));
        assert!(replays.is_fresh(&key(2), 10));
    }
}
