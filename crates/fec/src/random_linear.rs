//! A systematic random linear code over GF(2) for blocks of up to 1024 source symbols.
//!
//! A repair is the exclusive or of a random half of the block's sources; its key seeds the choice. Sources
//! and repairs that have arrived are equations in the missing sources, so F + e symbols of a block of F
//! rebuild it with probability about 1 − 2^−e: 1.6 symbols beyond F are needed on average (FMTCP §III,
//! random linear codes; Nonnenmacher, Biersack and Towsley give the rank's distribution).
//!
//! [`Equations`] tracks the rank of the symbols that have arrived, so that a receiver knows how
//! many more it needs. It handles coefficients only; bytes are combined once, when a block is
//! solved.

mod equations;

pub use equations::{Equations, Held};

use crate::kernel::{Kernel, MAX_INPUTS};

/// The most source symbols that a block can have.
pub const MAX_SOURCES: usize = 1024;

/// Number of 64-bit words in a row of coefficients.
const WORDS: usize = MAX_SOURCES / 64;

/// Output rows combined at a time.
const ROWS: usize = 12;

/// One bit for each source of a block: bit `i % 64` of word `i / 64` is source i's.
type Bits = [u64; WORDS];

/// Why encoding or decoding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A block has from 1 to [`MAX_SOURCES`] sources.
    #[error("{0} source symbols; 1 to 1024 are allowed")]
    Sources(usize),
    /// A source is longer than the repairs, or the repairs differ in length.
    #[error("symbols differ in length")]
    Length,
    /// The symbols do not determine the missing sources.
    #[error("more symbols are needed")]
    NotEnough,
}

/// A bit for each source of a block of `sources`: whether the repair with `key` contains it. The bits are the outputs
/// of SplitMix64 with the key as its seed (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
/// 2014).
fn coefficients(key: u32, sources: usize) -> Bits {
    let mut bits = [0; WORDS];
    let mut state = u64::from(key);
    for (word, bits) in bits.iter_mut().enumerate().take(sources.div_ceil(64)) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let left = sources - word * 64;
        let mask = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
        *bits = mix(state) & mask;
    }
    bits
}

/// An output of SplitMix64, from its state.
pub(crate) const fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

fn bit(bits: &[u64], index: usize) -> bool {
    bits.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
}

/// Computes the repairs with the keys `first_key`, `first_key + 1`, … of the block of `sources` into
/// `repairs`. A source shorter than the repairs counts as extended with zeros. Nothing is allocated.
///
/// # Errors
/// Nothing is written if there are no sources or too many, or if lengths disagree.
pub fn encode(first_key: u32, sources: &[&[u8]], repairs: &mut [&mut [u8]]) -> Result<(), Error> {
    if sources.is_empty() || sources.len() > MAX_SOURCES {
        return Err(Error::Sources(sources.len()));
    }
    let length = repairs.first().map_or(0, |repair| repair.len());
    if repairs.iter().any(|repair| repair.len() != length)
        || sources.iter().any(|source| source.len() > length)
    {
        return Err(Error::Length);
    }
    let mut key = first_key;
    for rows in repairs.chunks_mut(ROWS) {
        let mut chosen = [[0; WORDS]; ROWS];
        for bits in chosen.iter_mut().take(rows.len()) {
            *bits = coefficients(key, sources.len());
            key = key.wrapping_add(1);
        }
        for (chunk, inputs) in sources.chunks(MAX_INPUTS).enumerate() {
            let first = chunk * MAX_INPUTS;
            let factor = |row: usize, input| u8::from(bit(&chosen[row], first + input));
            if chunk == 0 {
                Kernel::best().multiply(inputs, rows, factor);
            } else {
                Kernel::best().multiply_add(inputs, rows, factor);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
