//! Datagrams: a bounded queue in one contiguous buffer, and what the application does with them.

use std::collections::VecDeque;

use anabranch_policy::view::TrafficClass;

use super::{StreamError, Streams};

/// Bytes that a queued datagram counts for besides its own, so that empty ones are bounded too.
pub const DATAGRAM_COST: usize = 16;

/// First in, first out; bounded by the sum of lengths and of a fixed cost per entry.
#[derive(Debug, Default)]
pub(super) struct DatagramQueue {
    lengths: VecDeque<usize>,
    bytes: VecDeque<u8>,
    capacity: usize,
}

impl DatagramQueue {
    /// An empty queue for `capacity` bytes.
    pub(super) const fn new(capacity: usize) -> Self {
        DatagramQueue { lengths: VecDeque::new(), bytes: VecDeque::new(), capacity }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes that the queue counts for: lengths and costs.
    pub(super) fn cost(&self) -> usize {
        self.bytes.len() + self.lengths.len() * DATAGRAM_COST
    }

    /// Bytes of the buffers.
    pub(super) fn memory(&self) -> u64 {
        (self.bytes.capacity() + self.lengths.capacity() * size_of::<usize>()) as u64
    }

    /// Free bytes. Each datagram takes its length and [`DATAGRAM_COST`].
    pub(super) fn space(&self) -> usize {
        self.capacity.saturating_sub(self.cost())
    }

    /// Whether a datagram of `length` would be taken.
    pub(super) fn has_space(&self, length: usize) -> bool {
        length.saturating_add(DATAGRAM_COST) <= self.space()
    }

    /// Whether a datagram of `length` would be taken if the queue were empty.
    pub(super) const fn could_hold(&self, length: usize) -> bool {
        length.saturating_add(DATAGRAM_COST) <= self.capacity
    }

    /// Appends a datagram, unless there is no space.
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
    /// The longest datagram that [`send_datagram`](Self::send_datagram) takes, bytes: what a symbol
    /// holds, less [`datagram_len`](crate::wire::symbol::datagram_len)'s overhead. At first 1024.
    pub fn set_datagram_limit(&mut self, limit: usize) {
        self.datagram_limit = limit;
    }

    /// The longest datagram that can be sent now, bytes.
    pub const fn datagram_limit(&self) -> usize {
        self.datagram_limit
    }

    /// Bytes free in the send queue of a class's datagrams. Each takes its length and
    /// [`DATAGRAM_COST`].
    pub fn datagram_space(&self, class: TrafficClass) -> usize {
        self.classes[class as usize].datagrams.space()
    }

    /// Queues a datagram; it travels whole, in one symbol.
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

    /// Datagrams dropped because the receive queue was full (the oldest goes) or because they
    /// outgrew the symbol.
    pub const fn datagrams_dropped(&self) -> u64 {
        self.datagrams_dropped
    }
}
