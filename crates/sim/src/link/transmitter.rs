use core::time::Duration;

use anabranch_types::{Bitrate, Time};

use super::serialiser::Serialiser;
use crate::queue::Packet;

/// Serialises packets one after another at the link's rate.
#[derive(Clone, Debug)]
pub(super) struct Transmitter<T> {
    in_service: Option<(Packet<T>, Time)>,
    /// When the last bit of the last packet left.
    free_at: Time,
    serialiser: Serialiser,
}

impl<T> Transmitter<T> {
    pub(super) fn new() -> Self {
        Transmitter { in_service: None, free_at: Time::ZERO, serialiser: Serialiser::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_service.is_none()
    }

    /// When the last bit of the last packet left. If the transmitter is idle, it has been so since
    /// then.
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// When the last bit of the packet in service leaves; `None` if idle.
    pub(super) fn finish(&self) -> Option<Time> {
        self.in_service.as_ref().map(|(_, finish)| *finish)
    }

    /// Starts to serialise `packet` when the last packet has left, but not before `now`. `rate`
    /// must not be zero.
    pub(super) fn start(&mut self, packet: Packet<T>, now: Time, rate: Bitrate) {
        let start = self.free_at.max(now);
        let nanos = self.serialiser.nanos(packet.size, rate, now > self.free_at);
        self.in_service = Some((packet, start + Duration::from_nanos(nanos)));
    }

    /// Starts to serialise `packet`, whose last bit leaves at `finish`, whatever the rate.
    pub(super) fn start_until(&mut self, packet: Packet<T>, finish: Time) {
        self.serialiser.reset();
        self.in_service = Some((packet, finish));
    }

    /// Takes out the packet in service, and returns it with the time at which its last bit left.
    pub(super) fn complete(&mut self) -> Option<(Packet<T>, Time)> {
        let (packet, finish) = self.in_service.take()?;
        self.free_at = finish;
        Some((packet, finish))
    }

    /// Stops serialising at `now`. Returns the unfinished packet, if there is one.
    pub(super) fn abort(&mut self, now: Time) -> Option<Packet<T>> {
        let (packet, _) = self.in_service.take()?;
        self.free_at = now;
        self.serialiser.reset();
        Some(packet)
    }
}
