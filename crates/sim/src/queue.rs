//! The queue in front of a link's transmitter. It decides which packets are accepted, marked or
//! dropped.
//!
//! The packet being serialised is not in the queue, as in ns-2 and ns-3.

mod codel;
mod config;
mod red;

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_types::{Bitrate, Ecn, Rng, Time};

pub use codel::{Codel, CodelConfig, CodelVerdict};
pub use config::{
    Discipline, NOMINAL_PACKET, QueueConfig, QueueConfigError, QueueLimit, RedConfig, RedSpacing,
    RedThresholds,
};
pub use red::{Red, RedVerdict};

/// A waiting packet.
#[derive(Clone, Debug)]
pub struct Packet<T> {
    /// The caller's handle.
    pub token: T,
    /// Size on the wire, bytes.
    pub size: u32,
    /// The ECN codepoint of the packet, after any marking so far.
    pub ecn: Ecn,
    /// When the packet arrived at the queue.
    pub arrived: Time,
}

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The buffer was full.
    Full,
    /// RED dropped the packet before the buffer was full.
    Early,
}

/// How a packet was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The packet waits unchanged.
    Unchanged,
    /// The packet waits, and the queue has marked it CE.
    Marked,
}

/// How long a transmitter has been idle, and its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Time since the transmitter's last packet left.
    pub lasted: Duration,
    /// The rate of the transmitter.
    pub rate: Bitrate,
}

/// Answer of a queue when the transmitter asks for a packet.
#[derive(Clone, Debug)]
pub enum Departure<T> {
    /// The packet is sent.
    Sent(Packet<T>),
    /// The packet is sent, and the queue has marked it CE.
    Marked(Packet<T>),
    /// The packet was dropped on departure. The transmitter should ask again.
    Dropped(Packet<T>),
}

/// A first-in, first-out queue with a limit and a discipline that decides on arrival or on departure.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    limit: QueueLimit,
    manager: Manager,
    waiting: VecDeque<Packet<T>>,
    bytes: u64,
}

/// The discipline with its state.
#[derive(Clone, Debug)]
enum Manager {
    DropTail,
    Red(Red),
    Codel(Codel),
}

/// Initial capacity in packets, so that short queues need no reallocation.
const INITIAL_CAPACITY: usize = 64;

impl<T> Queue<T> {
    /// An empty queue. `limit` is the actual limit, with defaults filled in. RED draws from
    /// `random`.
    ///
    /// # Errors
    /// When a parameter of `config` is out of its range.
    pub fn new(
        config: &QueueConfig,
        limit: QueueLimit,
        random: Rng,
    ) -> Result<Self, QueueConfigError> {
        config.validate()?;
        let manager = match &config.discipline {
            Discipline::DropTail => Manager::DropTail,
            Discipline::Red(red) => Manager::Red(Red::new(red, limit, random)),
            Discipline::Codel(codel) => Manager::Codel(Codel::new(*codel)),
        };
        Ok(Queue { limit, manager, waiting: VecDeque::with_capacity(INITIAL_CAPACITY), bytes: 0 })
    }

    /// Admits `packet`, or returns it with the reason for the refusal.
    ///
    /// `idle` says how long the transmitter has been idle; it is `None` if the transmitter is busy.
    /// An empty queue admits even a packet larger than the whole buffer.
    pub fn offer(
        &mut self,
        mut packet: Packet<T>,
        idle: Option<Idle>,
    ) -> Result<Admission, (Packet<T>, Refusal)> {
        let waiting = self.waiting.len() as u64;
        let full = waiting > 0 && self.limit.is_full(waiting, self.bytes, packet.size);
        let mut admission = Admission::Unchanged;
        let waiting = match self.limit {
            QueueLimit::Packets(_) => self.waiting.len() as f64,
            QueueLimit::Bytes(_) => self.bytes as f64 / f64::from(NOMINAL_PACKET),
        };
        if let Manager::Red(red) = &mut self.manager {
            match red.on_arrival(waiting, idle, packet.ecn.is_capable(), full) {
                RedVerdict::Admit => {}
                RedVerdict::Mark if packet.ecn == Ecn::Ce => {}
                RedVerdict::Mark => {
                    packet.ecn = Ecn::Ce;
                    admission = Admission::Marked;
                }
                RedVerdict::Drop if full => return Err((packet, Refusal::Full)),
                RedVerdict::Drop => return Err((packet, Refusal::Early)),
            }
        } else if full {
            return Err((packet, Refusal::Full));
        }
        if let Manager::Codel(codel) = &mut self.manager {
            codel.on_arrival(packet.size);
        }
        self.bytes += u64::from(packet.size);
        self.waiting.push_back(packet);
        Ok(admission)
    }

    /// Dequeues the packet at the head for the transmitter at `now`, or drops it on departure. `None` if the
    /// queue is empty.
    pub fn depart(&mut self, now: Time) -> Option<Departure<T>> {
        let Some(mut packet) = self.pop() else {
            if let Manager::Codel(codel) = &mut self.manager {
                codel.on_empty();
            }
            return None;
        };
        let Manager::Codel(codel) = &mut self.manager else { return Some(Departure::Sent(packet)) };
        let sojourn = now.since(packet.arrived);
        Some(match codel.on_departure(now, sojourn, self.bytes, packet.ecn.is_capable()) {
            CodelVerdict::Pass => Departure::Sent(packet),
            CodelVerdict::Mark if packet.ecn == Ecn::Ce => Departure::Sent(packet),
            CodelVerdict::Mark => {
                packet.ecn = Ecn::Ce;
                Departure::Marked(packet)
            }
            CodelVerdict::Drop => Departure::Dropped(packet),
        })
    }

    /// Dequeues the packet at the head without asking the discipline.
    pub fn pop(&mut self) -> Option<Packet<T>> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Whether packets may be dropped as they depart.
    pub fn drops_on_departure(&self) -> bool {
        matches!(self.manager, Manager::Codel(_))
    }

    /// Packets waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The limit of the queue.
    pub fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// RED's state, if that is the discipline.
    pub fn red(&self) -> Option<&Red> {
        match &self.manager {
            Manager::Red(red) => Some(red),
            _ => None,
        }
    }

    /// CoDel's state, if that is the discipline.
    pub fn codel(&self) -> Option<&Codel> {
        match &self.manager {
            Manager::Codel(codel) => Some(codel),
            _ => None,
        }
    }
}
