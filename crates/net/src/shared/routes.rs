//! Finds connections by their handle, or by the connection id in a packet.

use super::ConnectionShared;
use anabranch_core::endpoint::{Handle, IdChanges};
use anabranch_core::wire::ConnectionId;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// All connections, and the ids under which their packets arrive, one for each path.
#[derive(Debug, Default)]
pub(crate) struct Routes(RwLock<Tables>);

#[derive(Debug, Default)]
struct Tables {
    connections: BTreeMap<Handle, Known>,
    by_id: BTreeMap<ConnectionId, Arc<ConnectionShared>>,
}

#[derive(Debug)]
struct Known {
    connection: Arc<ConnectionShared>,
    ids: Vec<ConnectionId>,
}

impl Routes {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection of a handle.
    pub(crate) fn of(&self, handle: Handle) -> Option<Arc<ConnectionShared>> {
        self.read().connections.get(&handle).map(|known| Arc::clone(&known.connection))
    }

    /// The connection to which packets with this id belong.
    pub(crate) fn of_id(&self, id: ConnectionId) -> Option<Arc<ConnectionShared>> {
        self.read().by_id.get(&id).cloned()
    }

    /// All connections.
    pub(crate) fn all(&self) -> Vec<Arc<ConnectionShared>> {
        let tables = self.read();
        tables.connections.values().map(|known| Arc::clone(&known.connection)).collect()
    }

    /// Whether there are no connections.
    pub(crate) fn is_empty(&self) -> bool {
        self.read().connections.is_empty()
    }

    /// Registers a connection. No packets lead to it yet.
    pub(crate) fn insert(&self, handle: Handle, connection: Arc<ConnectionShared>) {
        self.write().connections.insert(handle, Known { connection, ids: Vec::new() });
    }

    /// Applies changes to the ids of a connection.
    pub(crate) fn change(&self, handle: Handle, changes: &IdChanges) {
        let Tables { connections, by_id } = &mut *self.write();
        let Some(known) = connections.get_mut(&handle) else { return };
        known.ids.retain(|id| !changes.removed.contains(id));
        known.ids.extend(&changes.added);
        for id in &changes.removed {
            by_id.remove(id);
        }
        by_id.extend(changes.added.iter().map(|id| (*id, Arc::clone(&known.connection))));
    }

    /// Releases the ids of a connection: no packets lead to it any more.
    pub(crate) fn cut(&self, handle: Handle) {
        let Tables { connections, by_id } = &mut *self.write();
        let ids = connections.get_mut(&handle).map(|known| core::mem::take(&mut known.ids));
        for id in ids.into_iter().flatten() {
            by_id.remove(&id);
        }
    }

    /// Drops a connection that was [cut](Self::cut) or never had ids; returns whether it was the last.
    pub(crate) fn remove(&self, handle: Handle) -> bool {
        let mut tables = self.write();
        tables.connections.remove(&handle);
        tables.connections.is_empty()
    }
}
