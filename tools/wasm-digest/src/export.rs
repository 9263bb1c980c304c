//! The functions that the wasm module exports to its host.

#![allow(
    unsafe_code,
    reason = "a symbol name chosen by hand is an unsafe attribute: two equal ones clash"
)]

use crate::CASES;

/// How many cases there are.
#[unsafe(no_mangle)]
pub extern "C" fn cases() -> u32 {
    CASES.len() as u32
}

/// The digest of one case; 0 beyond the last.
#[unsafe(no_mangle)]
pub extern "C" fn digest(case: u32) -> u64 {
    CASES.get(case as usize).map_or(0, |case| (case.run)())
}
