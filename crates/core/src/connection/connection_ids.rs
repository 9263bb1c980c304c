//! Connection ids: each path has its own in each direction, so that observers cannot use them to
//! see which paths belong together (`docs/spec/wire-0.md`, Connection ids).
//!
//! The router, which knows all connections, assigns the ids of this side. [`Event::ConnectionIds`]
//! asks it for further ids, or to take back those of closed paths.

use std::collections::{BTreeMap, VecDeque};

use anabranch_types::{PathId, Time};
use core::time::Duration;

use super::ingress::Broken;
use super::paths::PathIndex;
use super::{Connection, Event};
use crate::path::names::PathNames;
use crate::wire::{CloseCode, ConnectionId, ControlFrame, Role, TransportParameters};

/// The most ids that this side has at a time: for paths that are open, may still be opened, or were
/// closed recently. The peer gets no more than that, so paths change no faster than ids become
/// free.
const MOST_KEPT: usize = 96;
/// How long after a path's close packets of it may still arrive, so that its id is not given to
/// another path.
const LINGER: Duration = Duration::from_secs(3);

/// The ids of both sides for paths that are not closed.
#[derive(Debug)]
pub(super) struct ConnectionIds {
    /// The ids under which this side receives.
    local: BTreeMap<PathId, ConnectionId>,
    /// The ids under which the peer receives, as far as it has supplied them.
    remote: BTreeMap<PathId, ConnectionId>,
    /// The first path id for which this side has supplied no connection id.
    next: u32,
    /// For how many path ids above the highest in use this side supplies connection ids.
    ahead: u32,
    /// For how many path ids above the highest in use the peer supplies connection ids.
    peer_ahead: u32,
    /// This side's ids of closed paths, and when each becomes free.
    lingering: VecDeque<(Time, ConnectionId)>,
    /// Free ids that the router has not taken back yet.
    free: Vec<ConnectionId>,
    /// Whether [`Event::ConnectionIds`] was emitted and the router has not answered yet.
    asked: bool,
}

impl ConnectionIds {
    /// The ids from the handshake, this side's and the peer's; the ids of path 0 come first.
    pub(super) fn new(
        local: &[ConnectionId],
        remote: &[ConnectionId],
        peer: &TransportParameters,
    ) -> Self {
        let by_path = |ids: &[ConnectionId]| (0..).map(PathId).zip(ids.iter().copied()).collect();
        ConnectionIds {
            local: by_path(local),
            remote: by_path(remote),
            next: local.len() as u32,
            ahead: local.len().saturating_sub(1) as u32,
            peer_ahead: peer.max_paths.into(),
            lingering: VecDeque::new(),
            free: Vec::new(),
            asked: false,
        }
    }

    /// The ids of a path that is not closed.
    pub(super) fn of(&self, path: PathId) -> PathNames {
        let id = |ids: &BTreeMap<_, ConnectionId>| ids.get(&path).copied();
        PathNames { local: id(&self.local), remote: id(&self.remote) }
    }

    /// The path that has an id of this side.
    pub(super) fn path_of(&self, local: ConnectionId) -> Option<PathId> {
        self.local.iter().find(|(_, id)| **id == local).map(|(path, _)| *path)
    }

    /// Whether this side has ever supplied an id for the path.
    pub(super) fn has_supplied(&self, path: PathId) -> bool {
        path.0 < self.next
    }

    /// When the next id of a closed path becomes free.
    pub(super) fn free_at(&self) -> Option<Time> {
        self.lingering.front().map(|(time, _)| *time)
    }

    /// Removes closed paths. This side's ids of them become free after [`LINGER`], except that of
    /// path 0, which names the connection.
    fn forget(&mut self, now: Time, is_over: impl Fn(PathId) -> bool) {
        self.remote.retain(|path, _| !is_over(*path));
        let lingering = &mut self.lingering;
        self.local.retain(|path, id| {
            let over = is_over(*path);
            if over && path.0 > 0 {
                lingering.push_back((now + LINGER, *id));
            }
            !over
        });
        while let Some((_, id)) = self.lingering.pop_front_if(|(time, _)| *time <= now) {
            self.free.push(id);
        }
    }

    /// How many more ids this side should have, where `highest` is the highest path id in use.
    fn wanted(&self, highest: u32) -> usize {
        let end = highest.saturating_add(self.ahead).saturating_add(1);
        let kept = self.local.len() + self.lingering.len() + self.free.len();
        (end.saturating_sub(self.next) as usize).min(MOST_KEPT.saturating_sub(kept))
    }

    /// Stores the peer's id for a path.
    fn learn(&mut self, path: PathId, id: ConnectionId) -> Result<(), &'static str> {
        if let Some(known) = self.remote.get(&path) {
            return if *known == id { Ok(()) } else { Err("another connection id for a path") };
        }
        if path.0 >= self.next.saturating_add(self.peer_ahead) {
            return Err("a connection id for a path that cannot be opened yet");
        }
        if self.remote.values().any(|known| *known == id) {
            return Err("the same connection id for two paths");
        }
        self.remote.insert(path, id);
        Ok(())
    }
}

impl Connection {
    /// The ids that the connection has, beginning with that of path 0: those of its paths, and
    /// those that it has not given back yet.
    pub fn local_ids(&self) -> impl Iterator<Item = ConnectionId> {
        let name = self.identity.local_id;
        let of_paths = self.ids.local.values().copied().filter(move |id| *id != name);
        let of_closed = self.ids.lingering.iter().map(|(_, id)| *id);
        let free = self.ids.free.iter().copied();
        core::iter::once(name).chain(of_paths).chain(of_closed).chain(free)
    }

    /// How many more ids the connection should have.
    pub(crate) fn ids_wanted(&self) -> usize {
        if self.is_closed() { 0 } else { self.ids.wanted(self.paths.identifiers.highest()) }
    }

    /// Gives the connection a unique id for the next path id without one, and tells the peer.
    pub(crate) fn supply_id(&mut self, id: ConnectionId) {
        let path = PathId(self.ids.next);
        self.ids.next = self.ids.next.saturating_add(1);
        self.ids.local.insert(path, id);
        self.control.push_back(ControlFrame::NewConnectionId { path, id });
    }

    /// Gives the router, which handles [`Event::ConnectionIds`], the ids that the connection no
    /// longer needs.
    pub(crate) fn take_free_ids(&mut self) -> Vec<ConnectionId> {
        self.ids.asked = false;
        core::mem::take(&mut self.ids.free)
    }

    /// Frees the ids of closed paths, and asks the router for missing ids.
    pub(super) fn tend_ids(&mut self, now: Time) {
        let paths = &self.paths;
        self.ids.forget(now, |path| paths.is_over(path));
        let due = !self.ids.free.is_empty() || self.ids_wanted() > 0;
        if due && !core::mem::replace(&mut self.ids.asked, true) {
            self.emit(Event::ConnectionIds);
        }
    }

    /// Processes the peer's announcement of the id under which it receives on a path.
    pub(super) fn on_new_connection_id(
        &mut self,
        path: PathId,
        id: ConnectionId,
    ) -> Result<(), Broken> {
        if self.paths.is_over(path) {
            return Ok(());
        }
        let code = CloseCode::PROTOCOL_VIOLATION;
        self.ids.learn(path, id).map_err(|what| Broken { code, what })?;
        if let Some(slot) = self.paths.open(path) {
            self.paths[slot].names.remote = Some(id);
        }
        Ok(())
    }

    /// A frame that tells the peer again this side's id for a path that is being opened, since the
    /// first such frame may be lost or late.
    pub(super) fn introduction(&self, slot: PathIndex) -> Option<ControlFrame> {
        let path = &self.paths[slot];
        let told = path.is_proven() || path.id.0 <= self.ids.ahead;
        let id = path.names.local.filter(|_| self.identity.role == Role::Initiator && !told)?;
        Some(ControlFrame::NewConnectionId { path: path.id, id })
    }
}
