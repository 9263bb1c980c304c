//! Checks: handshakes that ask whether the peer still has a connection, without opening one.

use anabranch_types::Time;
use core::time::Duration;

use super::router::Attempt;
use super::{ConnectConfig, Handle, Router, RouterEvent};
use crate::connection::{CHECK_AGAIN, Connection};
use crate::crypto::PublicKey;
use crate::handshake::{Candidate, Established, Schedule};
use crate::path::PathAddress;
use crate::wire::{ConnectionId, Role, TransportParameters};

/// Schedule of a check: copies follow within half a second, so that a restarted peer is noticed soon.
const SCHEDULE: Schedule = Schedule {
    first: Duration::from_millis(250),
    longest: Duration::from_millis(400),
    give_up: CHECK_AGAIN,
};

/// A question to a peer that is silent.
#[derive(Clone, Debug)]
pub struct Check {
    /// The connection in question, which was opened by this side.
    pub about: Handle,
    /// The peer.
    pub peer: PublicKey,
    /// The peer's id of the connection.
    pub remote_id: ConnectionId,
    /// The addresses of the connection's paths, where the peer is asked.
    pub paths: Vec<PathAddress>,
}

impl Check {
    /// The question about `connection`, whose handle is `about`. `None` if the peer opened the
    /// connection, since the peer then asks.
    pub fn of(about: Handle, connection: &Connection) -> Option<Self> {
        (connection.role() == Role::Initiator).then(|| Check {
            about,
            peer: connection.peer(),
            remote_id: connection.remote_id(),
            paths: connection.open_addresses(),
        })
    }
}

impl Router {
    /// Asks a peer whether it still has a connection. [`RouterEvent::Checked`] reports the answer,
    /// if it arrives within four seconds. A further question about the same connection replaces the
    /// previous one.
    pub fn check(&mut self, now: Time, check: Check) {
        let Check { about, peer, remote_id, paths } = check;
        self.attempts.retain(|_, attempt| attempt.about != Some(about));
        if paths.is_empty() {
            return;
        }
        let id = self.unused_id();
        let parameters =
            TransportParameters { check: Some(remote_id.0), ..TransportParameters::default() };
        let profile = self.config.profile.clone();
        let config = ConnectConfig { peer, paths, profile };
        // Without randomness or memory for a handshake, the check remains unanswered.
        if let Ok(initiator) = self.initiate(now, id, &config, &parameters.encode(), SCHEDULE) {
            let attempt = Attempt { initiator, config, next_path: 0, about: Some(about) };
            self.attempts.insert(id, attempt);
        }
    }

    /// Processes the answer to a check.
    pub(super) fn on_check_answer(&mut self, about: Handle, established: &Established) {
        let answer = TransportParameters::decode(&established.parameters).ok();
        // A peer whose answer lacks this parameter does not support checks, so nothing is known.
        if let Some(known) = answer.and_then(|parameters| parameters.check) {
            self.events.push_back(RouterEvent::Checked(about, known != 0));
        }
    }

    /// Answers a peer that asks whether this side still has a connection that it accepted.
    pub(super) fn answer_check(
        &mut self,
        now: Time,
        address: PathAddress,
        candidate: Candidate,
        id: u32,
    ) {
        let known = self.connections.get(&id) == Some(&(Role::Responder, candidate.peer));
        let answer =
            TransportParameters { check: Some(known.into()), ..TransportParameters::default() };
        let parameters = answer.encode();
        let accepted = self.responder.accept(self.crypto.as_ref(), now, candidate, id, &parameters);
        if let Ok(accepting) = accepted {
            self.reply(address, accepting.response);
        }
    }
}
