//! Limits the log lines about each peer, so that one that opens and closes connections or moves its paths all the time
//! cannot fill a disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_core::crypto::PublicKey;
use anabranch_types::Time;

/// Lines about a peer in each minute, at most.
const MOST: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// Peers of which it is known how many lines they had; beyond, those that had none for a minute are forgotten.
const MOST_PEERS: usize = 1024;

/// Whether a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is. This many were left out before it.
    Write { left_out: u64 },
    /// It is left out, and is the first for which that is so.
    FirstLeftOut,
    /// It is left out.
    LeftOut,
}

/// What was written about one peer in the present minute.
#[derive(Debug, Default)]
pub(super) struct Lines {
    began: Time,
    written: u32,
    left_out: u64,
}

impl Lines {
    /// One more line.
    pub(super) fn take(&mut self, now: Time) -> Verdict {
        let mut left_out = 0;
        if self.is_over(now) {
            left_out = self.left_out;
            *self = Lines { began: now, ..Lines::default() };
        }
        if self.written < MOST {
            self.written += 1;
            return Verdict::Write { left_out };
        }
        self.left_out += 1;
        if self.left_out == 1 { Verdict::FirstLeftOut } else { Verdict::LeftOut }
    }

    fn is_over(&self, now: Time) -> bool {
        now.since(self.began) >= MINUTE
    }
}

/// The lines of all peers of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<BTreeMap<PublicKey, Arc<Mutex<Lines>>>>);

impl Peers {
    /// Those about a peer, which all its connections share.
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

    #[test]
    fn a_minute_has_so_many_lines_and_the_rest_is_counted() {
        let mut lines = Lines::default();
        let mut written = 0;
        for second in 0..600 {
            for part in 0..100 {
                let now = Time::from_millis(second * 1000 + part * 10);
                match lines.take(now) {
                    Verdict::Write { left_out } => {
                        written += 1;
                        let whole_minute = 6000 - u64::from(MOST);
                        assert!(left_out == 0 || left_out == whole_minute, "{left_out}");
                    }
                    Verdict::FirstLeftOut => assert_eq!(written % MOST, 0),
                    Verdict::LeftOut => {}
                }
            }
        }
        assert_eq!(written, 10 * MOST);
    }

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
        assert_eq!((0..1000).filter(|_| take(1, Time::ZERO)).count(), MOST as usize);
        assert!(take(2, Time::ZERO));
        // However many keys come, little is kept of them.
        for n in 3..10_000 {
            assert!(take(n, Time::from_millis(n * 10)));
        }
        assert!(peers.0.lock().unwrap().len() <= MOST_PEERS);
    }
}
