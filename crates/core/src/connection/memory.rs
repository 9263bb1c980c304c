//! What memory a connection takes, for the endpoint that shares it out.

use anabranch_types::Time;
use core::mem::size_of;

use super::{CloseReason, Connection};
use crate::path::sent::SentPacket;
use crate::wire::CloseCode;

/// Bytes received, written and read after which the memory is looked at again.
const LOOK_AFTER: u64 = 256 << 10;
/// Changes of less than this many bytes are not worth telling.
const STEP: u64 = 256 << 10;

/// What the endpoint was told, and what it answered.
#[derive(Debug, Default)]
pub(super) struct MemoryAccount {
    /// Bytes received, written and read since the memory was looked at.
    moved: u64,
    told: u64,
    /// Little is left: the peer's credit does not grow.
    scarce: bool,
    /// What the connection held was dropped.
    released: bool,
}

impl MemoryAccount {
    /// Bytes came from the peer or the application, or went to it.
    #[inline]
    pub(super) fn on_moved(&mut self, bytes: usize) {
        self.moved += bytes as u64;
    }

    pub(super) fn is_released(&self) -> bool {
        self.released
    }

    pub(super) fn is_scarce(&self) -> bool {
        self.scarce
    }
}

impl Connection {
    /// Bytes of memory that the connection takes now: buffers of symbols and streams, and packets that it remembers. Not
    /// counted are tables of fixed size and what decoders keep beside symbols: 0.4 to 1.1 MB in `tests/memory.rs`.
    pub fn memory(&self) -> u64 {
        let packets: usize = self.paths.iter().map(|path| path.sent.remembered()).sum();
        let packets = (packets * size_of::<SentPacket>()) as u64;
        self.streams.memory() + self.receive.memory() + self.send.memory() + packets
    }

    /// Symbols and repairs whose bytes are held: those sent, and those received. Checks that no others are counted.
    #[cfg(any(test, feature = "testing"))]
    pub fn symbols_held(&self) -> [usize; 2] {
        [self.send.held(), self.receive.held()]
    }

    /// What [`memory`](Self::memory) says, if it has changed by a quarter of a megabyte since this was last told. To be
    /// asked after packets and timers, for [`Router::weigh`](crate::endpoint::Router::weigh); endpoints do so by themselves.
    #[inline]
    pub fn memory_news(&mut self) -> Option<u64> {
        if self.memory.moved < LOOK_AFTER { None } else { self.look_at_memory() }
    }

    fn look_at_memory(&mut self) -> Option<u64> {
        self.memory.moved = 0;
        let memory = self.memory();
        let is_news = memory.abs_diff(self.memory.told) >= STEP;
        is_news.then(|| {
            self.memory.told = memory;
            memory
        })
    }

    /// Whether little memory is left for connections with this peer: as long as that is so, its credit does not grow.
    pub(crate) fn set_memory_scarce(&mut self, scarce: bool) {
        self.memory.scarce = scarce;
    }

    /// Closes the connection because those with this peer take too much memory. What it holds is dropped, what has
    /// arrived as well.
    pub fn close_for_memory(&mut self, now: Time) {
        if self.is_closed() {
            return;
        }
        let reason = "connections with this peer took too much memory";
        self.start_close(now, CloseReason::local(CloseCode::MEMORY, reason));
        self.memory.released = true;
        self.streams.release();
        self.receive.release();
        self.send.release();
    }
}
