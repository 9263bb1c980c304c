//! Erasure codes, which rebuild lost packets from those that arrived.
//!
//! - [`gf256`]: arithmetic of the field.
//! - [`kernel`]: sums of scaled byte rows, in portable code and in vector instructions chosen once
//!   at run time. All of a code's work on packet bytes is done here.
//! - [`reed_solomon`]: a systematic Cauchy Reed–Solomon code for blocks of up to 255 symbols.
//! - [`random_linear`]: a systematic random linear code over GF(2) for blocks of up to 1024 sources.
//! - [`lt`]: Luby's LT codes for blocks of up to 512 sources, decoded by peeling.
//! - [`raptorq`]: the fountain code of RFC 6330 for blocks of up to 56,403 sources.
//! - [`sliding_window`]: random combinations over GF(2^8) of runs of sources that may overlap.
//!
//! Nothing here does I/O, reads a clock or draws random numbers, and nothing allocates per symbol.
//! `unsafe` is confined to the vector kernels.

#![deny(unsafe_code)]

pub mod gf256;
pub mod kernel;
pub mod lt;
pub mod random_linear;
pub mod raptorq;
pub mod reed_solomon;
pub mod sliding_window;
