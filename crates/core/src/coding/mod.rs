//! Coding windows on both sides, and the codes that fill their holes.

pub mod code;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod pool;
pub mod receive;
pub mod send;

use anabranch_policy::code::CodeLimits;

/// Most symbols that are held of a window of any code.
pub const MAX_WINDOW: usize = 1024;

/// Source symbols that windows usually have at most: they are handled with small lists.
const USUAL_WINDOW: usize = 256;

/// Most source symbols of a window, such that it can be held with all the symbols that decoding it takes.
fn most_sources(limits: &CodeLimits) -> u16 {
    limits.sources.min((MAX_WINDOW as u16).saturating_sub(limits.surplus)).max(1)
}

#[cfg(test)]
mod tests;
