//! Traces of packets and decisions in formats that other tools read.
//!
//! [`Capture`] writes the packets that crossed the links as pcapng, which Wireshark opens. [`Qlog`]
//! writes a connection's decisions and their reasons as qlog.

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
