//! How many connections are carried for each peer.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch::PublicKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections that are carried for each peer at a time, over all of its connections with this side.
#[derive(Clone, Debug)]
pub(super) struct Carriers {
    most: usize,
    peers: Arc<Mutex<BTreeMap<PublicKey, Arc<Semaphore>>>>,
}

impl Carriers {
    /// Each peer may have `most`.
    pub(super) fn new(most: usize) -> Self {
        Carriers { most: most.min(Semaphore::MAX_PERMITS), peers: Arc::default() }
    }

    /// A place for one more, until it is dropped.
    ///
    /// # Errors
    /// The peer has as many as it may.
    pub(super) fn admit(&self, peer: PublicKey) -> io::Result<OwnedSemaphorePermit> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        // All the places of these are free.
        peers.retain(|_, places| Arc::strong_count(places) > 1);
        let places = peers.entry(peer).or_insert_with(|| Arc::new(Semaphore::new(self.most)));
        Arc::clone(places).try_acquire_owned().map_err(|_| {
            io::Error::other(format!("{} connections are carried for this peer already", self.most))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_places_of_its_own() {
        let carriers = Carriers::new(2);
        let peer = |key| PublicKey([key; 32]);
        let first: Vec<_> = (0..2).map(|_| carriers.admit(peer(1)).unwrap()).collect();
        let error = carriers.admit(peer(1)).unwrap_err().to_string();
        assert_eq!(error, "2 connections are carried for this peer already");
        let second = carriers.admit(peer(2)).unwrap();
        drop((first, second));
        let _again = (carriers.admit(peer(1)).unwrap(), carriers.admit(peer(1)).unwrap());
        assert_eq!(carriers.peers.lock().unwrap().len(), 1, "who has none is forgotten");
    }
}
