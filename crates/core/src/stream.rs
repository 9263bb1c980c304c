//! Streams and datagrams: conversion of application bytes into source symbols, and of symbols back
//! into bytes.
//!
//! Reliability is a matter of symbols, not of streams: a byte leaves the send buffer when it is
//! copied into a symbol, and streams do not handle losses. Streams therefore have no retransmission
//! buffer, and stream credit covers only new bytes.
//!
//! # Memory
//! `n` is the number of open streams, of which the peer opened at most
//! [`StreamLimits::max_streams`]; `g` is [`StreamLimits::growth`]; `⌈x⌉` is the power of two at or
//! above `x`:
//!
//! - receive buffers: at most `n · ⌈g · max_stream_data⌉`, of which at most `g · max_data` hold
//!   bytes;
//! - send buffers: at most `n · ⌈send_buffer⌉`;
//! - datagrams: at most `4 · datagram_buffer`, for three send queues (one per class) and one
//!   receive queue;
//! - bookkeeping of gaps: at most [`MAX_GAPS`] entries of 16 bytes over all streams, plus spare
//!   capacity;
//! - bookkeeping of data that stays in its symbols until it is read: 32 bytes for each piece of at
//!   least 256 bytes.
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
