use std::net::SocketAddr;

use anabranch_sim::link::{Link, LinkConfig, LinkConfigError, LinkOutput};
use anabranch_types::{Ecn, Time};

use crate::egress::Egress;
use crate::lateness::Lateness;
use crate::socket::Socket;
use crate::stats::DirectionStats;

/// One link of a path with the datagrams inside it.
#[derive(Debug)]
pub(crate) struct Direction {
    link: Link<Vec<u8>>,
    /// Buffers to use again; never more than were inside the link at once.
    spare: Vec<Vec<u8>>,
    lateness: Lateness,
    unsent: u64,
    /// The link's capacity integral when the relay's first datagram arrived.
    capacity_before: Option<f64>,
}

/// What IPv4 and UDP add to a payload.
const HEADER_BYTES: u32 = 28;

impl Direction {
    pub(crate) fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<Self, LinkConfigError> {
        Ok(Direction {
            link: Link::new(config, seed, name)?,
            spare: Vec::new(),
            lateness: Lateness::new(),
            unsent: 0,
            capacity_before: None,
        })
    }

    /// Takes in a datagram that arrived at `now`.
    pub(crate) fn arrive(&mut self, now: Time, payload: &[u8], ecn: Ecn) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(payload);
        // A UDP payload is shorter than 2^16.
        let size = payload.len() as u32 + HEADER_BYTES;
        if let Err(dropped) = self.link.enqueue(now, size, ecn, buffer) {
            self.spare.push(dropped.token);
        }
    }

    /// Sends on what is due at `now`, to `to` if anyone is known there.
    pub(crate) fn release(
        &mut self,
        now: Time,
        egress: &mut Egress,
        socket: &Socket,
        to: Option<SocketAddr>,
    ) {
        let Direction { link, spare, lateness, unsent, .. } = self;
        link.advance(now, |output| {
            let buffer = match output {
                LinkOutput::Dropped(dropped) => dropped.token,
                LinkOutput::Delivered(delivery) => {
                    lateness.record(now.since(delivery.time));
                    *unsent += match to {
                        Some(to) => egress.push(socket, to, delivery.ecn, &delivery.token),
                        None => 1,
                    };
                    delivery.token
                }
            };
            spare.push(buffer);
        });
        if let Some(to) = to {
            *unsent += egress.flush(socket, to);
        }
    }

    /// When something may next be due; `Time::MAX` for not before another arrival.
    pub(crate) fn next_event(&self) -> Time {
        self.link.next_event().unwrap_or(Time::MAX)
    }

    /// Starts the capacity integral at `now`.
    pub(crate) fn start_capacity(&mut self, now: Time) {
        self.capacity_before = Some(self.link.capacity_bits(now));
    }

    /// Bits deliverable in `[from, to)`.
    pub(crate) fn capacity_bits(&self, from: Time, to: Time) -> f64 {
        self.link.capacity_integral(from, to)
    }

    pub(crate) fn stats(&mut self, now: Time) -> DirectionStats {
        let loss_state = self.link.loss_state(now);
        let capacity_bits = match self.capacity_before {
            Some(before) => self.link.capacity_bits(now) - before,
            None => 0.0,
        };
        DirectionStats {
            link: *self.link.counters(),
            rate: self.link.rate(),
            loss_state,
            queue_bytes: self.link.queue().bytes(),
            capacity_bits,
            unsent: self.unsent,
            lateness: self.lateness.clone(),
        }
    }
}
