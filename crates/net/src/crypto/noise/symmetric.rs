//! The state that both sides of a Noise handshake keep: `SymmetricState` and `CipherState` of the Noise
//! specification, §5.1 and §5.2, with SHA-256 and AES-256-GCM.

use crate::crypto::schedule::{KEY_LEN, Secret};
use anabranch_core::crypto::{CryptoError, TAG_LEN};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A handshake's chaining key, hash and present cipher key. Boxed, since a move would leave a copy behind.
#[derive(Clone)]
pub(super) struct Symmetric(Box<State>);

/// Erased from memory when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
struct State {
    chain: [u8; KEY_LEN],
    hash: [u8; KEY_LEN],
    key: [u8; KEY_LEN],
    /// Messages sealed or opened under `key`.
    sealed: u64,
}

impl Symmetric {
    /// The state of the protocol called `name`, whose 32 bytes are the first hash (§5.2).
    pub(super) fn new(name: &[u8; KEY_LEN], prologue: &[u8]) -> Self {
        let state = State { chain: *name, hash: *name, key: [0; KEY_LEN], sealed: 0 };
        let mut state = Symmetric(Box::new(state));
        state.mix_hash(prologue);
        state
    }

    /// The hash of everything so far: equal on both sides, and only for this handshake.
    pub(super) fn hash(&self) -> [u8; KEY_LEN] {
        self.0.hash
    }

    pub(super) fn mix_hash(&mut self, data: &[u8]) {
        let mut context = Context::new(&SHA256);
        context.update(&self.0.hash);
        context.update(data);
        self.0.hash.copy_from_slice(context.finish().as_ref());
    }

    pub(super) fn mix_key(&mut self, input: &[u8; KEY_LEN]) -> Result<(), CryptoError> {
        let derived = derive::<2>(&self.0.chain, input)?;
        self.0.chain.copy_from_slice(&derived[0]);
        self.0.key.copy_from_slice(&derived[1]);
        self.0.sealed = 0;
        Ok(())
    }

    pub(super) fn mix_key_and_hash(&mut self, input: &[u8; KEY_LEN]) -> Result<(), CryptoError> {
        let derived = derive::<3>(&self.0.chain, input)?;
        self.0.chain.copy_from_slice(&derived[0]);
        self.0.key.copy_from_slice(&derived[2]);
        self.0.sealed = 0;
        self.mix_hash(&derived[1]);
        Ok(())
    }

    /// Mixes in a public key sent in the clear: with a pre-shared key, it enters the hash and the chaining key (§9.2).
    pub(super) fn mix_public(&mut self, key: &[u8; KEY_LEN]) -> Result<(), CryptoError> {
        self.mix_hash(key);
        self.mix_key(key)
    }

    /// `EncryptAndHash`: appends `plain`, sealed, to `message`.
    pub(super) fn seal(&mut self, plain: &[u8], message: &mut Vec<u8>) -> Result<(), CryptoError> {
        let start = message.len();
        message.extend_from_slice(plain);
        let body = message.get_mut(start..).ok_or(CryptoError)?;
        let tag =
            self.cipher()?.seal_in_place_separate_tag(self.nonce(), Aad::from(self.0.hash), body);
        message.extend_from_slice(tag.map_err(|_| CryptoError)?.as_ref());
        self.0.sealed += 1;
        self.mix_hash(message.get(start..).ok_or(CryptoError)?);
        Ok(())
    }

    /// `DecryptAndHash`: what [`seal`](Self::seal) sealed.
    pub(super) fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let mut plain = sealed.to_vec();
        let opened = self.cipher()?.open_in_place(self.nonce(), Aad::from(self.0.hash), &mut plain);
        opened.map_err(|_| CryptoError)?;
        plain.truncate(sealed.len().saturating_sub(TAG_LEN));
        self.0.sealed += 1;
        self.mix_hash(sealed);
        Ok(plain)
    }

    /// `Split`: the secrets of the initiator's and of the responder's packets.
    pub(super) fn split(&self) -> Result<(Secret, Secret), CryptoError> {
        let derived = derive::<2>(&self.0.chain, &[])?;
        Ok((Secret::new(&derived[0]), Secret::new(&derived[1])))
    }

    fn cipher(&self) -> Result<LessSafeKey, CryptoError> {
        UnboundKey::new(&AES_256_GCM, &self.0.key).map(LessSafeKey::new).map_err(|_| CryptoError)
    }

    /// Four zero bytes and the counter, big-endian (§12.4).
    fn nonce(&self) -> Nonce {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&self.0.sealed.to_be_bytes());
        Nonce::assume_unique_for_key(bytes)
    }
}

/// `HKDF` (§4.3): this many outputs of 32 bytes.
fn derive<const N: usize>(
    chain: &[u8; KEY_LEN],
    input: &[u8],
) -> Result<Box<Zeroizing<[[u8; KEY_LEN]; N]>>, CryptoError> {
    let prk = Salt::new(HKDF_SHA256, chain).extract(input);
    let okm = prk.expand(&[], Outputs(N)).map_err(|_| CryptoError)?;
    let mut out = Box::new(Zeroizing::new([[0; KEY_LEN]; N]));
    okm.fill(out.as_flattened_mut()).map_err(|_| CryptoError)?;
    #[cfg(test)]
    out.iter().for_each(|key| crate::crypto::tests::erasure::learn("key of a handshake", key));
    Ok(out)
}

/// This many outputs of HKDF.
struct Outputs(usize);

impl KeyType for Outputs {
    fn len(&self) -> usize {
        self.0 * KEY_LEN
    }
}
