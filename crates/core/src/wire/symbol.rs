//! The frames that carry symbols, and the frames inside symbols.

use anabranch_policy::view::{SymbolId, SymbolSpace};

use super::codec::{MAX_VARINT, NoSpace, Reader, WireError, Writer, varint_len};
use super::frame::{kind, skip_padding};
use super::id::StreamId;

/// Most bytes of a SYMBOL frame that extends to the packet's end, in addition to its payload, for
/// symbol ids below 2^30. An explicit length takes two more bytes (payloads below 16 384 bytes).
pub const SYMBOL_OVERHEAD: usize = 1 + 4 + 4;

/// Most bytes of a REPAIR frame that extends to the packet's end, in addition to its payload, for
/// symbol ids below 2^30. An explicit length takes two more bytes (payloads below 16 384 bytes).
pub const REPAIR_OVERHEAD: usize = 1 + 4 + 4 + 4 + 4;

/// Largest key of a repair. Its encoding has at most four bytes.
pub const MAX_REPAIR_KEY: u32 = anabranch_policy::code::MAX_KEY;

/// A source symbol of L bytes holds at most 1 + L / `BYTES_PER_FRAME` frames.
pub const BYTES_PER_FRAME: usize = 32;

/// SYMBOL: a source symbol, truncated after its last frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFrame<'a> {
    /// The symbol.
    pub symbol: SymbolId,
    /// Symbols below this one are no longer needed for decoding. At most `symbol`.
    pub floor: SymbolId,
    /// A sequence of [`SymbolFrame`]s.
    pub payload: &'a [u8],
    /// Whether the symbol is the last of its block. Sent only to a receiver that delivers whole
    /// blocks.
    pub last: bool,
}

impl<'a> SourceFrame<'a> {
    /// Writes the frame with an explicit length.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            self.encode_head(Some(self.payload.len()), writer)?;
            writer.bytes(self.payload)
        })
    }

    /// Writes the frame without a length. It must be the last frame of the packet.
    pub fn encode_to_end(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            self.encode_head(None, writer)?;
            writer.bytes(self.payload)
        })
    }

    /// Writes all fields except the payload, so that the caller can copy the payload into place.
    /// `length` is the payload's length, or `None` if it extends to the packet's end.
    #[inline]
    pub fn encode_head(
        &self,
        length: Option<usize>,
        writer: &mut Writer<'_>,
    ) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            let space = self.symbol.space();
            writer.u8(match (self.last, length) {
                (false, Some(_)) => kind::about(kind::SYMBOL, space),
                (false, None) => kind::about(kind::SYMBOL_TO_END, space),
                (true, Some(_)) => kind::LAST_SYMBOL,
                (true, None) => kind::LAST_SYMBOL_TO_END,
            })?;
            writer.varint(self.symbol.ordinal())?;
            writer.varint(self.symbol.0.saturating_sub(self.floor.0))?;
            length.map_or(Ok(()), |length| writer.varint(length as u64))
        })
    }

    /// Number of bytes that [`encode`](Self::encode) writes.
    pub fn encoded_len(&self) -> usize {
        self.encoded_len_to_end() + varint_len(self.payload.len() as u64)
    }

    /// Number of bytes that [`encode_to_end`](Self::encode_to_end) writes.
    pub fn encoded_len_to_end(&self) -> usize {
        let distance = self.symbol.0.saturating_sub(self.floor.0);
        1 + varint_len(self.symbol.ordinal()) + varint_len(distance) + self.payload.len()
    }

    #[inline]
    pub(super) fn decode(
        reader: &mut Reader<'a>,
        space: SymbolSpace,
        to_end: bool,
    ) -> Result<SourceFrame<'a>, WireError> {
        let (symbol, floor) = ids(reader, space)?;
        let payload = if to_end { reader.rest()? } else { reader.prefixed()? };
        Ok(SourceFrame { symbol, floor, payload, last: false })
    }

    /// Reads the frame of a symbol that is the last of its block.
    pub(super) fn decode_last(
        reader: &mut Reader<'a>,
        to_end: bool,
    ) -> Result<SourceFrame<'a>, WireError> {
        let frame = SourceFrame::decode(reader, SymbolSpace::Main, to_end)?;
        Ok(SourceFrame { last: true, ..frame })
    }
}

/// REPAIR: a linear combination of `count` source symbols, starting at `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairFrame<'a> {
    /// First combined symbol.
    pub first: SymbolId,
    /// Symbols below this one are no longer needed for decoding. At most `first`.
    pub floor: SymbolId,
    /// Number of combined symbols, at least 1.
    pub count: u16,
    /// Determines the coefficients; at most [`MAX_REPAIR_KEY`].
    pub key: u32,
    /// The combination of the symbols, as long as the longest of them.
    pub payload: &'a [u8],
}

impl<'a> RepairFrame<'a> {
    /// Writes the frame with an explicit length.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            self.encode_head(Some(self.payload.len()), writer)?;
            writer.bytes(self.payload)
        })
    }

    /// Writes the frame without a length. It must be the last frame of the packet.
    pub fn encode_to_end(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            self.encode_head(None, writer)?;
            writer.bytes(self.payload)
        })
    }

    /// Writes all fields except the payload, so that the caller can generate the payload in place.
    /// `length` is the payload's length, or `None` if it extends to the packet's end.
    pub fn encode_head(
        &self,
        length: Option<usize>,
        writer: &mut Writer<'_>,
    ) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            let kind = if length.is_some() { kind::REPAIR } else { kind::REPAIR_TO_END };
            writer.u8(kind::about(kind, self.first.space()))?;
            writer.varint(self.first.ordinal())?;
            writer.varint(self.first.0.saturating_sub(self.floor.0))?;
            writer.varint(self.count.into())?;
            writer.varint(self.key.into())?;
            length.map_or(Ok(()), |length| writer.varint(length as u64))
        })
    }

    /// Number of bytes that [`encode`](Self::encode) writes.
    pub fn encoded_len(&self) -> usize {
        self.encoded_len_to_end() + varint_len(self.payload.len() as u64)
    }

    /// Number of bytes that [`encode_to_end`](Self::encode_to_end) writes.
    pub fn encoded_len_to_end(&self) -> usize {
        1 + varint_len(self.first.ordinal())
            + varint_len(self.first.0.saturating_sub(self.floor.0))
            + varint_len(self.count.into())
            + varint_len(self.key.into())
            + self.payload.len()
    }

    pub(super) fn decode(
        reader: &mut Reader<'a>,
        space: SymbolSpace,
        to_end: bool,
    ) -> Result<RepairFrame<'a>, WireError> {
        let (first, floor) = ids(reader, space)?;
        let count = reader.varint_up_to(u16::MAX.into(), "repair count")? as u16;
        if count == 0 || u64::from(count) > SymbolSpace::SYMBOLS - first.ordinal() {
            return Err(WireError::Value("repair count"));
        }
        let key = reader.varint_up_to(MAX_REPAIR_KEY.into(), "repair key")? as u32;
        let payload = if to_end { reader.rest()? } else { reader.prefixed()? };
        Ok(RepairFrame { first, floor, count, key, payload })
    }
}

#[inline]
fn ids(reader: &mut Reader<'_>, space: SymbolSpace) -> Result<(SymbolId, SymbolId), WireError> {
    let symbol = symbol(reader, space)?;
    let floor = symbol.ordinal().checked_sub(reader.varint()?);
    Ok((symbol, space.symbol(floor.ok_or(WireError::Value("symbol floor"))?)))
}

/// Reads a symbol id of `space`.
#[inline]
pub(super) fn symbol(reader: &mut Reader<'_>, space: SymbolSpace) -> Result<SymbolId, WireError> {
    let ordinal = reader.varint_up_to(SymbolSpace::SYMBOLS - 1, "symbol id")?;
    Ok(space.symbol(ordinal))
}

/// One frame inside a source symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolFrame<'a> {
    /// Bytes of a stream.
    Stream {
        /// The stream.
        stream: StreamId,
        /// Offset of the first byte. The sum of offset and length is below 2^62.
        offset: u64,
        /// Whether the stream ends after these bytes.
        fin: bool,
        /// The bytes; may be empty.
        data: &'a [u8],
    },
    /// One whole datagram.
    Datagram(&'a [u8]),
}

impl SymbolFrame<'_> {
    /// Writes the frame, always with an explicit length so that padding after the frame is not part
    /// of its data.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| match *self {
            SymbolFrame::Stream { stream, offset, fin, data } => {
                encode_stream_head(stream, offset, fin, data.len(), writer)?;
                writer.bytes(data)
            }
            SymbolFrame::Datagram(data) => {
                encode_datagram_head(data.len(), writer)?;
                writer.bytes(data)
            }
        })
    }

    /// Number of bytes that [`encode`](Self::encode) writes.
    pub fn encoded_len(&self) -> usize {
        match *self {
            SymbolFrame::Stream { stream, offset, data, .. } => {
                stream_head_len(stream, offset, data.len()) + data.len()
            }
            SymbolFrame::Datagram(data) => datagram_len(data.len()),
        }
    }
}

/// Number of bytes before the data of a STREAM frame that carries `length` bytes.
pub const fn stream_head_len(stream: StreamId, offset: u64, length: usize) -> usize {
    1 + varint_len(stream.0) + varint_len(offset) + varint_len(length as u64)
}

/// The most data, in bytes, that a STREAM frame of at most `space` bytes can carry; `None` if not
/// even a frame without data fits.
pub const fn stream_data_room(stream: StreamId, offset: u64, space: usize) -> Option<usize> {
    let Some(room) = space.checked_sub(1 + varint_len(stream.0) + varint_len(offset)) else {
        return None;
    };
    // A length field of 1, 2 or 4 bytes also limits the data to the largest value that it can hold.
    match room {
        0 => None,
        1..=64 => Some(room - 1),
        65 => Some(63),
        66..=16_385 => Some(room - 2),
        16_386 | 16_387 => Some(16_383),
        _ if room - 4 < 1 << 30 => Some(room - 4),
        _ => Some((1 << 30) - 1),
    }
}

/// Writes the fields before the `length` data bytes of a STREAM frame.
#[inline]
fn encode_stream_head(
    stream: StreamId,
    offset: u64,
    fin: bool,
    length: usize,
    writer: &mut Writer<'_>,
) -> Result<(), NoSpace> {
    writer.whole(|writer| {
        writer.u8(if fin { kind::STREAM_FINAL } else { kind::STREAM })?;
        writer.varint(stream.0)?;
        writer.varint(offset)?;
        writer.varint(length as u64)
    })
}

/// Writes the fields before the `length` data bytes of a DATAGRAM frame.
fn encode_datagram_head(length: usize, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
    writer.whole(|writer| {
        writer.u8(kind::DATAGRAM)?;
        writer.varint(length as u64)
    })
}

/// Size in bytes of a DATAGRAM frame that carries `length` bytes.
pub const fn datagram_len(length: usize) -> usize {
    1 + varint_len(length as u64) + length
}

/// Fills a source symbol with frames, within the number of frames that its length allows.
#[derive(Debug)]
pub struct SymbolWriter<'a> {
    writer: Writer<'a>,
    /// Length that the symbol needs if one more frame is added, bytes.
    least_length: usize,
}

impl<'a> SymbolWriter<'a> {
    /// Creates a writer that fills `buffer` from its front.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        SymbolWriter { writer: Writer::new(buffer), least_length: 0 }
    }

    /// Whether nothing has been written.
    pub const fn is_empty(&self) -> bool {
        self.writer.position() == 0
    }

    /// Bytes left for another frame; 0 if no frame may follow.
    pub const fn room(&self) -> usize {
        let left = self.writer.remaining();
        if self.writer.position() + left < self.least_length { 0 } else { left }
    }

    /// Adds the padding that short frames need, and returns the symbol's length in bytes.
    pub fn finish(mut self) -> usize {
        let needed = self.least_length.saturating_sub(BYTES_PER_FRAME);
        let padding = needed.saturating_sub(self.writer.position());
        // There is space because callers have checked `room`.
        let _ = self.writer.reserve(padding).map(|padding| padding.fill(0));
        self.writer.position()
    }

    /// Writes a frame.
    pub fn write(&mut self, frame: &SymbolFrame<'_>) -> Result<(), NoSpace> {
        self.frame(|writer| frame.encode(writer))
    }

    /// Writes a STREAM frame with `length` data bytes, which `fill` copies into place.
    #[inline]
    pub fn stream(
        &mut self,
        (stream, offset): (StreamId, u64),
        fin: bool,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), NoSpace> {
        self.frame(|writer| {
            encode_stream_head(stream, offset, fin, length, writer)?;
            writer.reserve(length).map(fill)
        })
    }

    /// Writes a DATAGRAM frame with `length` data bytes, which `fill` copies into place.
    pub fn datagram(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) -> Result<(), NoSpace> {
        self.frame(|writer| {
            encode_datagram_head(length, writer)?;
            writer.reserve(length).map(fill)
        })
    }

    #[inline]
    fn frame(
        &mut self,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>,
    ) -> Result<(), NoSpace> {
        if self.room() == 0 {
            return Err(NoSpace);
        }
        self.writer.whole(write)?;
        self.least_length += BYTES_PER_FRAME;
        Ok(())
    }
}

/// Reads the frames of a source symbol in order and skips padding. More frames than the symbol's
/// length allows are an error. The iterator ends after an error.
#[derive(Clone, Debug)]
pub struct SymbolFrames<'a> {
    reader: Reader<'a>,
    frames_left: usize,
}

impl<'a> SymbolFrames<'a> {
    /// Creates an iterator over the frames of the symbol `payload`.
    pub const fn new(payload: &'a [u8]) -> Self {
        let frames_left = 1 + payload.len() / BYTES_PER_FRAME;
        SymbolFrames { reader: Reader::new(payload), frames_left }
    }

    /// Number of bytes after the last frame read.
    pub const fn remaining(&self) -> usize {
        self.reader.remaining()
    }
}

impl<'a> Iterator for SymbolFrames<'a> {
    type Item = Result<SymbolFrame<'a>, WireError>;

    #[inline(always)] // once for each symbol
    fn next(&mut self) -> Option<Self::Item> {
        let mut frame = decode(&mut self.reader).transpose()?;
        match self.frames_left.checked_sub(1) {
            Some(left) => self.frames_left = left,
            None => frame = Err(WireError::TooManyFrames),
        }
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

#[inline(always)] // once for each symbol
fn decode<'a>(reader: &mut Reader<'a>) -> Result<Option<SymbolFrame<'a>>, WireError> {
    while !reader.is_empty() {
        let frame = match reader.u8()? {
            kind::PADDING => {
                skip_padding(reader);
                continue;
            }
            kind::STREAM => stream(reader, false)?,
            kind::STREAM_FINAL => stream(reader, true)?,
            kind::DATAGRAM => SymbolFrame::Datagram(reader.prefixed()?),
            other => return Err(WireError::UnknownFrame(other)),
        };
        return Ok(Some(frame));
    }
    Ok(None)
}

#[inline(always)] // once for each symbol
fn stream<'a>(reader: &mut Reader<'a>, fin: bool) -> Result<SymbolFrame<'a>, WireError> {
    let stream = StreamId(reader.varint()?);
    let offset = reader.varint()?;
    let data = reader.prefixed()?;
    if data.len() as u64 > MAX_VARINT - offset {
        return Err(WireError::Value("stream offset"));
    }
    Ok(SymbolFrame::Stream { stream, offset, fin, data })
}
