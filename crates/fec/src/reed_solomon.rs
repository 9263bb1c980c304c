//! A systematic Cauchy Reed–Solomon code for blocks of up to 255 symbols.
//!
//! A block has F source symbols, sent as they are, and up to 255 − F repair symbols; any F of them
//! give back all sources. Repair i is `Σ_j 1 / (x_i + y_j) · source_j` over GF(2^8) with
//! `x_i = 255 − i` and `y_j = j`, a Cauchy matrix: every square part of it is invertible, so the
//! code is maximum distance separable (Blömer et al., "An XOR-Based Erasure-Resilient Coding
//! Scheme", ICSI TR-95-048). A repair depends on the sources and on its own index only, not on how
//! many others there are: a sender may always add more, and any repair can be made alone.
//!
//! Symbols are byte strings. A source shorter than the repairs counts as extended with zeros.

mod decoder;
mod error;
mod inverse;
mod received;

pub use decoder::{Decoder, Recovered};
pub use error::{Error, Role};

use crate::gf256::{EXP, LOG, ORDER};
use crate::kernel::{Kernel, Matrix};
use core::ops::Range;

/// The most symbols, sources and repairs together, that a block can have.
pub const MAX_SYMBOLS: usize = 255;

/// The factor of source `source` in repair `repair`. The code only uses pairs whose sum is below
/// [`MAX_SYMBOLS`].
///
/// Since 255 − i is i with every bit inverted, the matrix element is `1 / !(i xor j)`.
pub fn coefficient(repair: u8, source: u8) -> u8 {
    RECIPROCALS[usize::from(repair ^ source)]
}

/// `1 / !a` for every byte `a` below 255. The code never uses the entry of 255, which is 1. A block
/// has up to 127 · 128 coefficients; without this table each would take two look-ups, one after the
/// other.
static RECIPROCALS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = EXP[ORDER - LOG[255 - byte] as usize];
        byte += 1;
    }
    table
};

/// Computes the repair symbols `first_repair`, `first_repair + 1`, … of a block, with the fastest
/// kernel; see [`encode_with`].
pub fn encode(first_repair: u8, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), Error> {
    encode_with(Kernel::best(), first_repair, sources, repairs)
}

/// Computes the repair symbols `first_repair`, `first_repair + 1`, … of a block into `repairs`.
///
/// `sources` are all the block's source symbols in order. The buffers in `repairs` are of one
/// length, usually that of the longest source; they are overwritten. Nothing is allocated.
///
/// # Errors
/// Nothing is written if there are no sources, if a symbol's index would reach beyond
/// [`MAX_SYMBOLS`], if the repair buffers differ in length, or if a source is longer than they are.
pub fn encode_with(
    kernel: Kernel,
    first_repair: u8,
    sources: &[&[u8]],
    repairs: &mut [&mut [u8]],
) -> Result<(), Error> {
    if sources.is_empty() {
        return Err(Error::NoSources);
    }
    let repair_count = usize::from(first_repair) + repairs.len();
    if sources.len() + repair_count > MAX_SYMBOLS {
        return Err(Error::TooManySymbols { sources: sources.len(), repairs: repair_count });
    }
    let Some(length) = repairs.first().map(|repair| repair.len()) else {
        return Ok(());
    };
    if let Some(other) = repairs.iter().find(|repair| repair.len() != length) {
        return Err(Error::RepairLength { length: other.len(), expected: length });
    }
    for (index, source) in sources.iter().enumerate() {
        if source.len() > length {
            return Err(Error::SourceTooLong {
                index: index as u8,
                length: source.len(),
                limit: length,
            });
        }
    }
    kernel.multiply_by(Repairs { first: first_repair }, sources, repairs);
    Ok(())
}

/// The code's matrix from repair `first` on.
struct Repairs {
    first: u8,
}

impl Matrix for Repairs {
    /// For any source, the coefficients of eight repairs whose indices differ only in the last three bits are
    /// one entry of [`OCTETS`], so two or three entries hold a column.
    #[inline(always)]
    fn write_column(&self, input: usize, rows: Range<usize>, column: &mut [u8]) {
        let first = self.first.wrapping_add(rows.start as u8);
        let octet = |number: u8| {
            let repair = (first & !7).wrapping_add(8 * number);
            u128::from(OCTETS[usize::from(repair ^ input as u8)])
        };
        let mut bytes = octet(0) | octet(1) << 64;
        let skipped = 8 * u32::from(first & 7);
        if skipped > 0 {
            bytes = bytes >> skipped | octet(2) << (128 - skipped);
        }
        column[..16].copy_from_slice(&bytes.to_le_bytes());
    }
}

/// For each byte `a`, the coefficients of `a xor 0` to `a xor 7`, the first in the lowest byte.
static OCTETS: [u64; 256] = {
    let mut octets = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            octets[byte] |= (RECIPROCALS[byte ^ bit] as u64) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    octets
};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
