//! Limits the log lines about each peer, so that one that opens and closes connections or moves its paths all the time
//! cannot fill a disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_core::crypto::PublicKey;
use anabranch_types::Time;
use anabranch_types::lines::Lines;

/// Most peers whose lines are counted. To make room, peers whose minute of counting is over are
/// forgotten or, if there are none, an arbitrary peer.
const MOST_PEERS: usize = 1024;

/// The lines of all peers of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<BTreeMap<PublicKey, Arc<Mutex<Lines>>>>);

impl Peers {
    /// The count of a peer's lines, which all its connections share.
    pub(super) fn of(&self, peer: &PublicKey, now: Time) -> Arc<Mutex<Lines>> {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= MOST_PEERS && !peers.contains_key(peer) {
            peers.retain(|_, lines| !locked(lines, |lines| lines.is_over(now)));
            if peers.len() >= MOST_PEERS {
                peers.pop_first();
            }
        }
        Arc::clone(peers.entry(*peer).or_default())
    }
}

pub(super) fn locked<T>(lines: &Mutex<Lines>, act: impl FnOnce(&mut Lines) -> T) -> T {
    act(&mut lines.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_types::lines::Verdict;

    #[test]
    fn connections_of_one_peer_share_and_peers_do_not() {
        let peers = Peers::default();
        let key = |n: u64| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&n.to_be_bytes());
            PublicKey(bytes)
        };
        let take = |n, now| {
            locked(&peers.of(&key(n), now), |lines| {
                matches!(lines.take(now), Verdict::Write { .. })
            })
        };
        assert_eq!((0..1000).filter(|_| take(1, Time::ZERO)).count(), 60);
        assert!(take(2, Time::ZERO));
        // However many keys connect, few are remembered.
        for n in 3..10_000 {
            assert!(take(n, Time::from_millis(n * 10)));
        }
        assert!(peers.0.lock().unwrap().len() <= MOST_PEERS);
    }
}
