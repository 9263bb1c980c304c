//! Peers that ask for a connection, until the application accepts or refuses them.

use std::collections::BTreeMap;

use anabranch_policy::PolicyError;
use anabranch_types::Time;
use core::fmt;

use super::{Handle, Router};
use crate::config::TransportConfig;
use crate::connection::{Connection, Setup};
use crate::crypto::PublicKey;
use crate::handshake::{self, Candidate};
use crate::path::PathAddress;
use crate::profiles::Profile;
use crate::wire::transport_parameters::MAX_PATHS;
use crate::wire::{ConnectionId, Role, TransportParameters};

/// Most further addresses that get the answer to a waiting message, since a peer has no more paths.
const MOST_COPIES: usize = MAX_PATHS as usize;

/// A permitted peer that has asked for a connection and has no answer yet.
///
/// The peer counts among the half-open connections: it is given up after 30 seconds, or earlier if many others ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The handle of the connection, if the peer is accepted.
    pub handle: Handle,
    /// The peer's key. Anyone who overheard its message may have sent a copy, so it is not proven yet.
    pub peer: PublicKey,
    /// Socket on which the peer's message arrived, and the address from which it came.
    pub address: PathAddress,
    /// Whether the peer has proven that it receives at that address.
    pub validated: bool,
}

/// Settings of an accepted connection.
#[derive(Clone, Debug)]
pub struct AcceptConfig {
    /// Profile of the connection, which chooses its policies.
    pub profile: Profile,
    /// Limits and options of the connection.
    pub transport: TransportConfig,
}

/// Why a peer could not be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptError {
    /// The peer asked too long ago, others replaced it, or it was already accepted or refused.
    Gone,
    /// The profile names a policy that does not exist.
    Policy(PolicyError),
    /// The peer's message cannot be answered.
    Handshake(handshake::AcceptError),
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcceptError::Gone => {
                f.write_str("the peer no longer waits; it may ask again by itself")
            }
            AcceptError::Policy(error) => error.fmt(f),
            AcceptError::Handshake(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AcceptError {}

/// Peers that wait to be decided on, by handle.
pub(super) type Waiting = BTreeMap<u32, Asked>;

/// A peer's request for a connection.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) incoming: Incoming,
    /// Addresses from which copies of the message came. They get the same answer, which validates
    /// these paths.
    copies: Vec<PathAddress>,
    candidate: Candidate,
    parameters: TransportParameters,
}

impl Router {
    /// Keeps a peer's request until it is accepted or refused.
    pub(super) fn wait(
        &mut self,
        now: Time,
        incoming: Incoming,
        candidate: Candidate,
        parameters: TransportParameters,
    ) {
        let Handle(id) = incoming.handle;
        self.responder.hold(now, &candidate, id);
        self.waiting.insert(id, Asked { incoming, copies: Vec::new(), candidate, parameters });
    }

    /// Notes that a copy of a waiting message came from `address`.
    pub(super) fn wait_there(&mut self, id: u32, address: PathAddress) {
        let Some(Asked { incoming, copies, .. }) = self.waiting.get_mut(&id) else { return };
        if address != incoming.address && !copies.contains(&address) && copies.len() < MOST_COPIES {
            copies.push(address);
        }
    }

    /// Removes a waiting message and returns it; `None` if it does not wait.
    fn take_waiting(&mut self, incoming: &Incoming) -> Option<Asked> {
        let Handle(id) = incoming.handle;
        if self.waiting.get(&id)?.incoming != *incoming {
            return None;
        }
        self.waiting.remove(&id)
    }

    /// Accepts a peer; [`RouterEvent::Begun`](super::RouterEvent::Begun) follows.
    ///
    /// # Errors
    /// If the peer no longer waits or cannot be answered; it is then dropped.
    pub fn accept(
        &mut self,
        now: Time,
        incoming: &Incoming,
        config: AcceptConfig,
    ) -> Result<(), AcceptError> {
        let asked = self.take_waiting(incoming).ok_or(AcceptError::Gone)?;
        self.responder.ignore(now, &asked.candidate);
        let accepted = self.answer(now, asked, config);
        if accepted.is_err() {
            self.forget(incoming.handle);
        }
        accepted
    }

    fn answer(&mut self, now: Time, asked: Asked, config: AcceptConfig) -> Result<(), AcceptError> {
        let Asked { incoming, copies, candidate, parameters } = asked;
        let AcceptConfig { profile, transport } = config;
        let (Handle(id), remote_id) = (incoming.handle, ConnectionId(candidate.remote_id));
        let ours = self.parameters(&profile, &transport, id).encode();
        let accepting = self
            .responder
            .accept(self.crypto.as_ref(), now, candidate, id, &ours)
            .map_err(AcceptError::Handshake)?;
        let setup = Setup {
            role: Role::Responder,
            peer: incoming.peer,
            local_ids: self.path_ids.of(id),
            remote_id,
            session: accepting.session,
            config: transport,
            profile,
            peer_parameters: parameters,
            random: self.crypto.randomness(),
            now,
        };
        let connection = Connection::new(setup).map_err(AcceptError::Policy)?;
        self.begin(id, connection);
        for address in copies {
            self.reply(address, accepting.response.clone());
        }
        self.reply(incoming.address, accepting.response);
        Ok(())
    }

    /// Sends no answer to a peer or to the copies of its message.
    pub fn ignore(&mut self, now: Time, incoming: &Incoming) {
        if let Some(asked) = self.take_waiting(incoming) {
            self.responder.ignore(now, &asked.candidate);
            self.forget(incoming.handle);
        }
    }

    /// Sends a cookie to a peer, which then asks again with the cookie and so validates its
    /// address. Returns false if the peer no longer waits or is already validated.
    pub fn retry(&mut self, now: Time, incoming: &Incoming) -> bool {
        if incoming.validated {
            return false;
        }
        let Some(Asked { candidate, .. }) = self.take_waiting(incoming) else { return false };
        self.forget(incoming.handle);
        self.responder.reopen(now, &candidate);
        let remote = incoming.address.remote;
        let cookie = self.responder.cookie_for(self.crypto.as_ref(), now, remote, &candidate);
        self.reply(incoming.address, cookie);
        true
    }

    /// Drops a waiting message; its next copy is read as if it were the first.
    pub(super) fn stop_waiting(&mut self, now: Time, id: u32) {
        if let Some(asked) = self.waiting.remove(&id) {
            self.responder.reopen(now, &asked.candidate);
        }
    }
}

#[cfg(test)]
mod tests;
