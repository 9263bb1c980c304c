//! The send side of one stream.

use anabranch_policy::view::{SymbolId, SymbolSpace, TrafficClass};

use super::ring::Ring;
use super::segments::Segments;
use crate::wire::codec::MAX_VARINT;
use bytes::Bytes;

/// Bytes written and not yet copied into a symbol, and the state of those copied.
#[derive(Debug)]
pub(super) struct SendSide {
    pub(super) class: TrafficClass,
    /// Priority among the streams of its class, the highest first.
    pub(super) priority: i32,
    ring: Ring,
    /// Offset after the last byte in the ring. Later bytes are in `segments`.
    in_ring: u64,
    segments: Segments,
    /// Offset of the next byte to be copied into a symbol.
    pub(super) sent: u64,
    /// Offset after the last byte written.
    written: u64,
    /// The peer's credit, as the highest offset that may be sent.
    limit: u64,
    /// Whether the application has finished the stream.
    finished: bool,
    /// For each symbol space, the newest symbol with bytes of the stream, until the peer is known
    /// to have it.
    pub(super) newest: [Option<SymbolId>; SymbolSpace::ALL.len()],
    /// Whether a symbol carries the end of the stream.
    pub(super) fin_sent: bool,
    /// The code with which this side reset the stream.
    pub(super) reset: Option<u64>,
    /// The code with which the peer asked this side to stop sending.
    pub(super) stopped: Option<u64>,
    /// Whether nothing is left to send or to wait for.
    pub(super) done: bool,
    /// Whether the last write was incomplete because the application had more than the buffer
    /// holds.
    has_more: bool,
    /// Whether the application waits for space and has not been notified yet.
    pub(super) wants_space: bool,
    /// The stream's share of the totals of its class.
    pub(super) counted: Sendable,
    /// Whether the stream is in the queue of its class.
    pub(super) queued: bool,
}

/// Data that a stream could put into symbols, regardless of the connection's credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sendable {
    /// Bytes within the stream's credit.
    pub(super) data: u64,
    /// Whether the stream has only its end, without data, left to send.
    pub(super) lone_fin: bool,
    /// Whether the application has more to write.
    pub(super) more: bool,
}

impl Sendable {
    /// Whether the stream has nothing to put into symbols now.
    pub(super) const fn is_none(&self) -> bool {
        self.data == 0 && !self.lone_fin
    }
}

impl SendSide {
    pub(super) fn new(class: TrafficClass, limit: u64) -> Self {
        SendSide {
            class,
            priority: 0,
            ring: Ring::default(),
            in_ring: 0,
            segments: Segments::default(),
            sent: 0,
            written: 0,
            limit,
            finished: false,
            newest: [None; SymbolSpace::ALL.len()],
            fin_sent: false,
            reset: None,
            stopped: None,
            done: false,
            has_more: false,
            wants_space: false,
            counted: Sendable::default(),
            queued: false,
        }
    }

    /// Bytes in the buffer.
    pub(super) const fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Bytes of the buffer and of unsent chunks.
    pub(super) fn memory(&self) -> u64 {
        self.ring.capacity() + self.written.saturating_sub(self.in_ring.max(self.sent))
    }

    /// Whether the application may still write or finish.
    pub(super) const fn is_open(&self) -> bool {
        !self.finished && self.reset.is_none() && self.stopped.is_none()
    }

    pub(super) const fn sendable(&self) -> Sendable {
        if self.reset.is_some() || self.fin_sent {
            return Sendable { data: 0, lone_fin: false, more: false };
        }
        let unsent = self.unsent();
        let credit = self.credit();
        let data = if unsent < credit { unsent } else { credit };
        let more = self.has_more && self.is_open();
        Sendable { data, lone_fin: self.finished && unsent == 0, more }
    }

    /// Bytes that the peer's credit allows beyond those sent.
    pub(super) const fn credit(&self) -> u64 {
        self.limit.saturating_sub(self.sent)
    }

    /// Free space in a buffer of `capacity` bytes.
    pub(super) const fn space(&self, capacity: u64) -> u64 {
        let space = capacity.saturating_sub(self.unsent());
        let offsets = MAX_VARINT - self.written;
        if space < offsets { space } else { offsets }
    }

    /// Accepts as many bytes of `data` as fit into a buffer of `capacity` bytes. Returns their
    /// number.
    pub(super) fn write(&mut self, data: &[u8], capacity: u64) -> usize {
        let space = usize::try_from(self.space(capacity)).unwrap_or(usize::MAX);
        let taken = data.get(..space).unwrap_or(data);
        self.copy(taken);
        self.note_written(taken.len(), taken.len() < data.len())
    }

    /// Takes as many bytes from the front of `chunk` as fit into a buffer of `capacity` bytes.
    /// Returns their number. The bytes are kept by reference; only short pieces are copied.
    pub(super) fn write_chunk(&mut self, chunk: &mut Bytes, capacity: u64) -> usize {
        let space = usize::try_from(self.space(capacity)).unwrap_or(usize::MAX);
        let taken = chunk.split_to(space.min(chunk.len()));
        let length = taken.len();
        if Segments::copies(length) {
            self.copy(&taken);
        } else {
            self.segments.share(taken);
        }
        self.note_written(length, !chunk.is_empty())
    }

    /// Appends bytes, which must fit.
    fn copy(&mut self, bytes: &[u8]) {
        if !self.segments.is_empty() {
            return self.segments.copy(bytes);
        }
        let needed = self.unsent() + bytes.len() as u64;
        self.ring.ensure(self.sent, core::iter::once(self.sent..self.written), needed);
        self.ring.write(self.written, bytes);
        self.in_ring = self.written + bytes.len() as u64;
    }

    fn note_written(&mut self, length: usize, has_more: bool) -> usize {
        self.written += length as u64;
        self.has_more = has_more;
        self.wants_space = has_more;
        length
    }

    /// Ends the send side of a unidirectional stream of the peer, which never sends.
    pub(super) const fn end_unused(&mut self) {
        self.finished = true;
        self.fin_sent = true;
        self.done = true;
    }

    pub(super) const fn finish(&mut self) {
        self.finished = true;
    }

    /// Whether the stream ends `length` bytes after the last byte sent.
    pub(super) const fn ends_after(&self, length: u64) -> bool {
        self.finished && self.sent + length == self.written
    }

    /// Moves `out.len()` bytes (at most [`unsent`](Self::unsent)) from the buffer into `out`.
    pub(super) fn take(&mut self, out: &mut [u8]) {
        let in_ring = usize::try_from(self.in_ring.saturating_sub(self.sent)).unwrap_or(usize::MAX);
        if in_ring >= out.len() {
            self.ring.read(self.sent, out);
        } else {
            let (first, rest) = out.split_at_mut(in_ring);
            self.ring.read(self.sent, first);
            self.segments.take(rest);
        }
        self.sent += out.len() as u64;
        if self.sent == self.written {
            if self.finished {
                self.ring.release();
                self.segments.release();
            } else {
                self.ring.rewind(self.sent);
            }
        }
    }

    /// Raises the peer's credit.
    pub(super) fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Drops the buffered bytes. Returns their number.
    pub(super) fn discard(&mut self) -> u64 {
        let dropped = self.unsent();
        self.written = self.sent;
        self.ring.release();
        self.segments.release();
        dropped
    }
}
