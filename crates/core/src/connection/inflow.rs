//! Passes the symbols that blocks deliver on to the streams.

use anabranch_policy::view::SymbolId;

use crate::coding::receive::SymbolSink;
use crate::coding::spaces::ReceiveSpaces;
use crate::stream::{HeldSymbols, Streams, Violation};

/// Gives the streams the symbols that the blocks receive.
pub(super) struct Inflow<'a> {
    pub(super) streams: &'a mut Streams,
    /// The first stream rule that the peer broke. Later symbols are not applied.
    pub(super) verdict: Result<(), Violation>,
}

impl SymbolSink for Inflow<'_> {
    #[inline]
    fn arrived(&mut self, id: SymbolId, payload: &[u8]) -> u16 {
        if self.verdict.is_err() {
            return 0;
        }
        // The verdict is assigned only on error; overwriting the `Ok` would stall on the preceding
        // stores.
        match self.streams.on_held_symbol(id, payload) {
            Ok(pieces) => pieces,
            Err(violation) => {
                self.verdict = Err(violation);
                0
            }
        }
    }

    fn recovered(&mut self, payload: &[u8]) {
        if self.verdict.is_ok()
            && let Err(violation) = self.streams.on_symbol(payload)
        {
            self.verdict = Err(violation);
        }
    }

    fn forgotten(&mut self, id: SymbolId, payload: &[u8]) {
        self.streams.keep(id, payload);
    }
}

impl HeldSymbols for ReceiveSpaces {
    #[inline]
    fn read(&mut self, id: SymbolId, read: impl FnOnce(&[u8]) -> bool) {
        if let Some(blocks) = self.get_mut(id.space()) {
            blocks.read_piece(id, read);
        }
    }
}
