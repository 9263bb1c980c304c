//! A sender whose symbols are known, for the fuzz bodies of both receivers. Delivered symbols are
//! compared with the known ones until the script sends a symbol that an honest sender would not
//! send.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_policy::code::{
    CodeError, CodeLimits, Decoder, Encoder, ErasureCode, HeldRepair, HeldSource, SlidingDecoder,
    Workspace,
};
use anabranch_policy::view::SymbolId;

use crate::coding::receive::ReceiveBlocks;

/// Bytes of the longest symbol.
pub(super) const CAPACITY: usize = 24;

/// The bytes of a source symbol: its number, and up to 20 bytes derived from the number, none of
/// them zero.
pub(super) fn content(id: u64) -> Vec<u8> {
    let more = (id.wrapping_mul(0x9e37_79b9) >> 16) as usize % (CAPACITY - 3);
    let mut bytes = (id as u32).to_be_bytes().to_vec();
    bytes.extend((0..more as u64).map(|at| (id * 31 + at * 7) as u8 | 1));
    bytes
}

/// Symbols that the receiver has delivered.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    pub(super) ids: BTreeSet<u64>,
    pub(super) count: u64,
    /// Whether the sender has lied. Any symbols may then be delivered, within bounds.
    pub(super) lied: bool,
    /// Whether symbols have to be delivered by rising number.
    pub(super) in_order: bool,
}

impl Delivered {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= CAPACITY);
        self.count += 1;
        if self.lied {
            return;
        }
        let number = bytes.first_chunk().expect("no symbol is shorter than its number");
        let id = u64::from(u32::from_be_bytes(*number));
        let mut truth = content(id);
        assert!(bytes.len() >= truth.len(), "symbol {id} was cut");
        // Recovered symbols are as long as the repairs.
        truth.resize(bytes.len(), 0);
        assert_eq!(bytes, truth, "symbol {id}");
        assert!(!self.in_order || self.ids.last().is_none_or(|last| *last < id), "{id} too late");
        assert!(self.ids.insert(id), "symbol {id} came twice");
    }

    /// Tells the receiver that symbols are given up: all below `id`, or a run from `id` on, depending on `kind`.
    pub(super) fn give_up(&mut self, blocks: &mut ReceiveBlocks, kind: u8, id: u64) {
        let sink = &mut |bytes: &[u8]| self.take(bytes);
        if kind & 2 != 0 {
            blocks.raise_floor(id, sink);
        } else {
            blocks.abandon(SymbolId(id), u64::from(kind) << (kind >> 3), sink);
        }
    }
}

/// A code that adds up the work of all attempts to recover a block, and their number.
#[derive(Debug)]
pub(super) struct Counting {
    pub(super) code: Box<dyn ErasureCode>,
    pub(super) spent: Arc<Spent>,
}

/// Work that decoders have done.
#[derive(Debug, Default)]
pub(super) struct Spent {
    pub(super) work: AtomicU64,
    pub(super) attempts: AtomicU64,
}

impl ErasureCode for Counting {
    fn limits(&self) -> CodeLimits {
        self.code.limits()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.code.encoder()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        let spent = Arc::clone(&self.spent);
        Box::new(CountingDecoder { decoder: self.code.decoder(), sources: 0, spent })
    }

    fn recovery_work(&self, sources: u16, length: usize) -> u64 {
        self.code.recovery_work(sources, length)
    }

    fn sliding_decoder(&self, symbol_length: usize) -> Option<Box<dyn SlidingDecoder>> {
        self.code.sliding_decoder(symbol_length)
    }
}

#[derive(Debug)]
struct CountingDecoder {
    decoder: Box<dyn Decoder>,
    sources: u16,
    spent: Arc<Spent>,
}

impl Decoder for CountingDecoder {
    fn begin(&mut self, sources: u16) {
        self.sources = sources;
        self.decoder.begin(sources);
    }

    fn source(&mut self, index: u16) {
        self.decoder.source(index);
    }

    fn repair(&mut self, key: u32) -> bool {
        self.decoder.repair(key)
    }

    fn deficit(&self) -> u16 {
        self.decoder.deficit()
    }

    fn recover(
        &mut self,
        sources: &[HeldSource<'_>],
        repairs: &[HeldRepair<'_>],
        work: &mut Workspace,
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        let length = repairs.first().map_or(0, |repair| repair.bytes.len() as u64);
        // Only one code needs decoding work: F · (1500 + length) units (wire format, Codes).
        let units = u64::from(self.sources) * (1500 + length);
        self.spent.work.fetch_add(units, Ordering::Relaxed);
        self.spent.attempts.fetch_add(1, Ordering::Relaxed);
        self.decoder.recover(sources, repairs, work, out)
    }
}
