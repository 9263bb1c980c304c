//! No code.

use crate::code::{CodeLimits, ErasureCode};
use crate::registry::{Entry, Options, PolicyError};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "none",
    summary: "no repairs: a lost symbol is sent again",
    source: "",
    options: &[],
};

/// No code: blocks group symbols for bookkeeping, and lost symbols are sent again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncoded;

/// Builds the policy, which has no options.
pub fn build(_: &Options<'_>) -> Result<Box<dyn ErasureCode>, PolicyError> {
    Ok(Box::new(Uncoded))
}

impl ErasureCode for Uncoded {
    fn limits(&self) -> CodeLimits {
        CodeLimits {
            sources: 256,
            symbols: 256,
            repairs: false,
            any_symbols_suffice: true,
            surplus: 0,
            slides: None,
        }
    }
}
