//! Derives a connection's keys from its Noise handshakes, the first as well as those that renew the keys.

use super::packet::{HeaderKey, PacketOpener, PacketSealer};
use super::schedule::KEY_LEN;
use super::stack::washed;
use super::{KeyLog, PresharedKey, PresharedKeys, SecretKey, noise};
use anabranch_core::crypto::{
    Accepted, CryptoError, InitiatorState, PacketKeys, PublicKey, REKEY_LEN, Rekey, RekeyMessage,
    ResponderState, Session,
};
use anabranch_core::wire::Role;
use noise::{Finished, Initiated, Pattern, Received};
use std::sync::Arc;

/// Start of the prologue of the handshake that begins a connection; the header of the message follows.
const PROTOCOL: &[u8] = b"anabranch 0";
/// Start of the prologue of a handshake that renews the keys; the hash of the handshake before follows.
const REKEY: &[u8] = b"anabranch 0 rekey";

/// Keys of an endpoint for its handshakes.
#[derive(Debug)]
pub(super) struct Credentials {
    pub(super) secret: SecretKey,
    pub(super) preshared: PresharedKeys,
    /// Where the keys of its connections are written down, if that is wanted.
    pub(super) key_log: Option<KeyLog>,
}

/// Appends a first message after the header in `message`.
pub(super) fn initiate(
    own: &Arc<Credentials>,
    peer: &PublicKey,
    payload: &[u8],
    message: &mut Vec<u8>,
) -> Result<Box<dyn InitiatorState>, CryptoError> {
    let prologue = [PROTOCOL, message].concat();
    let header_len = message.len();
    let state = noise::initiate(Pattern::Ik, &prologue, &own.secret, peer, payload, message)
        .inspect_err(|_| message.truncate(header_len))?;
    Ok(Box::new(Initiator { own: Arc::clone(own), peer: *peer, state: Some(state) }))
}

/// Reads a first message that followed `header`.
pub(super) fn accept(
    own: &Arc<Credentials>,
    header: &[u8],
    message: &[u8],
) -> Result<Accepted, CryptoError> {
    let prologue = [PROTOCOL, header].concat();
    let (state, payload) = noise::receive(&prologue, &own.secret, None, message)?;
    let peer = state.peer;
    Ok(Accepted { peer, payload, responder: Box::new(Responder { own: Arc::clone(own), state }) })
}

#[derive(Debug)]
struct Initiator {
    own: Arc<Credentials>,
    peer: PublicKey,
    /// None once the handshake has finished.
    state: Option<Initiated>,
}

impl InitiatorState for Initiator {
    fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Session), CryptoError> {
        let state = self.state.as_ref().ok_or(CryptoError)?;
        let shared = self.own.preshared.of(&self.peer);
        let (payload, finished) = state.finish(&self.own.secret, shared.as_bytes(), message)?;
        self.state = None;
        let peer = (self.peer, shared);
        Ok((payload, session(&self.own, peer, Role::Initiator, finished)?))
    }
}

#[derive(Debug)]
struct Responder {
    own: Arc<Credentials>,
    state: Received,
}

impl ResponderState for Responder {
    fn respond(
        mut self: Box<Self>,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Session, CryptoError> {
        let peer = self.state.peer;
        let start = message.len();
        let shared = self.own.preshared.of(&peer);
        // The state is used in its box, where it is erased: moved out, it would leave a copy there.
        let finished = self
            .state
            .respond(shared.as_bytes(), payload, message)
            .inspect_err(|_| message.truncate(start))?;
        session(&self.own, (peer, shared), Role::Responder, finished)
    }
}

/// The first keys of a connection, and what renews them.
fn session(
    own: &Arc<Credentials>,
    (peer, shared): (PublicKey, PresharedKey),
    role: Role,
    finished: Finished,
) -> Result<Session, CryptoError> {
    if let Some(log) = &own.key_log {
        let keys = [finished.initiator.header_key()?, finished.responder.header_key()?];
        log.header_keys(&finished.hash, keys.each_ref().map(|key| &***key));
    }
    let headers = Headers {
        initiator: HeaderKey::new(&finished.initiator)?,
        responder: HeaderKey::new(&finished.responder)?,
    };
    let own = Arc::clone(own);
    let hash = finished.hash;
    let first_hash = hash;
    let (epoch, asked) = (0, None);
    let mut rekey = NoiseRekey { own, peer, shared, role, headers, hash, first_hash, epoch, asked };
    let keys = rekey.packet_keys(finished)?;
    Ok(Session { keys, rekey: Box::new(rekey) })
}

/// The header-protection keys of both directions. They stay the same when packet keys are renewed, because the header
/// says under which keys its packet was sealed.
#[derive(Clone)]
struct Headers {
    initiator: Arc<HeaderKey>,
    responder: Arc<HeaderKey>,
}

impl Headers {
    fn packet_keys(&self, role: Role, finished: Finished) -> Result<PacketKeys, CryptoError> {
        let Headers { initiator, responder } = self.clone();
        let initiator = (finished.initiator, initiator);
        let responder = (finished.responder, responder);
        let (ours, theirs) = match role {
            Role::Initiator => (initiator, responder),
            Role::Responder => (responder, initiator),
        };
        washed(|| {
            Ok(PacketKeys {
                sealer: Box::new(PacketSealer::new(&ours.0, ours.1)?),
                opener: Box::new(PacketOpener::new(&theirs.0, theirs.1)?),
            })
        })
    }
}

/// Renews the keys of one connection by Noise KKpsk2 between the same two peers.
struct NoiseRekey {
    own: Arc<Credentials>,
    peer: PublicKey,
    /// The secret shared when the connection began. Both sides keep it, even if it is replaced later.
    shared: PresharedKey,
    role: Role,
    headers: Headers,
    /// Hash of the handshake before. It enters the next one, so that no message of another connection fits.
    hash: [u8; KEY_LEN],
    /// Hash of the connection's first handshake, and the epoch of the next packet keys: their name in the key log.
    first_hash: [u8; KEY_LEN],
    epoch: u64,
    /// The handshake that waits for the responder's answer.
    asked: Option<Initiated>,
}

impl NoiseRekey {
    fn prologue(&self) -> Vec<u8> {
        [REKEY, &self.hash].concat()
    }

    fn renewed(&mut self, finished: Finished) -> Result<PacketKeys, CryptoError> {
        self.hash = finished.hash;
        self.packet_keys(finished)
    }

    /// The packet keys of the next epoch.
    fn packet_keys(&mut self, finished: Finished) -> Result<PacketKeys, CryptoError> {
        if let Some(log) = &self.own.key_log {
            let keys = [finished.initiator.packet_key()?, finished.responder.packet_key()?];
            log.packet_keys(&self.first_hash, self.epoch, keys.each_ref().map(|key| &***key));
        }
        self.epoch += 1;
        self.headers.packet_keys(self.role, finished)
    }
}

impl Rekey for NoiseRekey {
    fn ask(&mut self) -> Result<RekeyMessage, CryptoError> {
        let mut message = Vec::with_capacity(REKEY_LEN);
        let (secret, prologue) = (&self.own.secret, self.prologue());
        let asked = noise::initiate(Pattern::Kk, &prologue, secret, &self.peer, &[], &mut message)?;
        self.asked = Some(asked);
        message.try_into().map_err(|_| CryptoError)
    }

    fn answer(
        &mut self,
        message: &RekeyMessage,
    ) -> Result<(RekeyMessage, PacketKeys), CryptoError> {
        let (secret, prologue) = (&self.own.secret, self.prologue());
        let (mut received, _) = noise::receive(&prologue, secret, Some(self.peer), message)?;
        let mut answer = Vec::with_capacity(REKEY_LEN);
        let finished = received.respond(self.shared.as_bytes(), &[], &mut answer)?;
        let answer = answer.try_into().map_err(|_| CryptoError)?;
        Ok((answer, self.renewed(finished)?))
    }

    fn finish(&mut self, message: &RekeyMessage) -> Result<PacketKeys, CryptoError> {
        let asked = self.asked.as_ref().ok_or(CryptoError)?;
        let (_, finished) = asked.finish(&self.own.secret, self.shared.as_bytes(), message)?;
        self.asked = None;
        self.renewed(finished)
    }
}

impl core::fmt::Debug for NoiseRekey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let asked = self.asked.is_some();
        f.debug_struct("NoiseRekey").field("asked", &asked).finish_non_exhaustive()
    }
}
