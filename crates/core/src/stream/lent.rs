//! Stream data that stays in the symbol that carried it until it is read.

use std::collections::VecDeque;

use anabranch_policy::view::SymbolId;

/// Length in bytes below which a piece is copied at once, because a record of its place would cost
/// as much.
const LEAST: usize = 256;
/// Largest capacity, in pieces, that an empty list keeps.
const SPARE: usize = 256;

/// The symbols in which pieces were left.
pub trait HeldSymbols {
    /// Passes a symbol's payload to `read`, which returns whether one of the pieces left there has
    /// been read to its end.
    fn read(&mut self, id: SymbolId, read: impl FnOnce(&[u8]) -> bool);
}

/// The place of a piece, which starts `at` bytes into the payload of the symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) symbol: SymbolId,
    pub(super) at: u16,
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) offset: u64,
    length: u16,
    place: Place,
}

impl Piece {
    /// The offset after the piece's last byte.
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }

    /// The bytes of the piece from stream offset `from` on, within the payload of its symbol.
    pub(super) fn bytes<'a>(&self, from: u64, payload: &'a [u8]) -> &'a [u8] {
        let start = usize::from(self.place.at);
        let whole = payload.get(start..start + usize::from(self.length)).unwrap_or_default();
        let skip = usize::try_from(from.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        whole.get(skip..).unwrap_or_default()
    }
}

/// The pieces of one stream that are in symbols, by ascending offset.
#[derive(Debug, Default)]
pub(super) struct Lent(VecDeque<Piece>);

impl Lent {
    /// Whether a piece of this many bytes is left in its symbol.
    pub(super) fn takes(length: usize) -> bool {
        (LEAST..=usize::from(u16::MAX)).contains(&length)
    }

    /// Allocated bytes of the list.
    pub(super) fn memory(&self) -> u64 {
        (self.0.capacity() * size_of::<Piece>()) as u64
    }

    /// Adds a piece and its place. The piece must follow all others.
    #[inline]
    pub(super) fn push(&mut self, offset: u64, length: usize, place: Place) {
        self.0.push_back(Piece { offset, length: length as u16, place });
    }

    /// The first piece.
    pub(super) fn first(&self) -> Option<&Piece> {
        self.0.front()
    }

    /// Copies bytes of the first piece from stream offset `from` on into `out`, as many as fit.
    /// Returns their number. The piece is released once its last byte is read.
    #[inline]
    pub(super) fn read(
        &mut self,
        from: u64,
        out: &mut [u8],
        symbols: &mut impl HeldSymbols,
    ) -> usize {
        let Some(piece) = self.0.front() else { return 0 };
        let mut count = 0;
        let mut ends = false;
        symbols.read(piece.place.symbol, |payload| {
            let bytes = piece.bytes(from, payload);
            count = bytes.len().min(out.len());
            out[..count].copy_from_slice(&bytes[..count]);
            ends = count == bytes.len();
            ends
        });
        if ends {
            self.0.pop_front();
        }
        count
    }

    /// Removes the piece that begins at `offset` and returns it, if it is in `symbol`.
    pub(super) fn take(&mut self, offset: u64, symbol: SymbolId) -> Option<Piece> {
        let at = self.0.binary_search_by_key(&offset, |piece| piece.offset).ok()?;
        let piece = *self.0.get(at)?;
        if piece.place.symbol != symbol {
            return None;
        }
        self.0.remove(at);
        // Free the list; otherwise each stream could keep the large capacity that a slow reader
        // needed.
        if self.0.is_empty() && self.0.capacity() > SPARE {
            self.0 = VecDeque::new();
        }
        Some(piece)
    }

    /// Removes all pieces.
    pub(super) fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}
