//! Datagrams: a bounded queue in one buffer, and the calls of the application.

use std::collections::VecDeque;

use anabranch_policy::view::TrafficClass;

use super::{StreamError, Streams};

/// Bytes that each queued datagram counts in addition to its length, so that the number of empty
/// datagrams is bounded too.
pub const DATAGRAM_COST: usize = 16;

/// First-in-first-out queue. The sum of the lengths plus a fixed cost per entry is bounded.
#[derive(Debug, Default)]
pub(super) struct DatagramQueue {
    lengths: VecDeque<usize>,
    bytes: VecDeque<u8>,
    capacity: usize,
}

impl DatagramQueue {
    /// Creates an empty queue of `capacity` bytes.
    pub(super) const fn new(capacity: usize) -> Self {
        DatagramQueue { lengths: VecDeque::new(), bytes: VecDeque::new(), capacity }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes in use, as the sum of lengths and costs.
    pub(super) fn cost(&self) -> usize {
        self.bytes.len() + self.lengths.len() * DATAGRAM_COST
    }

    /// Allocated bytes.
    pub(super) fn memory(&self) -> u64 {
        (self.bytes.capacity() + self.lengths.capacity() * size_of::<usize>()) as u64
    }

    /// Free bytes. Each datagram takes its length and [`DATAGRAM_COST`].
    pub(super) fn space(&self) -> usize {
        self.capacity.saturating_sub(self.cost())
    }

    /// Whether a datagram of `length` bytes fits now.
    pub(super) fn has_space(&self, length: usize) -> bool {
        length.saturating_add(DATAGRAM_COST) <= self.space()
    }

    /// Whether a datagram of `length` bytes would fit into the empty queue.
    pub(super) const fn could_hold(&self, length: usize) -> bool {
        length.saturating_add(DATAGRAM_COST) <= self.capacity
    }

    /// Appends a datagram if there is space. Returns whether there was.
    pub(super) fn push(&mut self, datagram: &[u8]) -> bool {
        let space = self.has_space(datagram.len());
        if space {
            self.lengths.push_back(datagram.len());
            self.bytes.extend(datagram);
        }
        space
    }

    /// Length of the next datagram.
    pub(super) fn next_length(&self) -> Option<usize> {
        self.lengths.front().copied()
    }

    /// Removes the next datagram, copies as much of it as fits into `out`, and returns its length.
    pub(super) fn pop(&mut self, out: &mut [u8]) -> Option<usize> {
        let length = self.lengths.pop_front()?;
        let (front, back) = self.bytes.as_slices();
        let copied = length.min(out.len());
        let (first, second) = out.split_at_mut(copied.min(front.len()));
        if let Some(source) = front.get(..first.len()) {
            first.copy_from_slice(source);
        }
        let left = copied - first.len();
        if let (Some(target), Some(source)) = (second.get_mut(..left), back.get(..left)) {
            target.copy_from_slice(source);
        }
        self.bytes.drain(..length.min(self.bytes.len()));
        Some(length)
    }
}

impl Streams {
    /// Sets the longest datagram that [`send_datagram`](Self::send_datagram) accepts, bytes: the
    /// size of a symbol minus the overhead of [`datagram_len`](crate::wire::symbol::datagram_len).
    /// The initial value is 1024.
    pub fn set_datagram_limit(&mut self, limit: usize) {
        self.datagram_limit = limit;
    }

    /// The longest datagram that can be sent now, bytes.
    pub const fn datagram_limit(&self) -> usize {
        self.datagram_limit
    }

    /// Free bytes in the datagram send queue of a class. Each datagram takes its length and
    /// [`DATAGRAM_COST`].
    pub fn datagram_space(&self, class: TrafficClass) -> usize {
        self.classes[class as usize].datagrams.space()
    }

    /// Queues a datagram, which is sent whole in one symbol.
    pub fn send_datagram(&mut self, data: &[u8], class: TrafficClass) -> Result<(), StreamError> {
        let queue = &mut self.classes[class as usize].datagrams;
        if data.len() > self.datagram_limit || !queue.could_hold(data.len()) {
            return Err(StreamError::TooLong);
        }
        if !queue.push(data) {
            self.wants_datagram = true;
            return Err(StreamError::Full);
        }
        Ok(())
    }

    /// Takes the oldest datagram received, copies as much of it as fits into `buffer`, and returns its
    /// whole length.
    pub fn recv_datagram(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.incoming.pop(buffer)
    }

    /// Number of datagrams dropped because the receive queue was full (the oldest is dropped) or
    /// because they no longer fit into a symbol.
    pub const fn datagrams_dropped(&self) -> u64 {
        self.datagrams_dropped
    }
}
