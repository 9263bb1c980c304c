//! Decides whether Initiations become connections.

use anabranch_types::Time;

use super::admission::{Asking, Room};
use super::{Handle, Incoming, MAX_REFUSED, Router, RouterEvent};
use crate::crypto::PublicKey;
use crate::handshake::{Arrival, Candidate, Outcome, Source};
use crate::path::PathAddress;
use crate::wire::{ConnectionId, Role, TransportParameters};

/// Most handshake answers that wait for a writable socket; further ones are dropped, and peers send
/// their messages again.
const MAX_REPLIES: usize = 256;

impl Router {
    pub(super) fn on_initiation(&mut self, now: Time, address: PathAddress, payload: &[u8]) {
        let under_load = self.replies.len() >= MAX_REPLIES / 2
            || self.half_open.len() >= self.config.max_half_open.div_ceil(2);
        let arrival = Arrival { now, remote: address.remote, bytes: payload, under_load };
        let outcome = self.responder.handle(self.crypto.as_mut(), arrival);
        match outcome {
            // Unread refusals are capped, so that unauthenticated senders cannot grow the queue.
            Outcome::Drop(why) if self.events.len() < MAX_REFUSED => {
                self.events.push_back(RouterEvent::Refused(address.remote, why));
            }
            Outcome::Drop(_) => {}
            Outcome::Reply(bytes) => self.reply(address, bytes),
            Outcome::Copy(id) => self.wait_there(id, address),
            Outcome::Candidate(candidate) => self.consider(now, address, candidate),
        }
    }

    pub(super) fn reply(&mut self, address: PathAddress, bytes: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push((address, bytes));
        }
    }

    /// Reports a candidate to the application if there is room for it.
    fn consider(&mut self, now: Time, address: PathAddress, candidate: Candidate) {
        let Ok(parameters) = TransportParameters::decode(&candidate.parameters) else { return };
        if let Some(id) = parameters.check {
            self.answer_check(now, address, candidate, id);
            return;
        }
        let (peer, remote_id) = (candidate.peer, ConnectionId(candidate.remote_id));
        if parameters.connection_ids.contains(&remote_id) {
            return;
        }
        let of_peer = |connection: &&(Role, PublicKey)| **connection == (Role::Responder, peer);
        let asking = Asking { source: Source::of(address.remote), peer };
        // No peer may have more than half of the connections, rounded up.
        let most = self.config.max_per_peer.min(self.config.max_connections.div_ceil(2));
        if self.connections.values().filter(of_peer).count() >= most || !self.make_room(now, asking)
        {
            return;
        }
        let Some(id) = self.free_id() else { return };
        self.half_open.insert(id, now, asking);
        let validated = candidate.validated;
        let incoming = Incoming { handle: Handle(id), peer, address, validated };
        self.wait(now, incoming, candidate, parameters);
        self.events.push_back(RouterEvent::Incoming(incoming));
    }

    /// Whether one more half-open connection may be made. An older one may be given up for it.
    fn make_room(&mut self, now: Time, asking: Asking) -> bool {
        let full = self.is_full() || self.half_open.len() >= self.config.max_half_open;
        let most = self.config.max_half_open_per_source;
        match self.half_open.room(now, asking, most, full) {
            Room::Free => true,
            Room::InPlaceOf(id) => {
                self.give_up(now, id);
                true
            }
            Room::None => false,
        }
    }

    /// Gives up half-open connections whose time has expired.
    pub(super) fn drop_half_open(&mut self, now: Time) {
        while let Some(id) = self.half_open.pop_expired(now) {
            self.give_up(now, id);
        }
    }

    fn give_up(&mut self, now: Time, id: u32) {
        self.stop_waiting(now, id);
        self.forget(Handle(id));
        self.events.push_back(RouterEvent::GivenUp(Handle(id)));
    }
}
