//! One stream over several connections, each on a path of its own. The sender cuts the stream into
//! numbered chunks, and the next connection that has room takes the next chunk. The receiver puts
//! the chunks back into order in a buffer of limited size.

use anabranch_core::connection::Connection;
use anabranch_core::wire::StreamId;
use std::collections::BTreeMap;

use super::Pattern;

/// Length of the number that precedes a chunk's payload, bytes.
const NUMBER: usize = 8;
/// Payload of a chunk, bytes of the stream.
pub(super) const PAYLOAD: usize = 4088;
/// Bytes that a chunk adds to a connection's stream.
const CHUNK: usize = NUMBER + PAYLOAD;

/// One of the connections that carry a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Index of the connection's only path.
    pub path: usize,
    /// Size of the receiver's buffer for chunks that are out of order, bytes.
    pub buffer: u64,
}

impl Stripe {
    /// Least size of the buffer: one chunk, bytes.
    pub const LEAST_BUFFER: u64 = CHUNK as u64;
}

/// A chunk that is being written to or read from a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunk {
    number: [u8; NUMBER],
    /// Bytes written or read so far.
    done: usize,
}

impl Chunk {
    /// The bytes from `done` to the end of the number or, after the number, of the payload.
    fn rest<'a>(&'a self, pattern: &'a Pattern) -> &'a [u8] {
        match self.number.get(self.done..) {
            Some(number) if !number.is_empty() => number,
            _ => {
                let at = self.done - NUMBER;
                let start = u64::from_be_bytes(self.number) * PAYLOAD as u64;
                pattern.at(start + at as u64, PAYLOAD - at)
            }
        }
    }

    /// Writes chunks to `stream` while the connection accepts them. Returns the number of payload
    /// bytes written.
    ///
    /// `next` is the number of the next chunk that no connection has taken.
    pub(super) fn write(
        chunk: &mut Option<Chunk>,
        (connection, stream): (&mut Connection, StreamId),
        next: &mut u64,
        pattern: &Pattern,
    ) -> u64 {
        let mut written = 0;
        loop {
            let current = chunk
                .get_or_insert_with(|| Chunk { number: next.to_be_bytes(), ..Chunk::default() });
            let Ok(taken @ 1..) = connection.write(stream, current.rest(pattern)) else {
                // A chunk that was not begun is left to the next connection that has room.
                *chunk = chunk.filter(|chunk| chunk.done > 0);
                return written;
            };
            if current.done == 0 {
                *next += 1;
            }
            if current.done >= NUMBER {
                written += taken as u64;
            }
            current.done += taken;
            if current.done == CHUNK {
                *chunk = None;
            }
        }
    }

    /// Reads the rest of a chunk. Returns its number once it has arrived completely.
    ///
    /// # Errors
    /// When the connection cannot be read, or its bytes differ from those that were sent.
    pub(super) fn read(
        &mut self,
        (connection, stream): (&mut Connection, StreamId),
        pattern: &Pattern,
        buffer: &mut [u8],
    ) -> Result<Option<u64>, String> {
        while self.done < CHUNK {
            let end = if self.done < NUMBER { NUMBER } else { CHUNK };
            let room = buffer.get_mut(..end - self.done).unwrap_or_default();
            let n = connection
                .read(stream, room)
                .map_err(|error| format!("reading a chunk failed: {error}"))?
                .n;
            if n == 0 {
                return Ok(None);
            }
            let bytes = buffer.get(..n).unwrap_or_default();
            if let Some(number) = self.number.get_mut(self.done..self.done + n) {
                number.copy_from_slice(bytes);
            } else if self.rest(pattern).get(..n) != Some(bytes) {
                return Err(format!("wrong bytes in chunk {}", u64::from_be_bytes(self.number)));
            }
            self.done += n;
        }
        let number = u64::from_be_bytes(self.number);
        *self = Chunk::default();
        Ok(Some(number))
    }
}

/// Puts the chunks of all connections back into order.
#[derive(Clone, Debug)]
pub(super) struct Resequencer {
    next: u64,
    /// Chunks that are held until it is their turn, each with the index of its connection.
    held: BTreeMap<u64, usize>,
    most: usize,
}

impl Resequencer {
    /// A resequencer that holds chunks with up to `bytes` bytes, but at least one chunk.
    pub(super) fn new(bytes: u64) -> Self {
        let most = usize::try_from(bytes / PAYLOAD as u64).unwrap_or(usize::MAX).max(1);
        Resequencer { next: 0, held: BTreeMap::new(), most }
    }

    /// Takes chunk `number` from `connection`. Returns whether it was accepted: a full buffer
    /// accepts only the next chunk of the stream.
    pub(super) fn take(&mut self, number: u64, connection: usize) -> bool {
        let room = number == self.next || self.held.len() < self.most;
        if room {
            self.held.insert(number, connection);
        }
        room
    }

    /// Delivers the next chunk of the stream. Returns its connection, or `None` if the chunk has
    /// not arrived.
    pub(super) fn deliver(&mut self) -> Option<usize> {
        let connection = self.held.remove(&self.next)?;
        self.next += 1;
        Some(connection)
    }
}
