//! The interface to which blocks deliver their symbols.

use anabranch_policy::view::SymbolId;

/// Takes source symbols. The blocks hold an arrived symbol for a while, so that its data can be
/// read in place instead of being copied.
pub trait SymbolSink {
    /// A new source symbol arrived, and is held from now on. Returns how many pieces of it stay in
    /// place until each has been [read](super::ReceiveBlocks::read_piece).
    fn arrived(&mut self, id: SymbolId, payload: &[u8]) -> u16;

    /// A source symbol was recovered. It cannot be read again after this call.
    fn recovered(&mut self, payload: &[u8]);

    /// A symbol is not held any longer, although not all of its pieces have been read.
    fn forgotten(&mut self, id: SymbolId, payload: &[u8]);
}

/// A closure takes each symbol at once and leaves no pieces in place.
impl<F: FnMut(&[u8])> SymbolSink for F {
    fn arrived(&mut self, _id: SymbolId, payload: &[u8]) -> u16 {
        self(payload);
        0
    }

    fn recovered(&mut self, payload: &[u8]) {
        self(payload);
    }

    fn forgotten(&mut self, _id: SymbolId, _payload: &[u8]) {}
}
