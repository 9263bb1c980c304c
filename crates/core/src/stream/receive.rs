//! The receiving side of one stream.

use super::error::Violation;
use super::lent::{HeldSymbols, Lent, Place};
use super::ring::Ring;
use crate::runs::Runs;
use crate::wire::StreamId;
use anabranch_policy::view::SymbolId;

/// The bytes that have arrived and are not read yet, and the end of the stream.
#[derive(Debug)]
pub(super) struct ReceiveSide {
    ring: Ring,
    /// Pieces left in symbols instead of the ring, all before the first gap.
    lent: Lent,
    arrived: Runs,
    /// Offset of the next byte for the application.
    pub(super) read: u64,
    /// Offset after the highest byte that arrived or that a reset accounts for.
    pub(super) highest: u64,
    /// Credit announced to the peer, as the highest accepted offset.
    pub(super) limit: u64,
    /// Offset of the end of the stream, once known.
    pub(super) final_size: Option<u64>,
    /// The code with which the peer reset the stream.
    pub(super) reset: Option<u64>,
    /// The code with which the application stopped reading.
    pub(super) stopped: Option<u64>,
    /// Whether the side is read to the end, reset, or stopped with a known end, so that no more
    /// data is expected.
    pub(super) done: bool,
}

impl ReceiveSide {
    pub(super) fn new(limit: u64) -> Self {
        ReceiveSide {
            ring: Ring::default(),
            lent: Lent::default(),
            arrived: Runs::default(),
            read: 0,
            highest: 0,
            limit,
            final_size: None,
            reset: None,
            stopped: None,
            done: false,
        }
    }

    /// Ends the receive side of a unidirectional stream of this side, which never receives.
    pub(super) const fn end_unused(&mut self) {
        self.final_size = Some(0);
        self.done = true;
    }

    /// Bytes that can be read now.
    pub(super) const fn readable(&self) -> u64 {
        if self.discards() { 0 } else { self.arrived.contiguous() - self.read }
    }

    /// All bytes below this offset have arrived.
    pub(super) const fn arrived(&self) -> u64 {
        self.arrived.contiguous()
    }

    /// Whether all bytes of `range` have arrived.
    pub(super) fn holds(&self, range: core::ops::Range<u64>) -> bool {
        self.arrived.holds(range)
    }

    /// Capacity of the buffer, bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.ring.capacity()
    }

    /// Allocated bytes of the buffer and of the records of pieces that stay in their symbols.
    pub(super) fn memory(&self) -> u64 {
        self.capacity() + self.lent.memory()
    }

    /// Frees the part of the buffer that its content does not need.
    pub(super) fn fit(&mut self) {
        let needed = self.highest - self.read;
        self.ring.fit(self.read, self.arrived.from(self.read), needed);
    }

    /// Number of pieces kept beyond the first gap.
    pub(super) fn pieces(&self) -> usize {
        self.arrived.pieces()
    }

    /// Whether every byte up to the end has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.final_size == Some(self.arrived.contiguous())
    }

    /// Whether arriving bytes are discarded because nobody will read them.
    pub(super) const fn discards(&self) -> bool {
        self.done || self.reset.is_some() || self.stopped.is_some()
    }

    /// Checks that a frame is within the stream's credit and consistent with its end. Returns by
    /// how much the frame raises the highest offset.
    pub(super) fn check(
        &self,
        id: StreamId,
        offset: u64,
        length: u64,
        fin: bool,
    ) -> Result<u64, Violation> {
        let end = offset.saturating_add(length);
        let moved = match self.final_size {
            Some(size) => end > size || fin && end != size,
            None => fin && end < self.highest,
        };
        if moved {
            return Err(Violation::FinalSize(id));
        }
        if end > self.limit {
            return Err(Violation::StreamCredit(id));
        }
        Ok(end.saturating_sub(self.highest))
    }

    /// Whether bytes that arrive at `offset` can stay in their symbol. The condition is that they
    /// are new and readable at once.
    #[inline]
    pub(super) fn lends(&self, offset: u64, data: &[u8]) -> bool {
        let next = self.arrived.contiguous() == offset && self.arrived.pieces() == 0;
        next && Lent::takes(data.len()) && !self.discards()
    }

    /// Records the bytes of a frame that passed [`check`](Self::check) and that stay in their
    /// symbol.
    pub(super) fn leave(&mut self, offset: u64, data: &[u8], place: Place, fin: bool) {
        let end = offset + data.len() as u64;
        self.arrived.insert(offset, end, |_, _| {});
        self.lent.push(offset, data.len(), place);
        self.highest = self.highest.max(end);
        if fin {
            self.final_size = Some(end);
        }
    }

    /// Copies the bytes that were left in `symbol` before it is dropped. Their frame started at
    /// `offset`.
    pub(super) fn keep(&mut self, offset: u64, symbol: SymbolId, payload: &[u8]) {
        let Some(piece) = self.lent.take(offset, symbol) else { return };
        let from = piece.offset.max(self.read);
        let needed = piece.end() - self.read;
        self.ring.ensure(self.read, self.arrived.from(self.read), needed);
        self.ring.write(from, piece.bytes(from, payload));
    }

    /// Stores the bytes of a frame that passed [`check`](Self::check). Bytes that arrived before
    /// are not overwritten. Returns whether the reader can read more bytes or the end.
    pub(super) fn store(&mut self, offset: u64, data: &[u8], fin: bool) -> bool {
        let end = offset + data.len() as u64;
        let before = self.arrived.contiguous();
        if !self.discards() && end > before {
            self.ring.ensure(self.read, self.arrived.from(self.read), end - self.read);
            let ring = &mut self.ring;
            self.arrived.insert(offset, end, |from, to| {
                let part = (from - offset) as usize..(to - offset) as usize;
                ring.write(from, data.get(part).unwrap_or_default());
            });
        }
        self.highest = self.highest.max(end);
        let news = fin && self.final_size.is_none();
        if fin {
            self.final_size = Some(end);
        }
        if self.stopped.is_some() && self.final_size.is_some() {
            self.done = true;
        }
        !self.discards() && (self.arrived.contiguous() > before || news && self.is_complete())
    }

    /// Copies readable bytes into `out`. Returns their number.
    pub(super) fn take(&mut self, out: &mut [u8], symbols: &mut impl HeldSymbols) -> usize {
        let readable = usize::try_from(self.readable()).unwrap_or(usize::MAX);
        let length = readable.min(out.len());
        let mut left = out.get_mut(..length).unwrap_or_default();
        while !left.is_empty() {
            let next = self.lent.first().map_or(u64::MAX, |piece| piece.offset);
            let count = if next <= self.read {
                self.lent.read(self.read, left, symbols)
            } else {
                let count = left.len().min(usize::try_from(next - self.read).unwrap_or(usize::MAX));
                self.ring.read(self.read, &mut left[..count]);
                count
            };
            if count == 0 {
                debug_assert!(false, "a piece is not where it was left");
                break;
            }
            self.read += count as u64;
            left = &mut left[count..];
        }
        if self.final_size == Some(self.read) {
            self.done = true;
            self.ring.release();
        } else if self.read == self.highest {
            self.ring.rewind(self.read);
        }
        length
    }

    /// Counts all bytes up to the highest offset as read and frees the memory. Returns the number
    /// of these bytes.
    pub(super) fn discard(&mut self) -> u64 {
        let dropped = self.highest - self.read;
        self.read = self.highest;
        self.ring.release();
        self.lent.clear();
        self.arrived.clear();
        dropped
    }
}
