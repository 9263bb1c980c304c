//! `Noise_IK_25519_AESGCM_SHA256` by `snow`, as far as the transport keys.

use super::schedule::Secret;
use super::{SecretKey, session};
use anabranch_core::crypto::{
    Accepted, CryptoError, InitiatorState, PublicKey, ResponderState, Session,
};
use snow::{Builder, HandshakeState};
use zeroize::Zeroize;

const PATTERN: &str = "Noise_IK_25519_AESGCM_SHA256";
/// Both sides must mean the same protocol; part of the handshake hash.
const PROLOGUE: &[u8] = b"anabranch 0";
/// What the first message adds to its payload: two keys and two tags.
const FIRST_OVERHEAD: usize = 32 + 48 + 16;
/// What the second message adds to its payload: a key and a tag.
const SECOND_OVERHEAD: usize = 32 + 16;

pub(super) fn initiate(
    secret: &SecretKey,
    peer: &PublicKey,
    payload: &[u8],
    message: &mut Vec<u8>,
) -> Result<Box<dyn InitiatorState>, CryptoError> {
    let mut state = builder(secret)?
        .remote_public_key(&peer.0)
        .and_then(Builder::build_initiator)
        .map_err(|_| CryptoError)?;
    write(&mut state, payload, FIRST_OVERHEAD, message)?;
    Ok(Box::new(NoiseInitiator { state }))
}

pub(super) fn accept(secret: &SecretKey, message: &[u8]) -> Result<Accepted, CryptoError> {
    let mut state = builder(secret)?.build_responder().map_err(|_| CryptoError)?;
    let payload = read(&mut state, message)?;
    let peer = state
        .get_remote_static()
        .and_then(|key| key.try_into().ok())
        .map(PublicKey)
        .ok_or(CryptoError)?;
    Ok(Accepted { peer, payload, responder: Box::new(NoiseResponder { state }) })
}

fn builder(secret: &SecretKey) -> Result<Builder<'_>, CryptoError> {
    let params = PATTERN.parse().map_err(|_| CryptoError)?;
    Builder::new(params)
        .prologue(PROLOGUE)
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
