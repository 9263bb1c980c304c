//! How much memory a connection holds. The endpoint adds up the memory of its connections and
//! limits it.

use anabranch_types::Time;
use core::mem::size_of;

use super::{CloseReason, Connection};
use crate::coding::receive::ReceiveBlocks;
use crate::coding::send::SendBlocks;
use crate::path::sent::SentPacket;
use crate::wire::CloseCode;

/// The memory is measured again after this many bytes have been received, written and read.
const MEASURE_AFTER: u64 = 256 << 10;
/// The endpoint is told of changes of at least this many bytes.
const STEP: u64 = 256 << 10;

/// State of the memory measurement: when it is next due, and what the endpoint was told and
/// answered.
#[derive(Debug, Default)]
pub(super) struct MemoryAccount {
    /// Bytes received, written and read since the last measurement.
    moved: u64,
    /// Bytes of memory that the endpoint was told of last.
    told: u64,
    /// Whether the endpoint has little memory left, so that the peer's credit does not grow.
    scarce: bool,
}

impl MemoryAccount {
    /// Notes that bytes were received, written or read.
    #[inline]
    pub(super) fn on_moved(&mut self, bytes: usize) {
        self.moved += bytes as u64;
    }

    pub(super) fn is_scarce(&self) -> bool {
        self.scarce
    }
}

impl Connection {
    /// Bytes of memory that the connection holds now: buffers of symbols and streams, and records
    /// of packets. Tables of fixed size and the decoders' own state are not counted; they take 0.4
    /// to 1.1 MB in `tests/memory.rs`.
    pub fn memory(&self) -> u64 {
        let packets: usize = self.paths.iter().map(|path| path.sent.room()).sum();
        let packets = (packets * size_of::<SentPacket>()) as u64;
        let sent: u64 = self.send.iter().map(SendBlocks::memory).sum();
        let received: u64 = self.receive.iter().map(ReceiveBlocks::memory).sum();
        self.streams.memory() + received + sent + packets
    }

    /// Symbols and repairs whose bytes are held, sent and received. Checks that no other buffer is in use.
    #[cfg(any(test, feature = "testing"))]
    pub fn symbols_held(&self) -> [usize; 2] {
        let received = self.receive.iter().map(ReceiveBlocks::held).sum();
        [self.send.iter().map(SendBlocks::held).sum(), received]
    }

    /// The [`memory`](Self::memory) held, if it has changed by at least 256 KiB since it was last
    /// returned. Drivers call this after packets and timers, and pass the result to
    /// [`Router::weigh`](crate::endpoint::Router::weigh). Endpoints do so by themselves.
    #[inline]
    pub fn memory_news(&mut self) -> Option<u64> {
        if self.memory.moved < MEASURE_AFTER { None } else { self.measure_memory() }
    }

    fn measure_memory(&mut self) -> Option<u64> {
        self.memory.moved = 0;
        let memory = self.memory();
        let is_news = memory.abs_diff(self.memory.told) >= STEP;
        is_news.then(|| {
            self.memory.told = memory;
            memory
        })
    }

    /// Sets whether little memory is left for connections with this peer. If so, the peer's credit
    /// does not grow.
    pub(crate) fn set_memory_scarce(&mut self, scarce: bool) {
        self.memory.scarce = scarce;
    }

    /// Whether the connection was closed to free its memory, and its data dropped.
    pub(super) fn is_released(&self) -> bool {
        let reason = self.closing.reason();
        reason.is_some_and(|reason| !reason.by_peer && reason.code == CloseCode::MEMORY)
    }

    /// Closes the connection because the connections with this peer hold too much memory. All data
    /// of the connection is dropped, including data that has arrived and was not read.
    pub fn close_for_memory(&mut self, now: Time) {
        if self.is_closed() {
            return;
        }
        let reason = "connections with this peer took too much memory";
        self.start_close(now, CloseReason::local(CloseCode::MEMORY, reason));
        self.streams.release();
        self.receive.iter_mut().for_each(ReceiveBlocks::release);
        self.send.iter_mut().for_each(SendBlocks::release);
    }
}
