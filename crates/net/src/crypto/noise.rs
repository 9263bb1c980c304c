//! `Noise_IKpsk2_25519_AESGCM_SHA256` by `snow`, as far as the transport keys.

use super::keys::KEY_LEN;
use super::schedule::Secret;
use super::{PresharedKey, SecretKey, session};
use anabranch_core::crypto::{
    Accepted, CryptoError, InitiatorState, PublicKey, ResponderState, Session,
};
use snow::{Builder, HandshakeState};
use std::collections::BTreeMap;
use zeroize::Zeroize;

const PATTERN: &str = "Noise_IKpsk2_25519_AESGCM_SHA256";
/// Both sides must mean the same protocol; what the prologue begins with.
const PROTOCOL: &[u8] = b"anabranch 0";
/// Where the pre-shared key is mixed in: at the end of the second message.
const PSK_PLACE: u8 = 2;
/// What the first message adds to its payload: two keys and two tags.
const FIRST_OVERHEAD: usize = 32 + 48 + 16;
/// What the second message adds to its payload: a key and a tag.
const SECOND_OVERHEAD: usize = 32 + 16;

/// What an endpoint brings to its handshakes.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) secret: &'a SecretKey,
    pub(super) preshared: &'a BTreeMap<PublicKey, PresharedKey>,
}

impl<'a> Keys<'a> {
    /// The secret shared with a peer: zero where there is none, as in WireGuard.
    fn shared_with(&self, peer: &PublicKey) -> &'a [u8; KEY_LEN] {
        self.preshared.get(peer).map_or(&[0; KEY_LEN], PresharedKey::as_bytes)
    }
}

pub(super) fn initiate(
    keys: Keys<'_>,
    peer: &PublicKey,
    payload: &[u8],
    message: &mut Vec<u8>,
) -> Result<Box<dyn InitiatorState>, CryptoError> {
    let prologue = prologue(message);
    let mut state = builder(keys.secret, &prologue)?
        .remote_public_key(&peer.0)
        .and_then(|builder| builder.psk(PSK_PLACE, keys.shared_with(peer)))
        .and_then(Builder::build_initiator)
        .map_err(|_| CryptoError)?;
    write(&mut state, payload, FIRST_OVERHEAD, message)?;
    Ok(Box::new(NoiseInitiator { state }))
}

pub(super) fn accept(
    keys: Keys<'_>,
    header: &[u8],
    message: &[u8],
) -> Result<Accepted, CryptoError> {
    let prologue = prologue(header);
    let mut state = builder(keys.secret, &prologue)?.build_responder().map_err(|_| CryptoError)?;
    let payload = read(&mut state, message)?;
    let peer = state
        .get_remote_static()
        .and_then(|key| key.try_into().ok())
        .map(PublicKey)
        .ok_or(CryptoError)?;
    // Who the peer is, and so what it shares with this side, the first message tells.
    let shared = keys.shared_with(&peer);
    state.set_psk(PSK_PLACE.into(), shared).map_err(|_| CryptoError)?;
    Ok(Accepted { peer, payload, responder: Box::new(NoiseResponder { state }) })
}

/// Who reads a message under another header, or means another protocol, finds that it does not open.
fn prologue(header: &[u8]) -> Vec<u8> {
    [PROTOCOL, header].concat()
}

fn builder<'a>(secret: &'a SecretKey, prologue: &'a [u8]) -> Result<Builder<'a>, CryptoError> {
    let params = PATTERN.parse().map_err(|_| CryptoError)?;
    Builder::new(params)
        .prologue(prologue)
        .and_then(|builder| builder.local_private_key(secret.as_bytes()))
        .map_err(|_| CryptoError)
}

#[derive(Debug)]
struct NoiseInitiator {
    state: HandshakeState,
}

impl InitiatorState for NoiseInitiator {
    fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Session), CryptoError> {
        let payload = read(&mut self.state, message)?;
        Ok((payload, split(&mut self.state)?))
    }
}

#[derive(Debug)]
struct NoiseResponder {
    state: HandshakeState,
}

impl ResponderState for NoiseResponder {
    fn respond(
        mut self: Box<Self>,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Session, CryptoError> {
        write(&mut self.state, payload, SECOND_OVERHEAD, message)?;
        split(&mut self.state)
    }
}

fn write(
    state: &mut HandshakeState,
    payload: &[u8],
    overhead: usize,
    message: &mut Vec<u8>,
) -> Result<(), CryptoError> {
    let start = message.len();
    message.resize(start + payload.len() + overhead, 0);
    match state.write_message(payload, &mut message[start..]) {
        Ok(len) => {
            message.truncate(start + len);
            Ok(())
        }
        Err(_) => {
            message.truncate(start);
            Err(CryptoError)
        }
    }
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let mut payload = vec![0; message.len()];
    let len = state.read_message(message, &mut payload).map_err(|_| CryptoError)?;
    payload.truncate(len);
    Ok(payload)
}

/// The transport keys (Noise specification §5.2, `Split`): the first is the initiator's.
fn split(state: &mut HandshakeState) -> Result<Session, CryptoError> {
    if !state.is_handshake_finished() {
        return Err(CryptoError);
    }
    let (mut first, mut second) = state.dangerously_get_raw_split();
    let (initiator, responder) = (Secret::new(first), Secret::new(second));
    first.zeroize();
    second.zeroize();
    if state.is_initiator() { session(initiator, responder) } else { session(responder, initiator) }
}
