//! The layout of forwarded datagrams: request, flow, which piece of which datagram, payload.

use anabranch_core::wire::{Reader, Writer, varint_len};

use super::MAX_DATAGRAM;

/// Longest head: three integers of eight bytes, and the byte of a piece.
const MAX_HEAD: usize = 25;
/// Added to the request's id before a piece. Requests are bidirectional streams, whose ids have this bit unset.
const PIECE: u64 = 2;
/// Set in the byte of the last piece; the other bits are its place among the pieces.
const LAST: u8 = 0x80;
/// Most pieces of a datagram.
pub(super) const MAX_PIECES: usize = 64;

/// Room for a datagram with its head before it.
pub(crate) fn buffer() -> Vec<u8> {
    vec![0; MAX_HEAD + MAX_DATAGRAM]
}

/// The part of a [`buffer`] that UDP payloads are read into.
pub(crate) fn payload_of(buffer: &mut [u8]) -> &mut [u8] {
    buffer.get_mut(MAX_HEAD..).unwrap_or_default()
}

/// Copies the first `len` bytes of payload in a [`buffer`] into a buffer of their own.
pub(super) fn kept(buffer: &[u8], len: usize) -> Vec<u8> {
    buffer.get(..MAX_HEAD + len).unwrap_or_default().to_vec()
}

/// Fields that precede the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The id of the request's stream.
    pub(super) stream: u64,
    pub(super) flow: u64,
    /// `None` if the datagram is whole.
    pub(super) piece: Option<Piece>,
}

/// A piece of a datagram that is too long for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Number of the datagram, which no other of the request has.
    pub(super) datagram: u64,
    /// Index of the piece in its datagram, below [`MAX_PIECES`].
    pub(super) place: usize,
    pub(super) last: bool,
}

impl Piece {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (datagram, byte) = (reader.varint().ok()?, reader.u8().ok()?);
        let place = usize::from(byte & !LAST);
        (place < MAX_PIECES).then_some(Piece { datagram, place, last: byte & LAST != 0 })
    }
}

impl Head {
    /// Reads the head of a datagram of the connection and returns it with its length; `None` if there is no valid one.
    pub(super) fn read(datagram: &[u8]) -> Option<(Self, usize)> {
        let mut reader = Reader::new(datagram);
        let (stream, flow) = (reader.varint().ok()?, reader.varint().ok()?);
        let piece = match stream & PIECE {
            0 => None,
            _ => Some(Piece::read(&mut reader)?),
        };
        let len = datagram.len() - reader.peek().len();
        Some((Head { stream: stream & !PIECE, flow, piece }, len))
    }

    /// Bytes on the wire.
    pub(super) fn len(self) -> usize {
        let piece = self.piece.map_or(0, |piece| varint_len(piece.datagram) + 1);
        varint_len(self.stream) + varint_len(self.flow) + piece
    }

    /// Writes this head just before byte `at` of the payload in a [`buffer`], over what is there. Returns the head and the
    /// `len` bytes of payload that follow it.
    pub(super) fn before(self, buffer: &mut [u8], at: usize, len: usize) -> Option<&[u8]> {
        let mut head = [0; MAX_HEAD];
        let written = self.encode(&mut head)?;
        let payload = MAX_HEAD + at;
        let start = payload - written;
        buffer.get_mut(start..payload)?.copy_from_slice(head.get(..written)?);
        buffer.get(start..payload + len)
    }

    fn encode(self, out: &mut [u8; MAX_HEAD]) -> Option<usize> {
        let mut writer = Writer::new(out);
        writer.varint(self.stream | self.piece.map_or(0, |_| PIECE)).ok()?;
        writer.varint(self.flow).ok()?;
        if let Some(piece) = self.piece {
            writer.varint(piece.datagram).ok()?;
            let last = if piece.last { LAST } else { 0 };
            writer.u8(u8::try_from(piece.place).ok()? | last).ok()?;
        }
        Some(writer.position())
    }
}
