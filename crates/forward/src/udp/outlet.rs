//! Sends the datagrams of a request: whole if they fit into a packet, else in pieces.

use core::sync::atomic::{AtomicU64, Ordering};

use anabranch::{Connection, DATAGRAM_COST, DatagramError, TrafficClass};

use super::counts::{DatagramCounters, Dropped};
use super::frame::{Head, MAX_PIECES, Piece};

/// A connection's datagrams of one request.
pub(super) struct Outlet {
    connection: Connection,
    /// The id of the request's stream.
    pub(super) stream: u64,
    /// How the datagrams want to be treated.
    class: TrafficClass,
    counters: DatagramCounters,
    /// Number of the next datagram that is sent in pieces.
    next: AtomicU64,
}

impl Outlet {
    pub(super) fn new(
        connection: Connection,
        stream: u64,
        class: TrafficClass,
        counters: DatagramCounters,
    ) -> Self {
        Outlet { connection, stream, class, counters, next: AtomicU64::new(0) }
    }

    /// Sends the first `len` bytes of payload in a [`buffer`](super::frame::buffer) as a datagram of `flow`, if there is
    /// room, and counts it. The buffer's contents are lost.
    pub(super) fn send(&self, flow: u64, buffer: &mut [u8], len: usize) {
        let whole = Head { stream: self.stream, flow, piece: None };
        let sent = match self.send_part(whole, buffer, (0, len)) {
            Err(DatagramError::TooLong) => self.send_pieces(whole, buffer, len),
            sent => sent,
        };
        match sent {
            Ok(()) => self.counters.sent(len),
            Err(DatagramError::TooLong) => self.counters.dropped(Dropped::Failed),
            Err(DatagramError::Full) => self.counters.dropped(Dropped::NoRoom),
            Err(_) => self.counters.dropped(Dropped::NotConnected),
        }
    }

    /// Sends as few pieces as carry the payload, all about equally long.
    fn send_pieces(&self, whole: Head, buffer: &mut [u8], len: usize) -> Result<(), DatagramError> {
        // If the connection has ended, sending returns that error.
        let limit = self.connection.max_datagram_size().unwrap_or(usize::MAX);
        let space = self.connection.datagram_send_buffer_space(self.class).unwrap_or(usize::MAX);
        let datagram = self.next.fetch_add(1, Ordering::Relaxed);
        let head = |place, last| Head { piece: Some(Piece { datagram, place, last }), ..whole };
        let overhead = head(0, false).len();
        let count = len.div_ceil(limit.saturating_sub(overhead).max(1));
        if count > MAX_PIECES {
            return Err(DatagramError::TooLong);
        }
        // Without room for all pieces none is sent: the others would be of no use.
        if space < len + count * (overhead + DATAGRAM_COST) {
            return Err(DatagramError::Full);
        }
        let size = len.div_ceil(count);
        for place in 0..count {
            let start = place * size;
            let end = len.min(start + size);
            // A piece's head is written over the end of the one before, which has been queued.
            self.send_part(head(place, place + 1 == count), buffer, (start, end - start))?;
        }
        Ok(())
    }

    fn send_part(
        &self,
        head: Head,
        buffer: &mut [u8],
        (at, len): (usize, usize),
    ) -> Result<(), DatagramError> {
        let part = head.before(buffer, at, len).ok_or(DatagramError::TooLong)?;
        self.connection.try_send_datagram(part, self.class)
    }
}
