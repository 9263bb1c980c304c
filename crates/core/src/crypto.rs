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

    /// Blank space around the text does not count.
    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let mut bytes = [0; 33];
        decode_key(text, &mut bytes).map(PublicKey)
    }
}

/// A text is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseKeyError {
    /// The text does not have 44 characters but this many.
    Length(usize),
    /// The character in this place, counted from 0, is not of the base64 alphabet.
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

/// Reads the text of a 32-byte key; blank space around it does not count. Afterwards `scratch` also holds the key:
/// callers wipe it after a secret. It is a byte longer than a key, since base64 decodes in units of three.
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

/// A cryptographic operation failed; deliberately says nothing about how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoError;

impl fmt::Display for CryptoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cryptographic operation failed")
    }
}

impl std::error::Error for CryptoError {}

/// Purpose of a keyed hash; separates the keys of different uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacPurpose<'a> {
    /// First MAC of a handshake message: keyed by the receiver's public key, so a stranger who does not
    /// know the key cannot make the receiver do a Diffie–Hellman operation.
    Mac1(&'a PublicKey),
    /// Second MAC: keyed by a cookie.
    Mac2(&'a [u8; 16]),
    /// A cookie: keyed by a secret that the receiver changes every two minutes.
    Cookie(&'a [u8; 32]),
}

/// Source of everything that a stranger must not guess: challenges, connection ids, the seeds of hash
/// tables, the secrets of cookies. A generator whose state can be computed from its output does not suffice.
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

    /// A source of random bytes for one user: an endpoint, or one of its connections. The core has no other.
    fn randomness(&mut self) -> Box<dyn Randomness>;

    /// Writes the first Noise message, carrying `payload`, after what `message` holds: the header, which it
    /// authenticates.
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

/// A first message that proved to be well-formed.
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
    /// Writes the second message, carrying `payload`, after what `message` holds.
    fn respond(
        self: Box<Self>,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Session, CryptoError>;
}

/// The initiator between the two messages.
pub trait InitiatorState: fmt::Debug + Send {
    /// Reads the second message. A forged message is an error and leaves the state as it was.
    fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Session), CryptoError>;
}

/// Keys that a handshake leaves to a connection.
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

/// Renews a connection's keys by a fresh Diffie–Hellman, which its two ends authenticate by their static keys again
/// (Noise_KKpsk2). Each exchange is bound to the one before it.
pub trait Rekey: fmt::Debug + Send {
    /// The connection's initiator begins an exchange.
    fn ask(&mut self) -> Result<RekeyMessage, CryptoError>;

    /// The responder answers; the new keys are ready.
    fn answer(&mut self, message: &RekeyMessage)
    -> Result<(RekeyMessage, PacketKeys), CryptoError>;

    /// The initiator reads the answer. A forged one is an error and leaves the exchange as it was.
    fn finish(&mut self, message: &RekeyMessage) -> Result<PacketKeys, CryptoError>;
}

/// Protects outgoing packets.
///
/// The nonce is the path identifier (32 bits) followed by the packet number (64 bits), so every path has
/// a number space of its own under one key.
pub trait Sealer: fmt::Debug + Send {
    /// Encrypts `packet[header_len..len - 16]` in place with `packet[..header_len]` as associated
    /// data, and writes the tag to the last 16 bytes.
    fn seal(&mut self, path: PathId, number: u64, packet: &mut [u8], header_len: usize);

    /// Header-protection masks for samples (each the last 16 bytes of a packet), as many as there are of both.
    fn masks(&self, samples: &[[u8; TAG_LEN]], masks: &mut [[u8; MASK_LEN]]);

    /// The mask for one sample.
    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN] {
        let mut mask = [[0; MASK_LEN]];
        self.masks(&[*sample], &mut mask);
        mask[0]
    }

    /// Packets of any length that the key may still seal.
    fn remaining(&self) -> u64;

    /// Whether so many packets were sealed that it is time for the next key.
    fn is_worn(&self) -> bool;
}

/// Opens incoming packets.
pub trait Opener: fmt::Debug + Send {
    /// Header-protection mask for a sample (the packet's last 16 bytes).
    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN];

    /// Decrypts `packet[header_len..]` in place; returns the plaintext's range end (the packet's
    /// length less the tag).
    fn open(
        &mut self,
        path: PathId,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, CryptoError>;

    /// Whether so many packets were opened that it is time for the next key.
    fn is_worn(&self) -> bool;
}
