//! Packets filled with frames to the last byte.

use anabranch_core::testing::written;
use anabranch_core::wire::codec::NoSpace;
use anabranch_core::wire::{ControlFrame, RepairFrame, SourceFrame, StreamId, SymbolFrame, Writer};
use anabranch_policy::view::SymbolId;

/// Frames of a full packet.
const FRAMES: usize = 1400;
/// Frames that a packet may hold, and repairs.
const MOST: usize = 128;
pub const MOST_REPAIRS: usize = 8;

/// The frames of one packet.
pub type Frames = Vec<u8>;

/// As many of these frames, one after the other, as fit into one packet.
pub fn full<'a>(frames: impl IntoIterator<Item = Written<'a>>) -> Frames {
    fill(FRAMES, frames)
}

fn fill<'a>(most: usize, frames: impl IntoIterator<Item = Written<'a>>) -> Frames {
    let mut packet = Vec::new();
    for frame in frames.into_iter().take(MOST) {
        let bytes = written(|writer| (frame)(writer).expect("a frame fits"));
        if packet.len() + bytes.len() > most {
            break;
        }
        packet.extend(bytes);
    }
    packet
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

/// As many repairs as a packet may hold.
pub fn full_of_repairs(repairs: impl IntoIterator<Item = Written<'static>>) -> Frames {
    full(repairs.into_iter().take(MOST_REPAIRS))
}

/// A source symbol.
pub fn source(id: u64, payload: Vec<u8>) -> Written<'static> {
    let (symbol, floor) = (SymbolId(id), SymbolId(id.saturating_sub(300)));
    Box::new(move |writer| {
        SourceFrame { symbol, floor, payload: &payload, last: false }.encode(writer)
    })
}

/// The payload of a symbol with pieces of a stream.
pub fn pieces(stream: u64, offsets: impl IntoIterator<Item = u64>, length: usize) -> Vec<u8> {
    let data = vec![7; length];
    fill(
        FRAMES - 20,
        offsets.into_iter().map(|offset| -> Written<'_> {
            let stream = StreamId(stream);
            let data = &data;
            Box::new(move |writer| {
                SymbolFrame::Stream { stream, offset, fin: false, data }.encode(writer)
            })
        }),
    )
}
