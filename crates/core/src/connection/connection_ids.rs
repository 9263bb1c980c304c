//! Connection ids: each path has one of its own in each direction, so that nobody can tell by them which paths
//! belong together (`docs/spec/wire-0.md`, Connection ids).
//!
//! This side's come from the router, which knows of all connections. [`Event::ConnectionIds`] says that some are
//! wanted, or that closed paths have left some behind.

use std::collections::{BTreeMap, VecDeque};

use anabranch_types::{PathId, Time};
use core::time::Duration;

use super::ingress::Broken;
use super::paths::PathIndex;
use super::{Connection, Event};
use crate::path::names::PathNames;
use crate::wire::{CloseCode, ConnectionId, ControlFrame, Role, TransportParameters};

/// Ids of this side at most: of paths that are open, that may still be opened, and that were closed a moment ago.
/// While there are so many, no new path ids are made possible: paths come and go no faster than their ids.
const MOST_KEPT: usize = 96;
/// Packets of a closed path may still be under way for this time.
const LINGER: Duration = Duration::from_secs(3);

/// The ids of both sides for paths that are not closed.
#[derive(Debug)]
pub(super) struct ConnectionIds {
    /// Under which this side receives.
    local: BTreeMap<PathId, ConnectionId>,
    /// Under which the peer receives, as far as it has supplied them.
    remote: BTreeMap<PathId, ConnectionId>,
    /// The first path id for which this side has supplied none.
    next: u32,
    /// For so many path ids ahead this side supplies ids, and the peer does.
    ahead: (u32, u32),
    /// This side's ids of closed paths, and when each is free.
    lingering: VecDeque<(Time, ConnectionId)>,
    /// Those that are free.
    free: Vec<ConnectionId>,
    /// The router is asked already.
    asked: bool,
}

impl ConnectionIds {
    /// The ids that the handshake has told, this side's and the peer's, each with path 0's first.
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
            ahead: (local.len().saturating_sub(1) as u32, peer.max_paths.into()),
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

    /// Whether this side has supplied an id for the path, sooner or later.
    pub(super) fn has_supplied(&self, path: PathId) -> bool {
        path.0 < self.next
    }

    /// When the first id of a closed path is free.
    pub(super) fn free_at(&self) -> Option<Time> {
        self.lingering.front().map(|(time, _)| *time)
    }

    /// Forgets paths that are over, of which this side's ids are free after a while. The id of path 0 is the connection's name.
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

    /// How many ids more this side should have, where `highest` is the highest path id in use.
    fn wanted(&self, highest: u32) -> usize {
        let end = highest.saturating_add(self.ahead.0).saturating_add(1);
        let kept = self.local.len() + self.lingering.len() + self.free.len();
        (end.saturating_sub(self.next) as usize).min(MOST_KEPT.saturating_sub(kept))
    }

    /// The peer supplies its id for a path.
    fn learn(&mut self, path: PathId, id: ConnectionId) -> Result<(), &'static str> {
        if let Some(known) = self.remote.get(&path) {
            return if *known == id { Ok(()) } else { Err("another connection id for a path") };
        }
        if path.0 >= self.next.saturating_add(self.ahead.1) {
            return Err("a connection id for a path that cannot be opened yet");
        }
        if self.remote.values().any(|known| *known == id) {
            return Err("one connection id for two paths");
        }
        self.remote.insert(path, id);
        Ok(())
    }
}

impl Connection {
    /// The ids that the connection has, the handshake's first: those of its paths, and those that it has not given
    /// back yet.
    pub fn local_ids(&self) -> impl Iterator<Item = ConnectionId> {
        let name = self.identity.local_id;
        let of_paths = self.ids.local.values().copied().filter(move |id| *id != name);
        let of_closed = self.ids.lingering.iter().map(|(_, id)| *id);
        let free = self.ids.free.iter().copied();
        core::iter::once(name).chain(of_paths).chain(of_closed).chain(free)
    }

    /// How many ids more the connection should have.
    pub(crate) fn ids_wanted(&self) -> usize {
        if self.is_closed() { 0 } else { self.ids.wanted(self.paths.identifiers.highest()) }
    }

    /// Gives the connection an id that nothing else has, for the next path id without one; the peer is told.
    pub(crate) fn supply_id(&mut self, id: ConnectionId) {
        let path = PathId(self.ids.next);
        self.ids.next = self.ids.next.saturating_add(1);
        self.ids.local.insert(path, id);
        self.control.push_back(ControlFrame::NewConnectionId { path, id });
    }

    /// Takes the ids that the connection does not need any more. The router has heard [`Event::ConnectionIds`].
    pub(crate) fn take_free_ids(&mut self) -> Vec<ConnectionId> {
        self.ids.asked = false;
        core::mem::take(&mut self.ids.free)
    }

    /// Brings the ids in line with the paths.
    pub(super) fn tend_ids(&mut self, now: Time) {
        let paths = &self.paths;
        self.ids.forget(now, |path| paths.is_over(path));
        let due = !self.ids.free.is_empty() || self.ids_wanted() > 0;
        if due && !core::mem::replace(&mut self.ids.asked, true) {
            self.emit(Event::ConnectionIds);
        }
    }

    /// The peer receives under this id on a path.
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

    /// What tells the peer this side's id for a path that is being opened: what told it before may be lost or late.
    pub(super) fn introduction(&self, slot: PathIndex) -> Option<ControlFrame> {
        let path = &self.paths[slot];
        let told = path.is_proven() || path.id.0 <= self.ids.ahead.0;
        let id = path.names.local.filter(|_| self.identity.role == Role::Initiator && !told)?;
        Some(ControlFrame::NewConnectionId { path: path.id, id })
    }
}
