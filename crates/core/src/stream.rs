//! Streams and datagrams: application bytes into source symbols, and symbols back into bytes.
//!
//! Reliability belongs to the symbol, not to the stream: a byte leaves the send buffer the moment it
//! is copied into a symbol, and no stream knows about losses. So there is no retransmission buffer
//! here, and stream credit covers new bytes only.
//!
//! # Memory
//! With `n` streams open, of which the peer opened at most [`StreamLimits::max_streams`], and `⌈x⌉`
//! the power of two at or above `x`:
//!
//! - receive buffers: at most `n · ⌈max_stream_data⌉`, of which at most `max_data` hold bytes;
//! - send buffers: at most `n · ⌈send_buffer⌉`;
//! - datagrams: at most `4 · datagram_buffer`, three classes out and one queue in;
//! - bookkeeping of gaps: at most [`MAX_GAPS`] · 16 bytes over all streams;
//! - bookkeeping of data that stays in its symbols until it is read: 24 bytes for each piece, which has at least 256.
//!
//! Buffers start empty and grow by doubling; in steady state nothing is allocated.

mod control;
mod datagrams;
mod egress;
mod ends;
mod error;
mod events;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod growth;
mod ingress;
mod lent;
mod memory;
mod progress;
mod receive;
mod returned;
mod ring;
mod segments;
mod send;
mod streams;

pub use crate::wire::{Role, StreamId};
pub use datagrams::DATAGRAM_COST;
pub use egress::Pending;
pub use error::{StreamError, Violation};
pub use events::StreamEvent;
pub use ingress::MAX_GAPS;
pub use lent::HeldSymbols;
pub use progress::StreamProgress;
pub use streams::{ReadOutcome, StreamLimits, Streams};

#[cfg(test)]
mod tests;
