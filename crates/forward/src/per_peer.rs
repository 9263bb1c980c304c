//! Values that the connections of each peer share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch::PublicKey;

/// A value for each peer, kept as long as somebody holds it. Clones share the table.
#[derive(Debug)]
pub(super) struct PerPeer<T>(Arc<Mutex<BTreeMap<PublicKey, Arc<T>>>>);

impl<T> Clone for PerPeer<T> {
    fn clone(&self) -> Self {
        PerPeer(Arc::clone(&self.0))
    }
}

impl<T> Default for PerPeer<T> {
    fn default() -> Self {
        PerPeer(Arc::default())
    }
}

impl<T> PerPeer<T> {
    /// The value of a peer; made by `new` if nobody holds one.
    pub(super) fn of(&self, peer: PublicKey, new: impl FnOnce() -> T) -> Arc<T> {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|_, value| Arc::strong_count(value) > 1);
        Arc::clone(peers.entry(peer).or_insert_with(|| Arc::new(new())))
    }

    /// Peers with a value.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
