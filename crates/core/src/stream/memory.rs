//! How much memory the streams take.

use core::mem::size_of;

use super::streams::{Stream, Streams};

/// What a gap's entry takes in its map, bytes.
const GAP: u64 = 48;

impl Streams {
    /// Bytes of all buffers, and of what keeps account of them. The bytes of chunks that are kept by reference count
    /// as far as they are not sent.
    pub fn memory(&self) -> u64 {
        let streams = self.streams.values().map(|stream| stream.memory());
        let queues = self.classes.iter().map(|class| class.memory());
        streams.chain(queues).sum::<u64>() + self.incoming.memory() + self.pieces as u64 * GAP
    }

    /// Forgets all streams and datagrams, since the connection is over.
    pub fn release(&mut self) {
        *self = Streams::new(self.role, self.limits);
    }
}

impl Stream {
    fn memory(&self) -> u64 {
        size_of::<Stream>() as u64 + self.send.memory() + self.receive.memory()
    }
}
