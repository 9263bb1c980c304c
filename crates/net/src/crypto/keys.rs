//! Static X25519 keys: text, files, generation. Written as WireGuard writes them, 44 characters of base64.

use anabranch_core::crypto::{ParseKeyError, PublicKey, decode_key};
use anabranch_files::Atomic;
use base64::engine::Engine;
use base64::engine::general_purpose::STANDARD;
use core::fmt;
use core::str::FromStr;
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_LEN: usize = 32;
/// Longest key file that is read, in bytes; a key with blank space around it is far shorter.
const MAX_FILE_LEN: u64 = 1024;

/// A static secret key. Erased from memory when dropped; `Debug` and `Display` do not show it.
///
/// The bytes are boxed, since Rust moves values by copying them and leaves the old copy as it is.
#[derive(Clone)]
pub struct SecretKey(Box<Zeroizing<[u8; KEY_LEN]>>);

/// Error of a key, or of the file it should be in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not that of a key.
    #[error(transparent)]
    Text(#[from] ParseKeyError),
    /// Others than the owner may read the file. Holds its mode.
    #[error("mode {0:03o} lets others read the secret key; run chmod 600 on the file")]
    Exposed(u32),
    /// The file exists, and overwriting was not asked for.
    #[error("the file exists already")]
    Exists,
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(std::io::Error),
    /// The system has no randomness to give.
    #[error("the system gives no random numbers")]
    Randomness,
}

impl SecretKey {
    /// A new key from the system's randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let mut key = SecretKey::from_bytes([0; KEY_LEN]);
        SystemRandom::new().fill(key.0.as_mut_slice()).map_err(|_| KeyError::Randomness)?;
        #[cfg(test)]
        super::tests::erasure::learn("secret key", key.0.as_slice());
        Ok(key)
    }

    /// The key with these bytes; any 32 bytes are a key (RFC 7748 §5 clamps them in use).
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        SecretKey(Box::new(Zeroizing::new(bytes)))
    }

    /// The key's bytes.
    pub fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// The public key that belongs to this one.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(curve25519_dalek::MontgomeryPoint::mul_base_clamped(**self.0).to_bytes())
    }

    /// The key's text, which [`FromStr`] reads.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.as_bytes()))
    }

    /// Reads a key file. On Unix, a file that other users may read is refused.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let mut file = File::open(path).map_err(KeyError::Io)?;
        check_mode(&file)?;
        // A text that grew would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(2 * MAX_FILE_LEN as usize));
        Read::by_ref(&mut file)
            .take(MAX_FILE_LEN)
            .read_to_string(&mut text)
            .map_err(KeyError::Io)?;
        Ok(text.parse()?)
    }

    /// Writes a key file that only its owner may read. An existing file is an error unless
    /// `overwrite`, and then replaced as a whole.
    pub fn save(&self, path: &Path, overwrite: bool) -> Result<(), KeyError> {
        let text = self.to_base64();
        let saved = Atomic::begin(path, 0o600).and_then(|whole| {
            whole.file().write_all(text.as_bytes())?;
            whole.file().write_all(b"\n")?;
            if overwrite { whole.replace(true) } else { whole.keep(true) }
        });
        saved.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => KeyError::Exists,
            _ => KeyError::Io(error),
        })
    }
}

impl FromStr for SecretKey {
    type Err = ParseKeyError;

    /// Blank space around the text is ignored.
    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let mut bytes = Zeroizing::new([0; KEY_LEN + 1]);
        decode_key(text, &mut bytes).map(SecretKey::from_bytes)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

impl fmt::Display for SecretKey {
    /// Shows only that it is a key: [`to_base64`](Self::to_base64) gives the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret key)")
    }
}

#[cfg(unix)]
pub(super) fn check_mode(file: &File) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata().map_err(KeyError::Io)?;
    if metadata.is_dir() {
        // Nobody should be told to change the mode of a directory.
        return Err(KeyError::Io(std::io::ErrorKind::IsADirectory.into()));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeyError::Exposed(mode)) }
}

#[cfg(not(unix))]
pub(super) fn check_mode(_: &File) -> Result<(), KeyError> {
    Ok(())
}
