//! Limits the connections carried for each peer.

use std::io;

use anabranch::PublicKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::per_peer::PerPeer;

/// Limits the connections carried at a time for each peer, over all of its connections with this side.
#[derive(Clone, Debug)]
pub(super) struct Carriers {
    most: usize,
    places: PerPeer<Semaphore>,
}

impl Carriers {
    /// Allows each peer `most` connections at a time.
    pub(super) fn new(most: usize) -> Self {
        Carriers { most: most.min(Semaphore::MAX_PERMITS), places: PerPeer::default() }
    }

    /// Admits one more connection; it counts until the permit is dropped.
    ///
    /// # Errors
    /// The peer has as many as it may.
    pub(super) fn admit(&self, peer: PublicKey) -> io::Result<OwnedSemaphorePermit> {
        let places = self.places.of(peer, || Semaphore::new(self.most));
        places.try_acquire_owned().map_err(|_| {
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
        assert_eq!(carriers.places.len(), 1, "who has none is forgotten");
    }
}
