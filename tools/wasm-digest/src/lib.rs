//! Integer digests of deterministic computations.
//!
//! Each case runs natively, unoptimised and optimised, and as wasm in an interpreter; CI compares the digests. To add
//! a computation, add a [`Case`] to `cases.rs`.

mod cases;
mod digest;
mod engine;
#[cfg(target_arch = "wasm32")]
mod export;

pub use cases::{CASES, Case};
pub use digest::Digest;
