//! Erasure codes as the core uses them. A code makes an encoder and a decoder for each coding
//! block.
//!
//! An encoder makes repairs from a block's source symbols. A decoder is told of every symbol that
//! the receiver holds, counts how many it still needs, and rebuilds the missing sources once it has
//! enough. The blocks keep the symbols' bytes; encoders and decoders keep other state, such as a
//! prepared matrix or the rank of the symbols that have arrived.

pub mod lt;
pub mod none;
pub mod random_linear;
pub mod raptorq;
pub mod reed_solomon;
pub mod sliding_window;

use core::fmt::Debug;

use crate::registry::{PolicyError, PolicySpec, Registry, Row};
use crate::view::SymbolId;

/// Largest key of a repair that fits into the wire format's field.
pub const MAX_KEY: u32 = (1 << 30) - 1;

/// The run of source symbols that a repair symbol combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// First source symbol.
    pub first: SymbolId,
    /// How many source symbols, at least 1.
    pub count: u16,
}

impl Coverage {
    /// The number of the symbol after the last.
    pub fn end(&self) -> u64 {
        self.first.0.saturating_add(u64::from(self.count))
    }
}

/// Why a repair could not be made or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// The coverage is empty, or larger than the code allows.
    Coverage,
    /// The key names no repair of this coverage.
    Key,
    /// A symbol is longer than the repair, or has the wrong length.
    Length,
    /// The symbols do not determine the missing sources.
    Underdetermined,
}

/// Limits and guarantees of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLimits {
    /// Most source symbols of a block, which are also the most that one repair combines; at least 1.
    pub sources: u16,
    /// Most symbols of a block, sources and repairs together; at least `sources`. A block of F sources
    /// has the keys from 0 to `symbols` − F − 1.
    pub symbols: u32,
    /// Whether the code has repairs; without repairs, a lost symbol is sent again.
    pub repairs: bool,
    /// Any F distinct symbols of a block of F sources rebuild it (*maximum distance separable*).
    /// The sender then knows from acknowledgements alone that a block is recovered; with other
    /// codes only the receiver can tell.
    pub any_symbols_suffice: bool,
    /// Symbols beyond F that a receiver may have to keep because the decoder cannot tell whether they
    /// help. 0 for decoders that know their rank: these refuse what does not help.
    pub surplus: u16,
    /// Set if the code slides along the stream: repairs may be made while the block still fills, and may cover
    /// symbols of earlier blocks, at most `sources` in a row. The receiver then asks for one [`SlidingDecoder`],
    /// else for a [`Decoder`] for each block. The value is the most missing symbols that the repairs kept by the
    /// decoder may cover.
    pub slides: Option<u16>,
}

impl CodeLimits {
    /// How many repairs a block of `sources` symbols can have; their keys are 0 to one less than
    /// this number.
    pub fn keys(&self, sources: u16) -> u32 {
        if self.repairs { self.symbols.saturating_sub(u32::from(sources)) } else { 0 }
    }
}

/// An erasure code: makes the encoders and decoders of blocks.
pub trait ErasureCode: Debug + Send {
    /// The code's limits; the same at every call.
    fn limits(&self) -> CodeLimits;

    /// An encoder for one block at a time; never asked for repairs if the code has none.
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Never)
    }

    /// A decoder for one block at a time; not asked for if the code slides.
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Never)
    }

    /// Work of one attempt to recover a block of `sources` symbols whose repairs have `length`
    /// bytes, in units of about 16 instructions. The receiver makes an attempt once the bytes that
    /// have arrived pay for the work (wire format, Codes). 0 if the symbols of a block always pay
    /// for it.
    fn recovery_work(&self, _sources: u16, _length: usize) -> u64 {
        0
    }

    /// If the code slides, the decoder of a connection whose symbols have at most `symbol_length` bytes.
    fn sliding_decoder(&self, _symbol_length: usize) -> Option<Box<dyn SlidingDecoder>> {
        None
    }
}

/// Makes the repairs of one block. Encoders are used again for later blocks.
pub trait Encoder: Debug + Send {
    /// Forgets the block, and keeps its memory for the next.
    fn reset(&mut self) {}

    /// Makes the repairs with the keys `first`, `first + 1`, …, one for each of `repairs`, which
    /// are of one length. `sources` are the symbols of the `coverage` in order, none longer than
    /// the repairs; a shorter one counts as extended with zeros. Unless the code slides, they are
    /// all sources of the block and the same at each call, so the encoder may keep what it derives
    /// from them until [`reset`](Self::reset).
    ///
    /// # Errors
    /// If there are too few or too many sources, a key is beyond [`CodeLimits::keys`], or lengths
    /// disagree.
    fn repairs(
        &mut self,
        coverage: Coverage,
        first: u32,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError>;
}

/// A source symbol that the receiver holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldSource<'a> {
    /// Place of the symbol in the block.
    pub index: u16,
    /// Bytes of the symbol, at most as many as a repair has; the rest counts as zeros.
    pub bytes: &'a [u8],
}

/// A repair symbol that the receiver holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldRepair<'a> {
    /// Key of the repair.
    pub key: u32,
    /// Bytes of the repair; all repairs of a block are of one length.
    pub bytes: &'a [u8],
}

/// Working memory that the decoders of a connection share: it grows to what the largest recovery needs.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Intermediate symbols.
    pub partial: Vec<u8>,
    /// Rebuilt symbols.
    pub rebuilt: Vec<u8>,
}

/// Decodes one block of the receiver. Decoders are used again for later blocks.
pub trait Decoder: Debug + Send {
    /// Starts a new block of `sources` source symbols, of which none has arrived.
    fn begin(&mut self, sources: u16);

    /// The source at `index` is known; called once for each source.
    fn source(&mut self, index: u16);

    /// The repair with `key` arrived; called once for each repair. Returns whether it is worth
    /// keeping. It is not if the other symbols imply it, or if the decoder has kept enough repairs.
    fn repair(&mut self, key: u32) -> bool;

    /// How many independent symbols are still needed: at 0, recovery is worth an attempt. The
    /// number is exact if the decoder can know it, and otherwise a lower bound. After a failed
    /// attempt it is at least 1 until another symbol has arrived.
    fn deficit(&self) -> u16;

    /// Rebuilds the missing sources from all sources held, by rising index, and all repairs kept, in order
    /// of arrival; `out` is called with each index and its bytes, as long as a repair.
    ///
    /// # Errors
    /// Nothing is rebuilt if the symbols do not determine the sources, or if they are not those
    /// that the decoder was told of.
    fn recover(
        &mut self,
        sources: &[HeldSource<'_>],
        repairs: &[HeldRepair<'_>],
        work: &mut Workspace,
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError>;
}

/// Decodes all symbols of a connection. Its repairs may cover overlapping runs of sources.
pub trait SlidingDecoder: Debug + Send {
    /// The repair of `coverage` with `key` arrived. `known` gives the bytes of sources that are held;
    /// others are missing, or given up if they are below the first missing one. Returns whether something
    /// can be learnt from the repair.
    fn repair<'a>(
        &mut self,
        coverage: Coverage,
        key: u32,
        bytes: &[u8],
        known: &dyn Fn(SymbolId) -> Option<&'a [u8]>,
    ) -> bool;

    /// A missing source has arrived.
    fn source(&mut self, symbol: SymbolId, bytes: &[u8]);

    /// A missing source will never arrive.
    fn give_up(&mut self, symbol: SymbolId);

    /// Nothing below `first_missing` is missing.
    fn advance(&mut self, first_missing: SymbolId);

    /// Takes a source that the repairs determine, and returns it with its number of bytes; `None` if none is left.
    /// The bytes are written to `out`, the rest of which is set to 0.
    fn take_recovered(&mut self, out: &mut [u8]) -> Option<(SymbolId, usize)>;

    /// Independent symbols still needed to recover `source`, which is missing, and all sources that kept repairs cover.
    fn deficit(&self, source: SymbolId) -> u16;
}

/// Stands in for the encoder or decoder that a code does not have; never used.
#[derive(Clone, Copy, Debug)]
struct Never;

impl Encoder for Never {
    fn repairs(
        &mut self,
        _: Coverage,
        _: u32,
        _: &[&[u8]],
        _: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        Err(CodeError::Key)
    }
}

impl Decoder for Never {
    fn begin(&mut self, _: u16) {}

    fn source(&mut self, _: u16) {}

    fn repair(&mut self, _: u32) -> bool {
        false
    }

    fn deficit(&self) -> u16 {
        1
    }

    fn recover(
        &mut self,
        _: &[HeldSource<'_>],
        _: &[HeldRepair<'_>],
        _: &mut Workspace,
        _: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        Err(CodeError::Underdetermined)
    }
}

/// The built-in codes. A peer that names no codes uses the first for its repairs and decodes all of them (wire
/// format, transport parameter 11).
///
/// The options of a code concern the sender. The receiver knows of them only what is in the keys, and builds the code
/// without options: the defaults of a code must allow everything that any options allow.
pub const TABLE: &[Row<dyn ErasureCode>] = &[
    (&reed_solomon::ENTRY, reed_solomon::build),
    (&random_linear::ENTRY, random_linear::build),
    (&lt::ENTRY, lt::build),
    (&raptorq::ENTRY, raptorq::build),
    (&sliding_window::ENTRY, sliding_window::build),
    (&none::ENTRY, none::build),
];

/// Makes the built-in code that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn ErasureCode>, PolicyError> {
    Registry::new().build(spec)
}

#[cfg(test)]
mod tests;
