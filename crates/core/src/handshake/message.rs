//! Layouts of the three handshake messages (`docs/spec/wire-0.md`, "Packets").
//!
//! Parsing only splits the bytes into fields; the callers, which know the keys, check MACs and
//! ciphertexts.

use crate::crypto::{Crypto, MacPurpose, PublicKey, TAG_LEN};
use core::fmt;

/// First byte of an Initiation.
pub const INITIATION: u8 = 0x01;
/// First byte of a Response.
pub const RESPONSE: u8 = 0x02;
/// First byte of a Cookie reply.
pub const COOKIE_REPLY: u8 = 0x03;
/// The wire version.
pub const VERSION: u8 = 0;
/// Bytes of either MAC.
pub const MAC_LEN: usize = 16;
/// Bytes of a Noise ephemeral key.
pub const EPHEMERAL_LEN: usize = 32;
/// Bytes of the timestamp that begins an Initiation's payload.
pub const TIMESTAMP_LEN: usize = 8;
/// Bytes of a Cookie reply.
pub const COOKIE_REPLY_LEN: usize = 64;
/// Longest handshake message, bytes, which every path carries. Longer messages are neither sent nor
/// read.
pub const MAX_LEN: usize = 1200;

const INITIATION_HEADER_LEN: usize = 8;
const RESPONSE_HEADER_LEN: usize = 8;
/// Bytes of the connection id that begins a Response's payload.
pub const SENDER_LEN: usize = 4;
const SEALED_KEY_LEN: usize = 32 + TAG_LEN;
const INITIATION_MIN_LEN: usize =
    INITIATION_HEADER_LEN + EPHEMERAL_LEN + SEALED_KEY_LEN + TIMESTAMP_LEN + TAG_LEN + 2 * MAC_LEN;
const RESPONSE_MIN_LEN: usize =
    RESPONSE_HEADER_LEN + EPHEMERAL_LEN + SENDER_LEN + TAG_LEN + 2 * MAC_LEN;

/// Why bytes are not a handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The first byte is that of another kind of packet, or the datagram is empty.
    Kind,
    /// The length, in bytes, is not allowed for this kind of message.
    Length(usize),
    /// The sender uses a version that we do not support.
    Version(u8),
    /// A reserved byte is not zero.
    Reserved,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::Kind => f.write_str("not a handshake message of the expected kind"),
            MessageError::Length(len) => write!(f, "handshake message of {len} bytes"),
            MessageError::Version(version) => write!(f, "wire version {version} is not supported"),
            MessageError::Reserved => f.write_str("reserved bytes are not zero"),
        }
    }
}

impl std::error::Error for MessageError {}

/// The two MACs at the end of an Initiation or a Response, and the bytes that they cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Macs<'a> {
    /// Everything before `mac1`.
    pub before_mac1: &'a [u8],
    /// Everything before `mac2`, including `mac1`.
    pub before_mac2: &'a [u8],
    /// The first MAC, keyed by the receiver's public key.
    pub mac1: [u8; MAC_LEN],
    /// The second MAC, keyed by a cookie; zero without a cookie.
    pub mac2: [u8; MAC_LEN],
}

impl<'a> Macs<'a> {
    fn split(message: &'a [u8]) -> Option<(&'a [u8], Self)> {
        let (before_mac2, mac2) = message.split_last_chunk()?;
        let (before_mac1, mac1) = before_mac2.split_last_chunk()?;
        Some((before_mac1, Macs { before_mac1, before_mac2, mac1: *mac1, mac2: *mac2 }))
    }
}

/// The fields of a first message, which is not authenticated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initiation<'a> {
    /// The bytes before the Noise message, which authenticates them.
    pub header: &'a [u8],
    /// The connection id under which the initiator wants to receive.
    pub sender: u32,
    /// The Noise ephemeral key, by which copies are recognised.
    pub ephemeral: [u8; EPHEMERAL_LEN],
    /// The whole first Noise message, including the ephemeral key.
    pub noise: &'a [u8],
    /// The MACs.
    pub macs: Macs<'a>,
}

impl<'a> Initiation<'a> {
    /// Splits `bytes`, which must be one whole datagram, into fields.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MessageError> {
        check(bytes, INITIATION, INITIATION_MIN_LEN..=MAX_LEN)?;
        check_version(bytes)?;
        let length = MessageError::Length(bytes.len());
        let (body, macs) = Macs::split(bytes).ok_or(length)?;
        let (header, noise) = body.split_first_chunk::<INITIATION_HEADER_LEN>().ok_or(length)?;
        let ephemeral = *noise.first_chunk().ok_or(length)?;
        Ok(Initiation { header, sender: id_at(header, 4), ephemeral, noise, macs })
    }

    /// Writes the bytes before the Noise message.
    pub fn start(sender: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&[INITIATION, VERSION, 0, 0]);
        out.extend_from_slice(&sender.to_be_bytes());
    }
}

/// The fields of a second message, which is not authenticated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The initiator's connection id, repeated.
    pub receiver: u32,
    /// The whole second Noise message. Its payload begins with the connection id under which the responder wants to
    /// receive.
    pub noise: &'a [u8],
    /// The MACs.
    pub macs: Macs<'a>,
}

impl<'a> Response<'a> {
    /// Splits `bytes`, which must be one whole datagram, into fields.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MessageError> {
        check(bytes, RESPONSE, RESPONSE_MIN_LEN..=MAX_LEN)?;
        check_version(bytes)?;
        let length = MessageError::Length(bytes.len());
        let (body, macs) = Macs::split(bytes).ok_or(length)?;
        let (header, noise) = body.split_first_chunk::<RESPONSE_HEADER_LEN>().ok_or(length)?;
        Ok(Response { receiver: id_at(header, 4), noise, macs })
    }

    /// Writes the bytes before the Noise message.
    pub fn start(receiver: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&[RESPONSE, VERSION, 0, 0]);
        out.extend_from_slice(&receiver.to_be_bytes());
    }
}

/// The fields of a request to prove the source address, which is not authenticated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieReply {
    /// The initiator's connection id, repeated.
    pub receiver: u32,
    /// The nonce of the sealed cookie.
    pub nonce: [u8; 24],
    /// The encrypted cookie and its tag.
    pub sealed: [u8; 32],
}

impl CookieReply {
    /// Splits `bytes`, which must be one whole datagram, into fields.
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        check(bytes, COOKIE_REPLY, COOKIE_REPLY_LEN..=COOKIE_REPLY_LEN)?;
        let length = MessageError::Length(bytes.len());
        let (header, rest) = bytes.split_first_chunk::<8>().ok_or(length)?;
        if header[1..4] != [0; 3] {
            return Err(MessageError::Reserved);
        }
        let (nonce, rest) = rest.split_first_chunk().ok_or(length)?;
        let sealed = rest.first_chunk().ok_or(length)?;
        Ok(CookieReply { receiver: id_at(header, 4), nonce: *nonce, sealed: *sealed })
    }

    /// The bytes of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(COOKIE_REPLY_LEN);
        out.extend_from_slice(&[COOKIE_REPLY, 0, 0, 0]);
        out.extend_from_slice(&self.receiver.to_be_bytes());
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.sealed);
        out
    }
}

/// Appends `mac1` for the receiver `peer` to a whole message without MACs, and returns it.
pub fn append_mac1(crypto: &dyn Crypto, peer: &PublicKey, message: &mut Vec<u8>) -> [u8; MAC_LEN] {
    let mac1 = crypto.mac(MacPurpose::Mac1(peer), message);
    message.extend_from_slice(&mac1);
    mac1
}

fn check(
    bytes: &[u8],
    kind: u8,
    lengths: core::ops::RangeInclusive<usize>,
) -> Result<(), MessageError> {
    if bytes.first() != Some(&kind) {
        return Err(MessageError::Kind);
    }
    if !lengths.contains(&bytes.len()) {
        return Err(MessageError::Length(bytes.len()));
    }
    Ok(())
}

fn check_version(bytes: &[u8]) -> Result<(), MessageError> {
    match bytes {
        [_, VERSION, 0, 0, ..] => Ok(()),
        [_, VERSION, ..] => Err(MessageError::Reserved),
        [_, version, ..] => Err(MessageError::Version(*version)),
        _ => Err(MessageError::Length(bytes.len())),
    }
}

/// The big-endian id at `offset`; zero if `header` is too short, which the fixed sizes of callers'
/// headers exclude.
fn id_at(header: &[u8], offset: usize) -> u32 {
    header.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
