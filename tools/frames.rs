//! Packets filled with frames to the last byte.

use anabranch_core::testing::written;
use anabranch_core::wire::codec::NoSpace;
use anabranch_core::wire::{
    AckHeader, ControlFrame, Frame, Frames, RankEntry, RankFrame, RepairFrame, SourceFrame,
    StreamId, SymbolFrame, SymbolWriter, Writer,
};
use anabranch_policy::view::SymbolId;
use anabranch_types::PathId;
use core::ops::RangeInclusive;

/// Bytes of frames in a full packet.
const FRAMES: usize = 1400;
/// Most frames of a packet, and most source symbols and repairs among them.
const MOST: usize = 128;
const MOST_SOURCES: usize = 16;
pub const MOST_REPAIRS: usize = 8;
/// Bytes of a symbol that has a packet for itself.
pub const LONGEST_SYMBOL: usize = FRAMES - 20;
/// Payload of streams and datagrams.
const DATA: [u8; LONGEST_SYMBOL] = [7; LONGEST_SYMBOL];

/// The frames of one packet.
pub type Packet = Vec<u8>;

/// One packet with as many of these frames, one after the other, as it may hold.
pub fn full<'a>(frames: impl IntoIterator<Item = Written<'a>>) -> Packet {
    packed(frames).next().unwrap_or_default()
}

/// Packets of these frames, each as full as possible.
pub fn packed<'a>(frames: impl IntoIterator<Item = Written<'a>>) -> impl Iterator<Item = Packet> {
    let mut frames = frames.into_iter().map(bytes).peekable();
    core::iter::from_fn(move || {
        let mut packet = Vec::new();
        let (mut count, mut sources, mut repairs) = (0, 0, 0);
        while let Some(next) = frames.next_if(|next| {
            match Frames::new(next).next() {
                Some(Ok(Frame::Symbol(_))) => sources += 1,
                Some(Ok(Frame::Repair(_))) => repairs += 1,
                _ => {}
            }
            count += 1;
            let fits = packet.len() + next.len() <= FRAMES;
            fits && count <= MOST && sources <= MOST_SOURCES && repairs <= MOST_REPAIRS
        }) {
            packet.extend(next);
        }
        (!packet.is_empty()).then_some(packet)
    })
}

/// The payload of a symbol with as many of these frames as `most` bytes may hold.
pub fn full_symbol<'a>(most: usize, frames: impl IntoIterator<Item = SymbolFrame<'a>>) -> Vec<u8> {
    let mut payload = vec![0; most];
    let mut writer = SymbolWriter::new(&mut payload);
    // Writing stops at the first frame that is refused.
    let _ = frames.into_iter().try_for_each(|frame| writer.write(&frame));
    let length = writer.finish();
    payload.truncate(length);
    payload
}

fn bytes(frame: Written<'_>) -> Vec<u8> {
    written(|writer| frame(writer).expect("a frame fits"))
}

/// Writes a frame.
pub type Written<'a> = Box<dyn FnOnce(&mut Writer<'_>) -> Result<(), NoSpace> + 'a>;

/// A control frame.
pub fn control(frame: ControlFrame) -> Written<'static> {
    Box::new(move |writer| frame.encode(writer))
}

/// A repair of zeros.
pub fn repair(first: u64, count: u16, key: u32, length: usize) -> Written<'static> {
    let (first, floor) = (SymbolId(first), SymbolId(first));
    Box::new(move |writer| {
        RepairFrame { first, floor, count, key, payload: &vec![0; length] }.encode(writer)
    })
}

/// A Reed-Solomon repair of one symbol, from which a receiver recovers it.
pub fn recovering(id: u64, symbol: &[u8]) -> Written<'static> {
    // The repair of this key is the symbol divided by 2 over GF(2^8).
    let half = |byte: &u8| if byte & 1 == 0 { byte >> 1 } else { (byte ^ 0x1d) >> 1 | 0x80 };
    let payload: Vec<u8> = symbol.iter().map(half).collect();
    let first = SymbolId(id);
    Box::new(move |writer| {
        RepairFrame { first, floor: first, count: 1, key: 253, payload: &payload }.encode(writer)
    })
}

/// A source symbol.
pub fn source(id: u64, payload: Vec<u8>) -> Written<'static> {
    let (symbol, floor) = (SymbolId(id), SymbolId(id.saturating_sub(300)));
    Box::new(move |writer| {
        SourceFrame { symbol, floor, payload: &payload, last: false }.encode(writer)
    })
}

/// A piece of a stream.
pub fn stream(id: u64, offset: u64, length: usize, fin: bool) -> SymbolFrame<'static> {
    SymbolFrame::Stream { stream: StreamId(id), offset, fin, data: &DATA[..length] }
}

/// An ACK of these packets of path 0, the highest first.
pub fn ack(ranges: impl IntoIterator<Item = RangeInclusive<u64>>) -> Packet {
    let header = AckHeader { path: PathId(0), received_at: 1, ..AckHeader::default() };
    written(|writer| header.encode(ranges, writer).map(drop).expect("the ranges fit"))
}

/// RANK of 32 blocks from this symbol on, each of which lacks three symbols.
pub fn ranks(first: u64) -> Written<'static> {
    Box::new(move |writer| {
        let entries = (0..32).map(|n| RankEntry { first: SymbolId(first + n), missing: 3 });
        RankFrame::encode_entries(SymbolId(first), entries, writer).map(drop)
    })
}

/// The payload of a symbol of at most `most` bytes, full of datagrams of this length.
pub fn datagrams(most: usize, length: usize) -> Vec<u8> {
    full_symbol(most, core::iter::repeat(SymbolFrame::Datagram(&DATA[..length])))
}

/// The payload of a symbol with pieces of a stream.
pub fn pieces(id: u64, offsets: impl IntoIterator<Item = u64>, length: usize) -> Vec<u8> {
    let piece = |offset| stream(id, offset, length, false);
    full_symbol(LONGEST_SYMBOL, offsets.into_iter().map(piece))
}
