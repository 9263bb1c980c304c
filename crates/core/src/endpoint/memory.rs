//! Limits the memory that the connections with one peer together hold.

use std::collections::BTreeMap;

use super::{Handle, Router};
use crate::connection::Connection;
use crate::crypto::PublicKey;
use crate::wire::ConnectionId;

/// The connections with a peer may always hold the budget divided by this, however much others
/// hold.
const LEAST: u64 = 64;

/// How much memory each connection holds, as it last reported.
///
/// The connections with one peer may together hold as much as is left of the budget: A. K.
/// Choudhury and E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
/// IEEE/ACM Transactions on Networking 6(2), 1998, with α = 1. A single peer can have half of the
/// budget. If `n` peers take all they can, each has the budget divided by `n + 1`, and as much is
/// left for the next.
#[derive(Debug, Default)]
pub(super) struct MemoryLedger {
    entries: BTreeMap<u32, (PublicKey, u64)>,
}

/// Consequences of a change in a connection's memory.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    /// Whether the connections with the peer hold more than half of their limit.
    scarce: bool,
    /// The connection that has to close. It then frees its memory, so it no longer counts.
    close: Option<u32>,
}

impl MemoryLedger {
    /// Records that connection `id` with `peer` holds `bytes`. All connections share `budget`, in bytes.
    fn note(&mut self, id: u32, peer: PublicKey, bytes: u64, budget: u64) -> Verdict {
        self.entries.insert(id, (peer, bytes));
        let all: u64 = self.entries.values().map(|(_, bytes)| bytes).sum();
        let of_peer = || self.entries.iter().filter(|(_, (other, _))| *other == peer);
        let taken: u64 = of_peer().map(|(_, (_, bytes))| bytes).sum();
        let most = budget.saturating_sub(all).max(budget / LEAST);
        let heaviest = of_peer().max_by_key(|(_, (_, bytes))| bytes);
        let close = heaviest.filter(|_| taken > most).map(|(id, _)| *id);
        close.inspect(|id| self.forget(*id));
        Verdict { scarce: taken > most / 2, close }
    }

    pub(super) fn forget(&mut self, id: u32) {
        self.entries.remove(&id);
    }
}

impl Router {
    /// Records how much memory a connection holds ([`Connection::memory_news`]). If the connections
    /// with its peer exceed their limit, returns the largest, which the caller closes at once with
    /// [`Connection::close_for_memory`].
    pub fn weigh(&mut self, connection: &mut Connection, bytes: u64) -> Option<Handle> {
        let (ConnectionId(id), peer) = (connection.local_id(), connection.peer());
        let verdict = self.memory.note(id, peer, bytes, self.config.memory);
        connection.set_memory_scarce(verdict.scarce);
        verdict.close.map(Handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: u64 = 1200;

    fn peer(number: u8) -> PublicKey {
        PublicKey([number; 32])
    }

    /// Lets peers take a byte each in turn until no peer gets more; returns how many bytes each
    /// has.
    fn filled(peers: u8) -> Vec<u64> {
        let mut ledger = MemoryLedger::default();
        let mut taken = vec![0; usize::from(peers)];
        for step in 0..BUDGET {
            for (number, bytes) in taken.iter_mut().enumerate() {
                let id = 10_000 * number as u32 + step as u32;
                let verdict = ledger.note(id, peer(number as u8), 1, BUDGET);
                match verdict.close {
                    Some(_) => assert!(verdict.scarce),
                    None => *bytes += 1,
                }
            }
        }
        taken
    }

    #[test]
    fn each_peer_gets_as_much_as_is_left_over() {
        assert_eq!(filled(1), [600]);
        assert_eq!(filled(2), [400, 400]);
        assert_eq!(filled(5), [200; 5]);
    }

    #[test]
    fn the_connection_that_takes_most_closes() {
        let mut ledger = MemoryLedger::default();
        let fine = Verdict { scarce: false, close: None };
        let scarce = Verdict { scarce: true, close: None };
        assert_eq!(ledger.note(1, peer(1), 350, BUDGET), fine);
        assert_eq!(ledger.note(2, peer(1), 200, BUDGET), scarce);
        assert_eq!(ledger.note(2, peer(1), 300, BUDGET), Verdict { close: Some(1), ..scarce });
        assert_eq!(ledger.note(2, peer(1), 310, BUDGET), fine);
        assert_eq!(ledger.note(3, peer(2), 590, BUDGET), Verdict { close: Some(3), ..scarce });
    }

    #[test]
    fn a_peer_that_takes_little_is_left_alone() {
        let mut ledger = MemoryLedger::default();
        for number in 0..100 {
            ledger.note(number.into(), peer(number), BUDGET / 8, BUDGET);
        }
        assert_eq!(ledger.note(200, peer(200), BUDGET / 64, BUDGET).close, None);
        assert_eq!(ledger.note(200, peer(200), BUDGET / 4, BUDGET).close, Some(200));
    }
}
