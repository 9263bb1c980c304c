//! Where the datagrams of a request leave: whole where they fit into a packet, else in pieces.

use core::sync::atomic::{AtomicU64, Ordering};

use anabranch::{Connection, DATAGRAM_COST, DatagramError, TrafficClass};

use super::counts::{DatagramCounters, Dropped};
use super::frame::{Head, MAX_PIECES, Piece};

/// That of the TCP connections' bytes, so that both take turns.
const CLASS: TrafficClass = TrafficClass::Bulk;

/// A connection's datagrams of one request.
pub(super) struct Outlet {
    pub(super) connection: Connection,
    /// The id of the request's stream.
    pub(super) stream: u64,
    counters: DatagramCounters,
    /// Number of the next datagram that is sent in pieces.
    next: AtomicU64,
}

impl Outlet {
    pub(super) fn new(connection: Connection, stream: u64, counters: DatagramCounters) -> Self {
        Outlet { connection, stream, counters, next: AtomicU64::new(0) }
    }

    /// Sends the first `len` bytes of payload in a [`buffer`](super::frame::buffer) as a datagram of `flow`, if there is
    /// room, and counts it. The buffer's contents are lost.
    pub(super) fn send(&self, flow: u64, buffer: &mut [u8], len: usize) {
        match self.try_send(flow, buffer, len) {
            Ok(()) => self.counters.sent(len),
            Err(why) => self.counters.dropped(why),
        }
    }

    fn try_send(&self, flow: u64, buffer: &mut [u8], len: usize) -> Result<(), Dropped> {
        let limit = self.connection.max_datagram_size().ok_or(Dropped::NotConnected)?;
        let whole = Head { stream: self.stream, flow, piece: None };
        if whole.len() + len <= limit {
            return self.send_part(whole, buffer, (0, len));
        }
        let datagram = self.next.fetch_add(1, Ordering::Relaxed);
        let head = |place, last| Head { piece: Some(Piece { datagram, place, last }), ..whole };
        let overhead = head(0, false).len();
        let count = len.div_ceil(limit.saturating_sub(overhead).max(1));
        if count > MAX_PIECES {
            return Err(Dropped::Failed);
        }
        // Without room for all pieces none is sent: the others would be of no use.
        let space = self.connection.datagram_send_buffer_space(CLASS);
        if space.ok_or(Dropped::NotConnected)? < len + count * (overhead + DATAGRAM_COST) {
            return Err(Dropped::NoRoom);
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
    ) -> Result<(), Dropped> {
        let part = head.before(buffer, at, len).ok_or(Dropped::Failed)?;
        self.connection.try_send_datagram(part, CLASS).map_err(|error| match error {
            DatagramError::TooLong => Dropped::Failed,
            DatagramError::Full => Dropped::NoRoom,
            _ => Dropped::NotConnected,
        })
    }
}
