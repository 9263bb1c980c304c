//! Memory usage of the streams.

use core::mem::size_of;

use super::streams::{Stream, Streams};

/// Bytes that are counted for the record of a gap.
const GAP: u64 = 48;

impl Streams {
    /// Bytes of all buffers and their records. For chunks kept by reference, only the unsent bytes
    /// are counted.
    pub fn memory(&self) -> u64 {
        let streams = self.streams.values().map(|stream| stream.memory());
        let queues = self.classes.iter().map(|class| class.memory());
        streams.chain(queues).sum::<u64>() + self.incoming.memory() + self.pieces as u64 * GAP
    }

    /// Frees all streams and datagrams because the connection has ended.
    pub fn release(&mut self) {
        *self = Streams::new(self.role, self.limits);
    }
}

impl Stream {
    fn memory(&self) -> u64 {
        size_of::<Stream>() as u64 + self.send.memory() + self.receive.memory()
    }
}
