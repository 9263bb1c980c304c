//! The connection ids in use, and the connection to which each belongs.

use std::collections::{BTreeMap, BTreeSet};

use super::Router;
use crate::connection::Connection;
use crate::wire::ConnectionId;
use crate::wire::transport_parameters::MAX_PATHS;

/// The ids of all connections and attempts. Each has an id for path 0, which names the connection,
/// and others for further paths.
#[derive(Debug, Default)]
pub(super) struct PathIds {
    /// The ids for further paths.
    taken: BTreeSet<u32>,
    /// The ids for further paths by the connection's id for path 0.
    of: BTreeMap<u32, Vec<u32>>,
}

impl PathIds {
    /// Whether an id is in use.
    pub(super) fn contains(&self, id: u32) -> bool {
        self.taken.contains(&id) || self.of.contains_key(&id)
    }

    /// All ids of a connection, given the one for path 0, which comes first.
    pub(super) fn of(&self, first: u32) -> Vec<ConnectionId> {
        let others = self.of.get(&first).into_iter().flatten();
        core::iter::once(&first).chain(others).map(|id| ConnectionId(*id)).collect()
    }

    fn take(&mut self, first: u32, id: u32) {
        if self.taken.insert(id) {
            self.of.entry(first).or_default().push(id);
        }
    }

    fn give_back(&mut self, first: u32, free: &[ConnectionId]) {
        if let Some(ids) = self.of.get_mut(&first) {
            ids.retain(|id| !free.contains(&ConnectionId(*id)));
            free.iter().for_each(|id| {
                self.taken.remove(&id.0);
            });
        }
    }

    /// Releases the ids of a connection.
    pub(super) fn release(&mut self, first: u32) {
        for id in self.of.remove(&first).unwrap_or_default() {
            self.taken.remove(&id);
        }
    }
}

/// How the ids of a connection have changed.
#[derive(Debug, Default)]
pub struct IdChanges {
    /// Packets with these ids belong to the connection from now on.
    pub added: Vec<ConnectionId>,
    /// Packets with these ids no longer belong to it.
    pub removed: Vec<ConnectionId>,
}

impl Router {
    /// Reserves the ids of a connection for the path ids from 1 to `max_paths`, the limit on open
    /// paths.
    pub(super) fn reserve(&mut self, first: u32, max_paths: u8) -> Vec<ConnectionId> {
        self.path_ids.of.insert(first, Vec::new());
        for _ in 0..max_paths.clamp(1, MAX_PATHS) {
            let id = self.unused_id();
            self.path_ids.take(first, id);
        }
        self.path_ids.of(first)
    }

    /// Handles [`Event::ConnectionIds`](crate::connection::Event::ConnectionIds): takes back the
    /// connection ids that the connection no longer needs, and gives it further ones.
    pub fn exchange_ids(&mut self, connection: &mut Connection) -> IdChanges {
        let ConnectionId(first) = connection.local_id();
        let removed = connection.take_free_ids();
        self.path_ids.give_back(first, &removed);
        let mut added = Vec::new();
        for _ in 0..connection.ids_wanted() {
            let id = self.unused_id();
            self.path_ids.take(first, id);
            connection.supply_id(ConnectionId(id));
            added.push(ConnectionId(id));
        }
        IdChanges { added, removed }
    }

    /// Marks the ids of an established connection as in use. They were released if the connection
    /// had been given up.
    pub(super) fn keep_ids(&mut self, connection: &Connection) {
        let mut ids = connection.local_ids();
        if let Some(ConnectionId(first)) = ids.next() {
            self.path_ids.of.entry(first).or_default();
            ids.for_each(|ConnectionId(id)| self.path_ids.take(first, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use anabranch_types::{PathId, Time};

    use crate::endpoint::Handle;
    use crate::path::{PathAddress, SocketId};
    use crate::profiles::Profile;
    use crate::testing::{End, Pair, Sent, address};

    /// How many ids are taken, and by how many connections and attempts.
    fn taken(end: &End) -> (usize, usize) {
        let ids = &end.endpoint.router.path_ids;
        (ids.taken.len(), ids.of.len())
    }

    #[test]
    fn all_ids_are_free_when_their_connections_are_over() {
        let profile = Profile::named("anabranch").unwrap();
        let network = |sent: &Sent<'_>| Some((sent.now + Duration::from_millis(5), sent.ecn));
        let mut pair = Pair::new(&profile, 1, network);
        assert_eq!((taken(&pair.ends[0]), taken(&pair.ends[1])), ((8, 1), (0, 0)));
        for path in 1..40 {
            for _ in 0..50 {
                pair.round(Duration::from_millis(4));
            }
            let (now, socket) = (pair.now, SocketId(path));
            let connection = pair.ends[0].connection().unwrap();
            connection.add_path(now, PathAddress { socket, remote: address(1, path) }).unwrap();
            connection.remove_path(now, PathId(path), 0);
        }
        for end in &pair.ends {
            let (ids, connections) = taken(end);
            assert!((9..48).contains(&ids) && connections == 1, "{ids} ids of {connections}");
        }
        let now = pair.now;
        pair.ends[0].connection().unwrap().close(now, 256, "");
        for _ in 0..100 {
            pair.round(Duration::from_millis(100));
        }
        assert_eq!((taken(&pair.ends[0]), taken(&pair.ends[1])), ((0, 0), (0, 0)));
    }

    #[test]
    fn attempts_that_come_to_nothing_leave_no_id_behind() {
        let profile = Profile::named("anabranch").unwrap();
        let mut pair = Pair::new(&profile, 1, |_: &Sent<'_>| None::<(Time, _)>);
        pair.connect(1);
        let given_up = *pair.ends[0].endpoint.router.attempts.keys().next().unwrap();
        assert_eq!(taken(&pair.ends[0]), (16, 2));
        pair.ends[0].endpoint.router.abandon(Handle(given_up));
        assert_eq!(taken(&pair.ends[0]), (8, 1));
        for _ in 0..400 {
            pair.round(Duration::from_millis(100));
        }
        assert_eq!(taken(&pair.ends[0]), (0, 0));
    }
}
