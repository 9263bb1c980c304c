//! Anabranch: one connection over several lossy, unequal paths at once.
//!
//! This crate gives the protocol core what it lacks: cryptography, sockets, clocks and randomness.

pub mod crypto;
