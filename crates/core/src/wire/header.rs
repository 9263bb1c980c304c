//! The header of data packets: layout, protection and the expansion of truncated numbers.

use super::codec::{MAX_VARINT, NoSpace, WireError, Writer};
use crate::crypto::TAG_LEN;

/// Bytes before the frames of a data packet.
pub const HEADER_LEN: usize = 10;

/// Bytes of a data packet in addition to its frames: header and tag.
pub const DATA_OVERHEAD: usize = HEADER_LEN + TAG_LEN;

const DATA_BITS: u8 = 0b0100_0000;
const KIND_MASK: u8 = 0b1100_0000;
const MASKED_BITS: u8 = 0b0011_1111;
const RESERVED_BITS: u8 = 0b0000_1111;

/// Identifies a connection at the endpoint that receives the packet. That endpoint has chosen the
/// id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// Kind of a datagram, determined by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// First handshake message.
    Initiation,
    /// Second handshake message.
    Response,
    /// The answer of a responder under load.
    CookieReply,
    /// Frames of an established connection.
    Data,
}

impl PacketKind {
    /// The kind of a datagram with the first byte `first`, protected or not. `None` if the datagram
    /// must be dropped.
    pub const fn of(first: u8) -> Option<PacketKind> {
        match first {
            0x01 => Some(PacketKind::Initiation),
            0x02 => Some(PacketKind::Response),
            0x03 => Some(PacketKind::CookieReply),
            first if first & KIND_MASK == DATA_BITS => Some(PacketKind::Data),
            _ => None,
        }
    }
}

/// The header of a data packet with the fields of the wire format, unprotected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataHeader {
    /// The receiver's id of the connection.
    pub connection: ConnectionId,
    /// Key epoch, 0–3.
    pub epoch: u8,
    /// Low 8 bits of the path id.
    pub path: u8,
    /// Low 32 bits of the packet number.
    pub number: u32,
}

impl DataHeader {
    /// Writes [`HEADER_LEN`] bytes. Only the low two bits of the epoch are used.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        let first = DATA_BITS | (self.epoch & 3) << 4;
        let [a, b, c, d] = self.connection.0.to_be_bytes();
        let [e, f, g, h] = self.number.to_be_bytes();
        writer.bytes(&[first, a, b, c, d, self.path, e, f, g, h])
    }

    /// Reads the header of an unprotected packet. Fails if the packet is too short, is not a data
    /// packet or has a reserved bit set. Such a packet is dropped because it is not authenticated.
    pub fn decode(packet: &[u8]) -> Result<DataHeader, WireError> {
        let [first, a, b, c, d, path, e, f, g, h] =
            *packet.first_chunk::<HEADER_LEN>().ok_or(WireError::Truncated)?;
        if first & KIND_MASK != DATA_BITS {
            return Err(WireError::Value("packet kind"));
        }
        if first & RESERVED_BITS != 0 {
            return Err(WireError::Value("reserved header bits"));
        }
        let connection = ConnectionId(u32::from_be_bytes([a, b, c, d]));
        let number = u32::from_be_bytes([e, f, g, h]);
        Ok(DataHeader { connection, epoch: first >> 4 & 3, path, number })
    }
}

/// The connection id of a protected data packet, for demultiplexing. `None` if the packet is not a
/// data packet or too short to be one.
pub fn connection_of(packet: &[u8]) -> Option<ConnectionId> {
    if packet.len() < DATA_OVERHEAD || PacketKind::of(*packet.first()?) != Some(PacketKind::Data) {
        return None;
    }
    let [_, id @ ..] = packet.first_chunk::<5>()?;
    Some(ConnectionId(u32::from_be_bytes(*id)))
}

/// The last 16 bytes of a data packet, from which the header mask is computed. `None` if the packet
/// is too short for header and tag.
pub fn sample(packet: &[u8]) -> Option<&[u8; TAG_LEN]> {
    if packet.len() < DATA_OVERHEAD {
        return None;
    }
    packet.last_chunk()
}

/// Masks the low six bits of byte 0, the path id and the packet number (in that order) of an
/// encrypted packet. A packet shorter than [`HEADER_LEN`] is not changed.
pub fn protect(packet: &mut [u8], mask: [u8; 6]) {
    let Some([first, _, _, _, _, path, number @ ..]) = packet.first_chunk_mut::<HEADER_LEN>()
    else {
        return;
    };
    let [mask_first, mask_path, mask_number @ ..] = mask;
    *first ^= mask_first & MASKED_BITS;
    *path ^= mask_path;
    let masked = u32::from_ne_bytes(*number) ^ u32::from_ne_bytes(mask_number);
    *number = masked.to_ne_bytes();
}

/// Removes the mask. This is the same operation as [`protect`].
pub fn unprotect(packet: &mut [u8], mask: [u8; 6]) {
    protect(packet, mask);
}

/// The packet number (at most 2^62 − 1) nearest to `expected` whose low 32 bits are `truncated`. If
/// two are equally near, the higher one is returned (RFC 9000 appendix A.3, with a window of 2^32).
pub const fn expand_number(truncated: u32, expected: u64) -> u64 {
    const SPAN: u64 = 1 << 32;
    let truncated = truncated as u64;
    if truncated == expected & (SPAN - 1) && expected <= MAX_VARINT {
        // Fast path: usually the number is the expected one.
        return expected;
    }
    let expected = if expected > MAX_VARINT { MAX_VARINT } else { expected };
    let candidate = expected & !(SPAN - 1) | truncated;
    if candidate + SPAN / 2 <= expected && candidate + SPAN <= MAX_VARINT {
        candidate + SPAN
    } else if candidate > expected + SPAN / 2 && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}
