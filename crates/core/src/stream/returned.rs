//! Frames taken back from symbols that were too long for every path. They are sent again in new
//! symbols.

use std::collections::VecDeque;

use anabranch_policy::view::{SymbolId, TrafficClass};

use super::streams::Streams;
use crate::wire::symbol::stream_data_room;
use crate::wire::{StreamId, SymbolFrame, SymbolFrames, SymbolWriter};

/// Stream frames of one class that have to be sent in other symbols.
#[derive(Debug, Default)]
pub(super) struct Returned {
    pieces: VecDeque<Piece>,
    cost: u64,
}

/// Bytes of a stream from `offset` on. The first `taken` of them have been put into new symbols.
#[derive(Debug)]
struct Piece {
    stream: StreamId,
    offset: u64,
    fin: bool,
    bytes: Box<[u8]>,
    taken: usize,
}

impl Returned {
    /// Waiting bytes. A stream end without data counts as 1.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    pub(super) fn holds(&self, stream: StreamId) -> bool {
        self.pieces.iter().any(|piece| piece.stream == stream)
    }

    fn push(&mut self, piece: Piece) {
        self.cost += piece.bytes.len().max(1) as u64;
        self.pieces.push_back(piece);
    }

    pub(super) fn forget(&mut self, stream: StreamId) {
        self.pieces.retain(|piece| piece.stream != stream);
        let left = self.pieces.iter().map(|piece| (piece.bytes.len() - piece.taken).max(1) as u64);
        self.cost = left.sum();
    }
}

impl Streams {
    /// Takes back the frames of a symbol that will not be delivered. Datagrams that were sent may
    /// have arrived, so they are not sent again.
    pub fn take_back(&mut self, class: TrafficClass, symbol: &[u8], was_sent: bool) {
        for frame in SymbolFrames::new(symbol) {
            match frame {
                Ok(SymbolFrame::Stream { stream, offset, fin, data }) => {
                    let open = self.streams.get(&stream);
                    if open.is_none_or(|stream| stream.send.reset.is_some() || stream.send.done) {
                        continue;
                    }
                    let piece = Piece { stream, offset, fin, bytes: data.into(), taken: 0 };
                    self.classes[class as usize].returned.push(piece);
                }
                Ok(SymbolFrame::Datagram(data)) => {
                    if was_sent || !self.classes[class as usize].datagrams.push(data) {
                        self.datagrams_dropped += 1;
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// Puts the returned frames into a symbol, before any new data.
    pub(super) fn fill_returned(
        &mut self,
        class: TrafficClass,
        symbol: SymbolId,
        writer: &mut SymbolWriter<'_>,
    ) {
        loop {
            let returned = &mut self.classes[class as usize].returned;
            let Some(piece) = returned.pieces.front_mut() else { return };
            let rest = piece.bytes.get(piece.taken..).unwrap_or_default();
            let offset = piece.offset + piece.taken as u64;
            let Some(room) = stream_data_room(piece.stream, offset, writer.room()) else {
                return;
            };
            let length = rest.len().min(room);
            if length == 0 && !rest.is_empty() {
                return;
            }
            let fin = piece.fin && length == rest.len();
            let part = rest.get(..length).unwrap_or_default();
            let copy = |target: &mut [u8]| target.copy_from_slice(part);
            if writer.stream((piece.stream, offset), fin, length, copy).is_err() {
                return;
            }
            piece.taken += length;
            returned.cost -= length as u64;
            if piece.taken < piece.bytes.len() {
                return;
            }
            if let Some(piece) = returned.pieces.pop_front() {
                returned.cost -= u64::from(piece.bytes.is_empty());
                self.note_carried(piece.stream, symbol);
            }
        }
    }
}
