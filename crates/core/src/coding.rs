//! Coding blocks at the sender and at the receiver, and the erasure codes that recover lost symbols.

pub mod code;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod pool;
pub mod receive;
pub mod send;
pub mod spaces;

use anabranch_policy::code::CodeLimits;

/// Most symbols of a block that are held, with any code.
pub const MAX_BLOCK: usize = 1024;

/// Usual bound on the symbols of a block; blocks within it are handled with short lists.
const USUAL_BLOCK: usize = 256;

/// Most source symbols of a block: as many as the code allows and as fit in [`MAX_BLOCK`] with its surplus repairs.
pub fn most_sources(limits: &CodeLimits) -> u16 {
    limits.sources.min((MAX_BLOCK as u16).saturating_sub(limits.surplus)).max(1)
}

#[cfg(test)]
mod tests;
