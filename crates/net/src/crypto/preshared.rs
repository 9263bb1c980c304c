//! Pre-shared keys: a secret of two peers beside their static keys, as WireGuard has them.

use super::keys::{KEY_LEN, KeyError, SecretKey};
use anabranch_core::crypto::{ParseKeyError, PublicKey};
use core::str::FromStr;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// A secret that two peers share beside their static keys. It is mixed into every handshake between them (Noise
/// `psk2`), so that traffic recorded now cannot be decrypted if X25519 is broken one day, for instance by a quantum
/// computer.
///
/// Written as WireGuard's `PresharedKey`, which `wg genpsk` makes: 44 characters of base64, in a
/// file that only its owner may read. Erased from memory when dropped; never printed by `Debug`.
#[derive(Clone)]
pub struct PresharedKey(SecretKey);

impl PresharedKey {
    /// A new key from the system's randomness.
    ///
    /// # Errors
    /// If the system has none to give.
    pub fn generate() -> Result<Self, KeyError> {
        SecretKey::generate().map(PresharedKey)
    }

    /// The key with these bytes.
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        PresharedKey(SecretKey::from_bytes(bytes))
    }

    /// The key's bytes.
    pub fn as_bytes(&self) -> &[u8; KEY_LEN] {
        self.0.as_bytes()
    }

    /// The key's text, which [`FromStr`] reads.
    pub fn to_base64(&self) -> Zeroizing<String> {
        self.0.to_base64()
    }

    /// Reads a key file. On Unix, a file that other users may read is refused.
    ///
    /// # Errors
    /// If it cannot be read, is open to others, or holds no key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        SecretKey::load(path).map(PresharedKey)
    }

    /// Writes a key file that only its owner may read. An existing file is an error unless `overwrite`.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub fn save(&self, path: &Path, overwrite: bool) -> Result<(), KeyError> {
        self.0.save(path, overwrite)
    }
}

impl FromStr for PresharedKey {
    type Err = ParseKeyError;

    /// Blank space around the text is ignored.
    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        text.parse().map(PresharedKey)
    }
}

impl core::fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PresharedKey(…)")
    }
}

/// The secrets that an endpoint shares with its peers. Clones share the set, so that it can be replaced while the
/// endpoint works.
#[derive(Clone, Debug, Default)]
pub(crate) struct PresharedKeys(Arc<Mutex<BTreeMap<PublicKey, PresharedKey>>>);

impl PresharedKeys {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PublicKey, PresharedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The secret shared with a peer: zero where there is none, as in WireGuard.
    pub(super) fn of(&self, peer: &PublicKey) -> PresharedKey {
        let none = || PresharedKey::from_bytes([0; KEY_LEN]);
        self.lock().get(peer).cloned().unwrap_or_else(none)
    }

    /// Replaces all secrets.
    pub(crate) fn replace(&self, secrets: BTreeMap<PublicKey, PresharedKey>) {
        *self.lock() = secrets;
    }
}
