//! Noise handshakes of a connection (Noise specification, revision 34): IKpsk2 begins it, KKpsk2 renews its keys.
//!
//! The handshakes differ in whether the responder learns the initiator's static key from the first message or knows
//! it. They are written here, and not taken from a library, so that every secret in them is erased after use, on the
//! stack as well. The tests compare the messages with those of `snow`.

mod symmetric;
#[cfg(test)]
mod tests;

use super::SecretKey;
use super::schedule::{KEY_LEN, Secret};
use super::stack::washed;
use anabranch_core::crypto::{CryptoError, PublicKey, TAG_LEN};
use curve25519_dalek::MontgomeryPoint;
use symmetric::Symmetric;
use zeroize::{Zeroize, Zeroizing};

/// Whether the responder knows the initiator's static key beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The responder does not know it: the first message carries the key, sealed.
    Ik,
    /// The responder knows it.
    Kk,
}

impl Pattern {
    const fn name(self) -> &'static [u8; KEY_LEN] {
        match self {
            Pattern::Ik => b"Noise_IKpsk2_25519_AESGCM_SHA256",
            Pattern::Kk => b"Noise_KKpsk2_25519_AESGCM_SHA256",
        }
    }
}

/// An initiator that has sent the first message.
#[derive(Clone)]
pub(super) struct Initiated {
    state: Symmetric,
    ephemeral: SecretKey,
}

/// A responder that has read the first message.
pub(super) struct Received {
    state: Symmetric,
    /// The initiator's static key.
    pub(super) peer: PublicKey,
    ephemeral: [u8; KEY_LEN],
}

/// The outcome of a handshake.
pub(super) struct Finished {
    /// Protects the initiator's packets.
    pub(super) initiator: Secret,
    /// Protects the responder's packets.
    pub(super) responder: Secret,
    /// The hash of both messages.
    pub(super) hash: [u8; KEY_LEN],
}

/// Appends the first message to `message`: e, es, (s,) ss.
#[expect(clippy::too_many_arguments, reason = "whom to tell what, and in which handshake")]
pub(super) fn initiate(
    pattern: Pattern,
    prologue: &[u8],
    secret: &SecretKey,
    peer: &PublicKey,
    payload: &[u8],
    message: &mut Vec<u8>,
) -> Result<Initiated, CryptoError> {
    washed(|| {
        let ephemeral = SecretKey::generate().map_err(|_| CryptoError)?;
        let mut state = Symmetric::new(pattern.name(), prologue);
        let own = secret.public_key().0;
        if pattern == Pattern::Kk {
            state.mix_hash(&own);
        }
        state.mix_hash(&peer.0);
        let public = ephemeral.public_key().0;
        message.extend_from_slice(&public);
        state.mix_public(&public)?;
        state.mix_key(&**agree(&ephemeral, &peer.0)?)?;
        if pattern == Pattern::Ik {
            state.seal(&own, message)?;
        }
        state.mix_key(&**agree(secret, &peer.0)?)?;
        state.seal(payload, message)?;
        Ok(Initiated { state, ephemeral })
    })
}

/// Reads the first message and its payload. `peer` is the initiator's static key, where it is known.
pub(super) fn receive(
    prologue: &[u8],
    secret: &SecretKey,
    peer: Option<PublicKey>,
    message: &[u8],
) -> Result<(Received, Vec<u8>), CryptoError> {
    washed(|| {
        let pattern = if peer.is_some() { Pattern::Kk } else { Pattern::Ik };
        let mut state = Symmetric::new(pattern.name(), prologue);
        if let Some(peer) = peer {
            state.mix_hash(&peer.0);
        }
        state.mix_hash(&secret.public_key().0);
        let (ephemeral, mut rest) = message.split_first_chunk().ok_or(CryptoError)?;
        state.mix_public(ephemeral)?;
        state.mix_key(&**agree(secret, ephemeral)?)?;
        let peer = match peer {
            Some(peer) => peer,
            None => {
                let (sealed, after) =
                    rest.split_first_chunk::<{ KEY_LEN + TAG_LEN }>().ok_or(CryptoError)?;
                rest = after;
                PublicKey(state.open(sealed)?.try_into().map_err(|_| CryptoError)?)
            }
        };
        state.mix_key(&**agree(secret, &peer.0)?)?;
        let payload = state.open(rest)?;
        Ok((Received { state, peer, ephemeral: *ephemeral }, payload))
    })
}

impl Received {
    /// Appends the second message to `message`: e, ee, se, psk.
    pub(super) fn respond(
        &mut self,
        preshared: &[u8; KEY_LEN],
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Finished, CryptoError> {
        washed(|| {
            let ephemeral = SecretKey::generate().map_err(|_| CryptoError)?;
            let public = ephemeral.public_key().0;
            message.extend_from_slice(&public);
            self.state.mix_public(&public)?;
            self.state.mix_key(&**agree(&ephemeral, &self.ephemeral)?)?;
            self.state.mix_key(&**agree(&ephemeral, &self.peer.0)?)?;
            self.state.mix_key_and_hash(preshared)?;
            self.state.seal(payload, message)?;
            finish(&self.state)
        })
    }
}

impl Initiated {
    /// Reads the second message and its payload. After a forged message, the genuine one can still
    /// be read.
    pub(super) fn finish(
        &self,
        secret: &SecretKey,
        preshared: &[u8; KEY_LEN],
        message: &[u8],
    ) -> Result<(Vec<u8>, Finished), CryptoError> {
        washed(|| {
            let mut state = self.state.clone();
            let (ephemeral, rest) = message.split_first_chunk().ok_or(CryptoError)?;
            state.mix_public(ephemeral)?;
            state.mix_key(&**agree(&self.ephemeral, ephemeral)?)?;
            state.mix_key(&**agree(secret, ephemeral)?)?;
            state.mix_key_and_hash(preshared)?;
            let payload = state.open(rest)?;
            Ok((payload, finish(&state)?))
        })
    }
}

fn finish(state: &Symmetric) -> Result<Finished, CryptoError> {
    let (initiator, responder) = state.split()?;
    Ok(Finished { initiator, responder, hash: state.hash() })
}

/// X25519. A peer whose key makes the result zero is refused (RFC 7748 §6.1).
fn agree(
    secret: &SecretKey,
    public: &[u8; KEY_LEN],
) -> Result<Box<Zeroizing<[u8; KEY_LEN]>>, CryptoError> {
    let mut point = MontgomeryPoint(*public).mul_clamped(*secret.as_bytes());
    let mut shared = Box::new(Zeroizing::new([0; KEY_LEN]));
    shared.copy_from_slice(point.as_bytes());
    point.zeroize();
    #[cfg(test)]
    super::tests::erasure::learn("outcome of X25519", shared.as_slice());
    if shared.iter().fold(0, |any, byte| any | byte) == 0 { Err(CryptoError) } else { Ok(shared) }
}

impl core::fmt::Debug for Initiated {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Initiated").finish_non_exhaustive()
    }
}

impl core::fmt::Debug for Received {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Received").field("peer", &self.peer).finish_non_exhaustive()
    }
}
