//! Adding, changing and closing paths.

use anabranch_policy::congestion::CongestionController;
use anabranch_policy::recovery::RecoveryEvent;
use anabranch_policy::view::PathState;
use anabranch_policy::{PolicyError, PolicySpec};
use anabranch_types::{PathId, Time};
use core::fmt;

use super::ingress::Broken;
use super::paths::PathIndex;
use super::{Connection, Event};
use crate::observe::Observation;
use crate::path::skips::Skips;
use crate::path::{Path, PathAddress, PathPolicies, UDP_OVERHEAD};
use crate::wire::{CloseCode, ControlFrame, PathUse, Role};

impl Connection {
    /// Adds a path from a local socket to an address of the peer. Only the initiator adds paths; the
    /// responder learns of them from the packets that arrive.
    ///
    /// # Errors
    /// On the responder, if as many paths are open as both sides allow, or while either side has no
    /// connection id for the path yet.
    pub fn add_path(&mut self, now: Time, address: PathAddress) -> Result<PathId, AddPathError> {
        if self.identity.role != Role::Initiator {
            return Err(AddPathError::NotInitiator);
        }
        let most = usize::from(self.config.max_paths.min(self.peer_parameters.max_paths));
        if self.paths.count_open() >= most {
            return Err(AddPathError::TooMany);
        }
        let id = self.paths.identifiers.next();
        let names = self.ids.of(id);
        if names.local.is_none() || names.remote.is_none() {
            return Err(AddPathError::NoConnectionId);
        }
        let slot = self.new_path(now, id, address).map_err(|_| AddPathError::TooMany)?;
        self.paths[slot].validation.trust();
        self.challenge(now, slot);
        Ok(id)
    }

    /// Sets whether a path is a backup, which is used only if no other path is usable. The peer
    /// treats the path in the same way.
    pub fn set_backup(&mut self, path: PathId, backup: bool) {
        let Some(slot) = self.paths.open(path) else { return };
        if !self.use_as_backup(path, backup) {
            return;
        }
        let status = if backup { PathUse::Backup } else { PathUse::Available };
        let sequence = self.paths.next_status();
        // The frame is sent on the path itself, since the peer may not know the path yet.
        self.paths[slot].control_queue.push_back(ControlFrame::PathStatus {
            path,
            sequence,
            status,
        });
    }

    /// Replaces the congestion controller of a path, for packets that this side sends, by `policy`
    /// instead of the profile's. The congestion window starts again. Unknown paths are ignored.
    ///
    /// # Errors
    /// If there is no such policy, or an option of it is wrong.
    pub fn set_congestion(
        &mut self,
        now: Time,
        path: PathId,
        policy: &PolicySpec,
    ) -> Result<(), PolicyError> {
        let packet = self.paths.open(path).map(|slot| self.paths[slot].packet_size);
        let controller =
            self.profile.registry().build_for(policy, packet.unwrap_or(UDP_OVERHEAD))?;
        if let Some(slot) = self.paths.open(path) {
            let path = &mut self.paths[slot];
            path.own_congestion = Some(policy.clone());
            path.congestion = controller;
            path.update_pacing(now);
            self.changed();
        }
        Ok(())
    }

    /// A controller for the path in `slot`, whose full packets have `packet` bytes.
    pub(super) fn make_congestion(
        &self,
        slot: PathIndex,
        packet: u64,
    ) -> Result<Box<dyn CongestionController>, PolicyError> {
        let path = &self.paths[slot];
        match &path.own_congestion {
            Some(policy) => self.profile.registry().build_for(policy, packet),
            None => self.profile.make_congestion(path.id, packet),
        }
    }

    /// Like [`set_backup`](Self::set_backup), but does not tell the peer. Returns whether this is a
    /// change.
    pub(super) fn use_as_backup(&mut self, path: PathId, backup: bool) -> bool {
        let Some(slot) = self.paths.open(path) else { return false };
        let change = self.paths[slot].backup != backup;
        self.paths[slot].backup = backup;
        if change {
            self.changed();
        }
        change
    }

    /// Closes a path whose interface is gone or that is no longer wanted. Its data goes over the
    /// other paths, and the peer is told over one of them. Unknown paths are ignored.
    ///
    /// If no path is left, the connection waits for another one until its idle timeout.
    pub fn remove_path(&mut self, now: Time, path: PathId, reason: u64) {
        if let Some(slot) = self.paths.open(path) {
            self.close_path(now, slot, "removed here");
            self.control.push_back(ControlFrame::PathAbandon { path, reason });
        }
    }

    /// Sends `count` probes on a path, each in its own packet, at once and regardless of the
    /// congestion window. Unknown paths are ignored.
    pub fn ping(&mut self, path: PathId, count: u8) {
        if let Some(slot) = self.paths.open(path) {
            self.paths[slot].liveness.add_probes(count);
        }
    }

    /// Opens a path in the first free slot.
    pub(super) fn new_path(
        &mut self,
        now: Time,
        id: PathId,
        address: PathAddress,
    ) -> Result<PathIndex, PolicyError> {
        let mtu = self.initial_mtu(&address);
        let packet = u64::from(mtu.size()) + UDP_OVERHEAD;
        let congestion = self.profile.make_congestion(id, packet)?;
        let policies = PathPolicies { congestion, detector: self.profile.make()? };
        let mut path = Path::new(id, address, policies, mtu, now);
        path.skips = Skips::new(|below| self.random.below(below));
        path.names = self.ids.of(id);
        path.update_pacing(now);
        self.paths.identifiers.seen(id);
        let slot = self.paths.insert(path);
        self.send.iter_mut().for_each(|send| send.forget_slot(slot.0));
        self.refresh_views(now);
        self.tend_ids(now);
        Ok(slot)
    }

    /// Closes a path: no packets are sent on it or acknowledged any more.
    pub(super) fn close_path(&mut self, now: Time, slot: PathIndex, reason: &'static str) {
        let path = self.paths[slot].id;
        self.paths[slot].suspect();
        self.refresh_views(now);
        let action =
            self.policies.recovery.on_event(now, RecoveryEvent::PathDown(path), self.paths.views());
        self.carry_out(now, action, None);
        self.reinject(now, slot);
        self.paths[slot].control_queue.clear();
        for other in self.paths.iter_mut() {
            other.acks.forget(slot.bit());
        }
        self.paths[slot].close(now);
        self.paths.identifiers.close(path);
        self.refresh_views(now);
        let state = PathState::Closed;
        self.observe(now, Observation::PathState { path, state, reason });
        self.emit(Event::PathClosed(path));
        self.went_down(now, slot);
        self.tend_ids(now);
    }

    /// The peer closes a path, of which this side may never have received a packet.
    pub(super) fn on_path_abandon(&mut self, now: Time, path: PathId) -> Result<(), Broken> {
        if let Some(slot) = self.paths.open(path) {
            self.close_path(now, slot, "the peer removed it");
            return Ok(());
        }
        let known = match self.identity.role {
            Role::Initiator => path < self.paths.identifiers.next(),
            Role::Responder => self.ids.has_supplied(path),
        };
        if !known {
            let what = "the end of a path that cannot have been opened";
            return Err(Broken { code: CloseCode::PROTOCOL_VIOLATION, what });
        }
        self.paths.identifiers.close(path);
        self.tend_ids(now);
        Ok(())
    }

    /// When a keep-alive is due on a path, if nothing is sent on it for the keep-alive interval.
    pub(super) fn keepalive_at(&self, slot: PathIndex) -> Option<Time> {
        let path = &self.paths[slot];
        let idle = path.sent.packets_in_flight == 0 && self.established;
        let interval = self.config.keepalive.filter(|_| idle)?;
        (path.state() != PathState::Validating).then(|| path.liveness.last_sent() + interval)
    }
}

/// Why a path could not be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPathError {
    /// Only the initiator adds paths.
    NotInitiator,
    /// One side's limit is reached.
    TooMany,
    /// One side has no connection id for another path yet, because many paths were closed recently.
    NoConnectionId,
}

impl fmt::Display for AddPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddPathError::NotInitiator => "only the side that opened the connection adds paths",
            AddPathError::TooMany => "the connection has as many paths as both sides allow",
            AddPathError::NoConnectionId => {
                "there is no connection id for another path yet: try again in a moment"
            }
        })
    }
}

impl std::error::Error for AddPathError {}
