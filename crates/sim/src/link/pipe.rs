use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use anabranch_types::Time;

use crate::queue::Packet;

/// Packets that have left the transmitter but not yet arrived.
#[derive(Clone, Debug)]
pub(super) enum Pipe<T> {
    /// Packets arrive in the order of departure.
    InOrder(VecDeque<Flying<T>>),
    /// Packets arrive in the order of their arrival times, so they may overtake each other.
    Reordering { heap: BinaryHeap<Flying<T>>, sequence: u64 },
}

/// A packet that propagates.
#[derive(Clone, Debug)]
pub(super) struct Flying<T> {
    pub(super) arrival: Time,
    pub(super) packet: Packet<T>,
    /// Whether the packet was lost at random, which is reported at its arrival time.
    pub(super) lost: bool,
    sequence: u64,
}

impl<T> Pipe<T> {
    pub(super) fn new(reordering: bool) -> Self {
        if reordering {
            Pipe::Reordering { heap: BinaryHeap::new(), sequence: 0 }
        } else {
            Pipe::InOrder(VecDeque::new())
        }
    }

    /// Adds `packet`, which arrives at `arrival`. If order is kept and the packet before it arrives
    /// later, both arrive together.
    pub(super) fn push(&mut self, packet: Packet<T>, arrival: Time, lost: bool) {
        match self {
            Pipe::InOrder(ring) => {
                let arrival = ring.back().map_or(arrival, |last| arrival.max(last.arrival));
                ring.push_back(Flying { arrival, packet, lost, sequence: 0 });
            }
            Pipe::Reordering { heap, sequence } => {
                *sequence += 1;
                heap.push(Flying { arrival, packet, lost, sequence: *sequence });
            }
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Time> {
        match self {
            Pipe::InOrder(ring) => ring.front().map(|flying| flying.arrival),
            Pipe::Reordering { heap, .. } => heap.peek().map(|flying| flying.arrival),
        }
    }

    pub(super) fn pop_arrived(&mut self, now: Time) -> Option<Flying<T>> {
        if self.next_arrival()? > now {
            return None;
        }
        match self {
            Pipe::InOrder(ring) => ring.pop_front(),
            Pipe::Reordering { heap, .. } => heap.pop(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Pipe::InOrder(ring) => ring.len(),
            Pipe::Reordering { heap, .. } => heap.len(),
        }
    }
}

/// The order is reversed, because `BinaryHeap` returns the greatest element first and the earliest
/// packet is wanted.
impl<T> Ord for Flying<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.arrival, other.sequence).cmp(&(self.arrival, self.sequence))
    }
}

impl<T> PartialOrd for Flying<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flying<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Flying<T> {}
