//! Stream data that stays in the symbols it arrived in until it is read.

use std::collections::VecDeque;

use anabranch_policy::view::SymbolId;

/// Bytes below which a piece is copied at once: remembering its place would cost as much.
const LEAST: usize = 256;
/// Largest capacity, in pieces, that an empty list keeps.
const SPARE: usize = 256;

/// The symbols in which pieces were left.
pub trait HeldSymbols {
    /// Passes a symbol's payload to `read`, which returns whether it has finished with one of the pieces left there.
    fn read(&mut self, id: SymbolId, read: impl FnOnce(&[u8]) -> bool);
}

/// Where a piece is: it begins `at` bytes into what the symbol carries.
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

    /// The piece's bytes from the stream's offset `from` on, in the payload of its symbol.
    pub(super) fn bytes<'a>(&self, from: u64, payload: &'a [u8]) -> &'a [u8] {
        let start = usize::from(self.place.at);
        let whole = payload.get(start..start + usize::from(self.length)).unwrap_or_default();
        let skip = usize::try_from(from.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        whole.get(skip..).unwrap_or_default()
    }
}

/// The pieces of one stream that are in symbols, by rising offset.
#[derive(Debug, Default)]
pub(super) struct Lent(VecDeque<Piece>);

impl Lent {
    /// Whether a piece of this many bytes stays where it is.
    pub(super) fn takes(length: usize) -> bool {
        (LEAST..=usize::from(u16::MAX)).contains(&length)
    }

    /// Bytes of the list.
    pub(super) fn memory(&self) -> u64 {
        (self.0.capacity() * size_of::<Piece>()) as u64
    }

    /// Adds a piece, which follows all others, with its place.
    #[inline]
    pub(super) fn push(&mut self, offset: u64, length: usize, place: Place) {
        self.0.push_back(Piece { offset, length: length as u16, place });
    }

    /// The first piece.
    pub(super) fn first(&self) -> Option<&Piece> {
        self.0.front()
    }

    /// Copies bytes of the first piece from the stream's offset `from` on, as many as there are or as fit;
    /// returns how many. The piece is released with its last byte.
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
        // Free the list; otherwise every stream in turn would keep the capacity that a slow reader took.
        if self.0.is_empty() && self.0.capacity() > SPARE {
            self.0 = VecDeque::new();
        }
        Some(piece)
    }

    /// Forgets all pieces.
    pub(super) fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}
