//! Traces of packets and decisions in formats that other tools read.
//!
//! [`Capture`] writes what crossed the links as pcapng, which Wireshark opens; [`Qlog`] writes why a
//! connection sent what it sent, as qlog.

mod capture;
mod headers;
mod pcapng;
mod qlog;
mod symbol;
#[cfg(test)]
mod tests;

pub use capture::Capture;
pub use pcapng::PcapNg;
pub use qlog::{Qlog, QlogTrace};
pub use symbol::Symbol;
