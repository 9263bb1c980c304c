//! The connections of an endpoint, which are found by any of their connection ids.

use std::collections::BTreeMap;

use super::IdChanges;
use crate::connection::Connection;
use crate::wire::ConnectionId;

/// A table of connections, and the place in the table for each connection id. Places are reused.
#[derive(Debug, Default)]
pub(super) struct Connections {
    places: Vec<Option<Box<Connection>>>,
    routes: BTreeMap<ConnectionId, usize>,
    /// The place of the connection that was served last, for fairness.
    last_served: usize,
}

impl Connections {
    /// The connection that receives under this id.
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let place = *self.routes.get(&id)?;
        self.places.get_mut(place)?.as_deref_mut()
    }

    /// Every connection.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.places.iter().filter_map(|place| place.as_deref())
    }

    /// Every connection.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.places.iter_mut().filter_map(|place| place.as_deref_mut())
    }

    /// Puts a connection in the first free place.
    pub(super) fn insert(&mut self, connection: Box<Connection>) {
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or(self.places.len());
        self.routes.extend(connection.local_ids().map(|id| (id, place)));
        match self.places.get_mut(place) {
            Some(room) => *room = Some(connection),
            None => self.places.push(Some(connection)),
        }
    }

    /// Removes the connection that receives under this id.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        if let Some(place) = self.routes.get(&id).copied() {
            for id in self.places[place].take().iter().flat_map(|connection| connection.local_ids())
            {
                self.routes.remove(&id);
            }
            while self.places.pop_if(|last| last.is_none()).is_some() {}
        }
    }

    /// Applies changes to the ids of the connection that receives under `id`.
    pub(super) fn reroute(&mut self, id: ConnectionId, changes: IdChanges) {
        if let Some(place) = self.routes.get(&id).copied() {
            changes.removed.iter().for_each(|id| {
                self.routes.remove(id);
            });
            self.routes.extend(changes.added.into_iter().map(|id| (id, place)));
        }
    }

    /// Calls `ask` for the connections in turn, starting after the one that was served last;
    /// returns the first result.
    pub(super) fn serve<T>(
        &mut self,
        mut ask: impl FnMut(&mut Connection) -> Option<T>,
    ) -> Option<T> {
        let count = self.places.len();
        for step in 1..=count {
            let place = (self.last_served + step) % count;
            if let Some(connection) = &mut self.places[place]
                && let Some(answer) = ask(connection)
            {
                self.last_served = place;
                return Some(answer);
            }
        }
        None
    }
}
