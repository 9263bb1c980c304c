//! The cryptography that the core needs, as traits. `anabranch` (crate `net`) implements them with a Noise IK handshake
//! and a real AEAD; the simulator uses `null` (feature `null-crypto`).

use anabranch_types::PathId;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, DecodeSliceError, Engine};
use core::fmt;
use core::str::FromStr;

#[cfg(any(test, feature = "null-crypto"))]
pub mod null;

/// Bytes that sealing adds to a packet.
pub const TAG_LEN: usize = 16;
/// Characters of a key's text.
pub const KEY_TEXT_LEN: usize = 44;
/// Bytes of a header-protection mask.
pub const MASK_LEN: usize = 6;

/// A static X25519 public key. Its text is WireGuard's: 44 characters of base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Base64Display::new(&self.0, &STANDARD), f)
    }
}

impl FromStr for PublicKey {
    type Err = ParseKeyError;

    /// White space around the text is ignored.
    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let mut bytes = [0; 33];
        decode_key(text, &mut bytes).map(PublicKey)
    }
}

/// Why a text is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseKeyError {
    /// The text has this many characters instead of 44.
    Length(usize),
    /// The character at this position, counted from 0, is not in the base64 alphabet.
    Character(usize),
    /// The padding is wrong, or the last character carries bits beyond the 32 bytes.
    Ending,
}

impl fmt::Display for ParseKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseKeyError::Length(length) => {
                write!(f, "a key has {KEY_TEXT_LEN} characters of base64, this has {length}")
            }
            ParseKeyError::Character(at) => {
                write!(f, "character {at} of the key is not base64")
            }
            ParseKeyError::Ending => {
                f.write_str("the last characters are not those of 32 bytes in base64")
            }
        }
    }
}

impl std::error::Error for ParseKeyError {}

/// Reads the text of a 32-byte key; white space around it is ignored. Afterwards `scratch` also
/// holds the key, so callers wipe it if the key is secret. It is a byte longer than a key, since
/// base64 decodes in units of three bytes.
pub fn decode_key(text: &str, scratch: &mut [u8; 33]) -> Result<[u8; 32], ParseKeyError> {
    let text = text.trim();
    if let Some(at) = text.chars().position(|character| !character.is_ascii()) {
        return Err(ParseKeyError::Character(at));
    }
    if text.len() != KEY_TEXT_LEN {
        return Err(ParseKeyError::Length(text.len()));
    }
    let length = STANDARD.decode_slice(text, &mut scratch[..]).map_err(|error| match error {
        DecodeSliceError::DecodeError(DecodeError::InvalidByte(at, _)) => {
            ParseKeyError::Character(at)
        }
        _ => ParseKeyError::Ending,
    })?;
    match scratch.first_chunk() {
        Some(key) if length == key.len() => Ok(*key),
        _ => Err(ParseKeyError::Ending),
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// A cryptographic operation failed. The error deliberately does not say why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoError;

impl fmt::Display for CryptoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cryptographic operation failed")
    }
}

impl std::error::Error for CryptoError {}

/// Purpose of a keyed hash, which separates the keys of different uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacPurpose<'a> {
    /// First MAC of a handshake message, keyed by the receiver's public key: a stranger who does
    /// not know this key cannot make the receiver do a Diffie–Hellman operation.
    Mac1(&'a PublicKey),
    /// Second MAC, keyed by a cookie.
    Mac2(&'a [u8; 16]),
    /// A cookie, keyed by a secret that the receiver changes every two minutes.
    Cookie(&'a [u8; 32]),
}

/// Source of all values that a stranger must not be able to guess: challenges, connection ids, the
/// seeds of hash tables, the secrets of cookies. A generator whose state can be computed from its
/// output does not suffice.
pub trait Randomness: fmt::Debug + Send {
    /// Fills `out` with random bytes.
    fn fill(&mut self, out: &mut [u8]);

    /// 64 random bits.
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Uniform in `0..bound`, except for a bias below `bound` ÷ 2^64; 0 if `bound` is 0.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// An endpoint's identity and its handshakes (Noise_IKpsk2: the initiator knows the responder's key).
pub trait Crypto: fmt::Debug + Send {
    /// This endpoint's static public key.
    fn public_key(&self) -> PublicKey;

    /// A source of random bytes for one endpoint, or for one of its connections. The core has no
    /// other source.
    fn randomness(&mut self) -> Box<dyn Randomness>;

    /// Appends the first Noise message, which carries `payload`, to `message`, which holds the
    /// header. The Noise message authenticates the header.
    fn initiate(
        &mut self,
        peer: &PublicKey,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Box<dyn InitiatorState>, CryptoError>;

    /// Reads a first Noise message, which followed `header`.
    fn accept(&mut self, header: &[u8], message: &[u8]) -> Result<Accepted, CryptoError>;

    /// A 16-byte keyed hash of `data`.
    fn mac(&self, purpose: MacPurpose<'_>, data: &[u8]) -> [u8; 16];

    /// Encrypts a cookie for the sender of a message whose first MAC was `mac1`; 32 bytes out.
    fn seal_cookie(&self, cookie: &[u8; 16], nonce: &[u8; 24], mac1: &[u8; 16]) -> [u8; 32];

    /// Decrypts a cookie from `peer`.
    fn open_cookie(
        &self,
        peer: &PublicKey,
        sealed: &[u8; 32],
        nonce: &[u8; 24],
        mac1: &[u8; 16],
    ) -> Result<[u8; 16], CryptoError>;
}

/// A first message that was authenticated and decrypted.
#[derive(Debug)]
pub struct Accepted {
    /// The initiator's static key.
    pub peer: PublicKey,
    /// Payload of the message.
    pub payload: Vec<u8>,
    /// State that completes the handshake.
    pub responder: Box<dyn ResponderState>,
}

/// The responder between the two messages.
pub trait ResponderState: fmt::Debug + Send {
    /// Appends the second Noise message, which carries `payload`, to `message`.
    fn respond(
        self: Box<Self>,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Session, CryptoError>;
}

/// The initiator between the two messages.
pub trait InitiatorState: fmt::Debug + Send {
    /// Reads the second message. A forged message is an error and leaves the state unchanged.
    fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Session), CryptoError>;
}

/// Keys that a connection gets from its handshake.
#[derive(Debug)]
pub struct Session {
    /// The connection's first keys.
    pub keys: PacketKeys,
    /// Makes the connection's next keys.
    pub rekey: Box<dyn Rekey>,
}

/// The keys of both directions.
#[derive(Debug)]
pub struct PacketKeys {
    /// Protects what this side sends.
    pub sealer: Box<dyn Sealer>,
    /// Opens what the peer sends.
    pub opener: Box<dyn Opener>,
}

/// Bytes of each message of an exchange that renews keys.
pub const REKEY_LEN: usize = 48;

/// A message of an exchange that renews keys.
pub type RekeyMessage = [u8; REKEY_LEN];

/// Renews a connection's keys by a new Diffie–Hellman exchange, which both ends authenticate by
/// their static keys (Noise_KKpsk2). Each exchange is bound to the previous one.
pub trait Rekey: fmt::Debug + Send {
    /// Begins an exchange, at the connection's initiator.
    fn ask(&mut self) -> Result<RekeyMessage, CryptoError>;

    /// Answers at the responder, and returns the new keys.
    fn answer(&mut self, message: &RekeyMessage)
    -> Result<(RekeyMessage, PacketKeys), CryptoError>;

    /// Reads the answer at the initiator. A forged answer is an error and leaves the exchange
    /// unchanged.
    fn finish(&mut self, message: &RekeyMessage) -> Result<PacketKeys, CryptoError>;
}

/// Protects outgoing packets.
///
/// The nonce is the path identifier (32 bits) followed by the packet number (64 bits), so every
/// path has its own number space under one key.
pub trait Sealer: fmt::Debug + Send {
    /// Encrypts `packet[header_len..len - 16]` in place with `packet[..header_len]` as associated
    /// data, and writes the tag to the last 16 bytes.
    fn seal(&mut self, path: PathId, number: u64, packet: &mut [u8], header_len: usize);

    /// Computes header-protection masks for samples (each the last 16 bytes of a packet), for as
    /// many as both slices have.
    fn masks(&self, samples: &[[u8; TAG_LEN]], masks: &mut [[u8; MASK_LEN]]);

    /// The mask for one sample.
    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN] {
        let mut mask = [[0; MASK_LEN]];
        self.masks(&[*sample], &mut mask);
        mask[0]
    }

    /// How many packets of any length the key may still seal.
    fn remaining(&self) -> u64;

    /// Whether so many packets were sealed that the next key is due.
    fn is_worn(&self) -> bool;
}

/// Opens incoming packets.
pub trait Opener: fmt::Debug + Send {
    /// Header-protection mask for a sample (the packet's last 16 bytes).
    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN];

    /// Decrypts `packet[header_len..]` in place; returns where the plaintext ends (the packet's
    /// length minus the tag).
    fn open(
        &mut self,
        path: PathId,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, CryptoError>;

    /// Whether so many packets were opened that the next key is due.
    fn is_worn(&self) -> bool;
}
