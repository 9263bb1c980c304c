//! Erasure codes as the core uses them: coverage in, repair out; received in, recovered out.

use core::fmt::Debug;

use crate::view::SymbolId;

/// The run of source symbols that a repair symbol combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// First source symbol.
    pub first: SymbolId,
    /// How many, at least 1.
    pub count: u16,
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
    /// Fewer independent symbols than sources.
    Underdetermined,
}

/// One symbol that the receiver holds.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Index of the source within the coverage, or the repair's key.
    pub index: u16,
    /// Its bytes; sources may be shorter than repairs and count as zero-extended.
    pub bytes: &'a [u8],
}

/// An erasure code over windows of source symbols.
pub trait ErasureCode: Debug + Send {
    /// Most symbols (sources plus repairs) in a window.
    fn max_symbols(&self) -> u16;

    /// Whether there are repairs at all; without, a lost symbol is sent again.
    fn makes_repairs(&self) -> bool {
        true
    }

    /// Makes the repair with `key` over `sources` (in order, each at most `repair.len()` long).
    fn repair(&mut self, key: u16, sources: &[&[u8]], repair: &mut [u8]) -> Result<(), CodeError>;

    /// Makes the repairs with keys `first`, `first + 1`, …, one for each of `repairs`, which are of one
    /// length. A code that reads its sources once for all of them does better than this.
    fn repairs(
        &mut self,
        first: u16,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        for (key, repair) in (first..).zip(repairs) {
            self.repair(key, sources, repair)?;
        }
        Ok(())
    }

    /// Symbols still missing for decoding a window of `count`, given how many sources and distinct
    /// repairs are held (exact for maximum-distance-separable codes, a lower bound for others).
    fn deficit(&self, count: u16, sources_held: u16, repairs_held: u16) -> u16 {
        count.saturating_sub(sources_held).saturating_sub(repairs_held)
    }

    /// Recovers the missing sources of a window of `count`; `out` is called with each index and its bytes.
    fn recover(
        &mut self,
        count: u16,
        sources: &[Held<'_>],
        repairs: &[Held<'_>],
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError>;
}
