//! A sliding-window random linear code over GF(2^8): each repair combines a run of consecutive source
//! symbols, and runs may overlap in any way (after RFC 8681, with coefficients of our own).
//!
//! A receiver keeps the repairs as equations in the sources that are missing ([`Decoder`]). Every source
//! that arrives is eliminated from all equations; an equation left with a single unknown gives that source
//! at once, without waiting for a block to be complete.

mod columns;
mod decoder;
mod equation;
mod work;

pub use columns::MOST as MAX_MISSING;
pub use decoder::Decoder;

use crate::kernel::{Kernel, MAX_INPUTS};

/// Most source symbols that a repair can combine.
pub const MAX_COVERAGE: usize = MAX_INPUTS;

/// The run of source symbols that a repair combines, and the key of its coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The first source's number.
    pub first: u64,
    /// How many sources, at most [`MAX_COVERAGE`].
    pub count: usize,
    /// Determines the coefficients together with the run, so different runs may use the same key.
    pub key: u32,
}

impl Repair {
    /// The coefficient of each source of the run, never zero: bytes of the outputs of SplitMix64, lowest
    /// first, modulo 255, plus 1. Its state begins with `key + count · 2^30 + first · 2^46` modulo 2^64.
    pub fn coefficients(&self) -> [u8; MAX_COVERAGE] {
        let mut state = u64::from(self.key)
            .wrapping_add((self.count as u64) << 30)
            .wrapping_add(self.first << 46);
        let mut coefficients = [1; MAX_COVERAGE];
        let used = self.count.min(MAX_COVERAGE);
        for chunk in coefficients[..used].chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let bytes = crate::random_linear::mix(state).to_le_bytes();
            for (coefficient, byte) in chunk.iter_mut().zip(bytes) {
                *coefficient = byte % 255 + 1;
            }
        }
        coefficients
    }
}

/// Why a repair could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The run does not have 1 to [`MAX_COVERAGE`] sources, or not as many sources were given.
    #[error("a run of {0} source symbols; 1 to 255 are allowed, and each must be given")]
    Coverage(usize),
    /// A source is longer than the repair.
    #[error("a source is longer than the repair")]
    Length,
}

/// Computes a repair of `sources`, the symbols of its run in order. A source shorter than `out` counts
/// as extended with zeros. Nothing is allocated.
///
/// # Errors
/// Nothing is written if the run is empty, too long or not as long as `sources`, or if a source is
/// too long.
pub fn encode(repair: Repair, sources: &[&[u8]], out: &mut [u8]) -> Result<(), Error> {
    if sources.is_empty() || sources.len() != repair.count || repair.count > MAX_COVERAGE {
        return Err(Error::Coverage(repair.count));
    }
    if sources.iter().any(|source| source.len() > out.len()) {
        return Err(Error::Length);
    }
    let coefficients = repair.coefficients();
    Kernel::best().multiply(sources, &mut [out], |_, source| coefficients[source]);
    Ok(())
}

#[cfg(test)]
mod tests;
