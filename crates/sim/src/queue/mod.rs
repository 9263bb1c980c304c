//! The waiting room before a link's transmitter: what is let in, marked or refused.
//!
//! The packet being serialised is not in the queue, as in ns-2 and ns-3.

mod config;
mod red;

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_types::{Bitrate, Rng};

pub use config::{
    Discipline, NOMINAL_PACKET, QueueConfig, QueueConfigError, QueueLimit, RedConfig, RedThresholds,
};
pub use red::{Red, RedVerdict};

use crate::link::Ecn;

/// A packet that waits.
#[derive(Clone, Debug)]
pub struct Packet<T> {
    /// The caller's handle.
    pub token: T,
    /// Bytes on the wire.
    pub size: u32,
    /// The codepoint it carries, after any marking so far.
    pub ecn: Ecn,
}

/// Why a packet was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The buffer had no room.
    Full,
    /// RED dropped it.
    Early,
}

/// What became of an admitted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It waits as it came.
    Unchanged,
    /// It waits, newly marked as having met congestion.
    Marked,
}

/// How long a transmitter has been idle, and what it could have sent meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Since its last packet left.
    pub lasted: Duration,
    /// Its rate.
    pub rate: Bitrate,
}

/// A first-in, first-out queue with a limit and a discipline that decides on arrival.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    limit: QueueLimit,
    red: Option<Red>,
    waiting: VecDeque<Packet<T>>,
    bytes: u64,
}

/// Room kept from the start, so that short queues never grow their ring.
const INITIAL_CAPACITY: usize = 64;

impl<T> Queue<T> {
    /// An empty queue. `limit` is the resolved limit; `random` serves RED's draws.
    ///
    /// # Errors
    /// When `config` has parameters out of range.
    pub fn new(
        config: &QueueConfig,
        limit: QueueLimit,
        random: Rng,
    ) -> Result<Self, QueueConfigError> {
        config.validate()?;
        let red = match &config.discipline {
            Discipline::DropTail => None,
            Discipline::Red(red) => Some(Red::new(red, limit, random)),
        };
        Ok(Queue { limit, red, waiting: VecDeque::with_capacity(INITIAL_CAPACITY), bytes: 0 })
    }

    /// Lets `packet` in, or hands it back with the reason.
    ///
    /// `idle` says for how long the transmitter has had nothing to do, `None` if it is busy. A packet
    /// larger than the whole buffer is let into an empty queue.
    pub fn offer(
        &mut self,
        mut packet: Packet<T>,
        idle: Option<Idle>,
    ) -> Result<Admission, (Packet<T>, Refusal)> {
        let full = !self.waiting.is_empty() && self.is_full_for(packet.size);
        let mut admission = Admission::Unchanged;
        let waiting = match self.limit {
            QueueLimit::Packets(_) => self.waiting.len() as f64,
            QueueLimit::Bytes(_) => self.bytes as f64 / f64::from(NOMINAL_PACKET),
        };
        if let Some(red) = &mut self.red {
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
        self.bytes += u64::from(packet.size);
        self.waiting.push_back(packet);
        Ok(admission)
    }

    /// Takes the packet that has waited longest.
    pub fn pop(&mut self) -> Option<Packet<T>> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Packets waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The limit in force.
    pub fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// RED's state, if that is the discipline.
    pub fn red(&self) -> Option<&Red> {
        self.red.as_ref()
    }

    fn is_full_for(&self, size: u32) -> bool {
        match self.limit {
            QueueLimit::Bytes(limit) => self.bytes + u64::from(size) > limit.as_bytes(),
            QueueLimit::Packets(limit) => self.waiting.len() >= limit as usize,
        }
    }
}
