//! Limits the memory that the offers of each peer may take at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch::PublicKey;
use anabranch_transfer::Code;
use anabranch_transfer::manifest::MAX_COST;

use super::error::TransferError;

/// Highest cost of one peer's offers at a time, however many transfers it has: that of the largest offer.
const MOST: usize = MAX_COST;

/// The accounts of all peers. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts(Arc<Mutex<BTreeMap<[u8; 32], usize>>>);

/// Cost of one offer, charged until this is dropped.
#[derive(Debug)]
pub(super) struct Account {
    all: Accounts,
    peer: [u8; 32],
    charged: usize,
}

impl Accounts {
    /// Opens the account of an offer of `peer`.
    pub(super) fn open(&self, peer: PublicKey) -> Account {
        Account { all: self.clone(), peer: peer.0, charged: 0 }
    }

    fn change(&self, peer: [u8; 32], from: usize, to: usize) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = all.get(&peer).copied().unwrap_or(0).saturating_sub(from).saturating_add(to);
        if used > MOST {
            return false;
        }
        if used == 0 {
            all.remove(&peer)
        } else {
            all.insert(peer, used)
        };
        true
    }
}

impl Account {
    /// Charges what the offer costs by now.
    ///
    /// # Errors
    /// If the peer's offers cost too much together.
    pub(super) fn charge(&mut self, cost: usize) -> Result<(), TransferError> {
        if !self.all.change(self.peer, self.charged, cost) {
            let why =
                "the peer's offers are too large together; wait until its other transfers end";
            return Err(TransferError::Local(Code::Refused, why.to_owned()));
        }
        self.charged = cost;
        Ok(())
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.all.change(self.peer, self.charged, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_one_account_for_all_its_offers() {
        let accounts = Accounts::default();
        let (mut one, mut two) =
            (accounts.open(PublicKey([1; 32])), accounts.open(PublicKey([1; 32])));
        one.charge(MOST / 2).unwrap();
        one.charge(MOST - 10).unwrap();
        two.charge(10).unwrap();
        assert!(two.charge(11).is_err());
        accounts.open(PublicKey([2; 32])).charge(MOST).unwrap();
        drop(one);
        two.charge(MOST).unwrap();
        drop(two);
        assert!(accounts.0.lock().unwrap().is_empty());
    }
}
