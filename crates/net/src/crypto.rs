//! Real cryptography for the protocol core: Noise handshakes, AES-256-GCM packets, keys.
//!
//! The only suite of wire version 0 is `Noise_IKpsk2_25519_AESGCM_SHA256`, AES-256-GCM for packets, AES-256 for
//! header protection and HMAC-SHA256 for everything keyed (`docs/decisions/0005-aes-256-gcm-ring.md`).

mod cookie;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod key_log;
pub mod keys;
mod noise;
mod packet;
mod preshared;
mod random;
mod schedule;
mod session;
mod stack;
#[cfg(test)]
mod tests;

pub use key_log::KeyLog;
pub use keys::{KeyError, SecretKey};
pub use preshared::PresharedKey;
pub(crate) use preshared::PresharedKeys;

use anabranch_core::crypto::{
    Accepted, Crypto, CryptoError, InitiatorState, MacPurpose, PublicKey, Randomness,
};
use cookie::CookieBox;
use random::SystemRandomness;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use schedule::labelled;
use session::Credentials;
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// An endpoint's identity, doing its handshakes with Noise_IKpsk2 and its packets with AES-256-GCM.
pub struct NoiseCrypto {
    credentials: Arc<Credentials>,
    public: PublicKey,
    own_mac1: hmac::Key,
    cookies: CookieBox,
    /// The key from which each source of random bytes derives its own, in case the system ever fails to give any; and
    /// the number of sources.
    fallback: (hmac::Key, u64),
}

impl NoiseCrypto {
    /// The identity of `secret`. Fails only if the system has no randomness to give.
    pub fn new(secret: SecretKey) -> Result<Self, CryptoError> {
        let public = secret.public_key();
        let mut first = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(first.as_mut_slice()).map_err(|_| CryptoError)?;
        Ok(NoiseCrypto {
            own_mac1: mac_key(b"mac1", &public.0),
            cookies: CookieBox::new(&public),
            fallback: (mac_key(b"random", first.as_slice()), 0),
            credentials: Arc::new(Credentials {
                secret,
                preshared: PresharedKeys::default(),
                key_log: None,
            }),
            public,
        })
    }

    /// Sets the secrets shared with some peers: handshakes with these peers fail unless both sides have the same
    /// secret.
    pub fn with_preshared(self, preshared: BTreeMap<PublicKey, PresharedKey>) -> Self {
        self.credentials.preshared.replace(preshared);
        self
    }

    /// Writes the keys of its connections to `log`.
    pub fn with_key_log(self, log: KeyLog) -> Self {
        let own = &self.credentials;
        let (secret, preshared) = (own.secret.clone(), own.preshared.clone());
        let credentials = Arc::new(Credentials { secret, preshared, key_log: Some(log) });
        NoiseCrypto { credentials, ..self }
    }

    /// The secrets shared with peers, to replace them later.
    pub(crate) fn preshared(&self) -> PresharedKeys {
        self.credentials.preshared.clone()
    }
}

impl core::fmt::Debug for NoiseCrypto {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NoiseCrypto").field("public", &self.public).finish_non_exhaustive()
    }
}

impl Crypto for NoiseCrypto {
    fn public_key(&self) -> PublicKey {
        self.public
    }

    fn randomness(&mut self) -> Box<dyn Randomness> {
        let (key, made) = &mut self.fallback;
        *made += 1;
        Box::new(SystemRandomness::new(key, *made))
    }

    fn initiate(
        &mut self,
        peer: &PublicKey,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Box<dyn InitiatorState>, CryptoError> {
        session::initiate(&self.credentials, peer, payload, message)
    }

    fn accept(&mut self, header: &[u8], message: &[u8]) -> Result<Accepted, CryptoError> {
        session::accept(&self.credentials, header, message)
    }

    fn mac(&self, purpose: MacPurpose<'_>, data: &[u8]) -> [u8; 16] {
        match purpose {
            MacPurpose::Mac1(key) if *key == self.public => tag(&self.own_mac1, data),
            MacPurpose::Mac1(key) => tag(&mac_key(b"mac1", &key.0), data),
            MacPurpose::Mac2(cookie) => tag(&mac_key(b"mac2", cookie), data),
            MacPurpose::Cookie(secret) => tag(&mac_key(b"cookie", secret), data),
        }
    }

    fn seal_cookie(&self, cookie: &[u8; 16], nonce: &[u8; 24], mac1: &[u8; 16]) -> [u8; 32] {
        self.cookies.seal(cookie, nonce, mac1)
    }

    fn open_cookie(
        &self,
        peer: &PublicKey,
        sealed: &[u8; 32],
        nonce: &[u8; 24],
        mac1: &[u8; 16],
    ) -> Result<[u8; 16], CryptoError> {
        CookieBox::new(peer).open(sealed, nonce, mac1)
    }
}

/// A MAC key for one purpose; the label keeps equal material of different purposes apart.
fn mac_key(label: &[u8], material: &[u8]) -> hmac::Key {
    let labelled = labelled(label);
    let salt = hmac::Key::new(hmac::HMAC_SHA256, &labelled);
    hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&salt, material).as_ref())
}

/// HMAC-SHA256, truncated to 128 bits.
fn tag(key: &hmac::Key, data: &[u8]) -> [u8; 16] {
    hmac::sign(key, data).as_ref().first_chunk().copied().unwrap_or_default()
}
