//! How much memory the streams hold.

use core::mem::size_of;

use super::streams::{Stream, Streams};

/// Bytes that the record of a gap takes.
const GAP: u64 = 48;

impl Streams {
    /// Bytes of all buffers and of their records. Of chunks that are kept by reference, the unsent bytes are counted.
    pub fn memory(&self) -> u64 {
        let streams = self.streams.values().map(|stream| stream.memory());
        let queues = self.classes.iter().map(|class| class.memory());
        streams.chain(queues).sum::<u64>() + self.incoming.memory() + self.pieces as u64 * GAP
    }

    /// Frees all streams and datagrams: the connection is over.
    pub fn release(&mut self) {
        *self = Streams::new(self.role, self.limits);
    }
}

impl Stream {
    fn memory(&self) -> u64 {
        size_of::<Stream>() as u64 + self.send.memory() + self.receive.memory()
    }
}
