use core::time::Duration;

use anabranch_types::{Bitrate, Time};

use crate::queue::Packet;

/// Puts packets on the wire one after another at the link's rate, to the nanosecond and without
/// drift: the part of a nanosecond that a packet ends early is charged to the next one of the same
/// busy period.
#[derive(Clone, Debug)]
pub(super) struct Transmitter<T> {
    in_service: Option<(Packet<T>, Time)>,
    /// When the last packet left.
    free_at: Time,
    /// What the last packet's end was rounded down by, in units of 1 / `carry_rate` nanoseconds.
    carry: u64,
    carry_rate: u64,
}

/// Bit-nanoseconds per byte-second: a byte takes this many units of 1 / rate nanoseconds.
const UNITS_PER_BYTE: u64 = 8_000_000_000;

impl<T> Transmitter<T> {
    pub(super) fn new() -> Self {
        Transmitter { in_service: None, free_at: Time::ZERO, carry: 0, carry_rate: 0 }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_service.is_none()
    }

    /// When the last packet left; the start of the idle time if idle.
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// When the packet in service will have left.
    pub(super) fn finish(&self) -> Option<Time> {
        self.in_service.as_ref().map(|(_, finish)| *finish)
    }

    /// Starts on `packet` as soon as the last one has left and not before `now`. `rate` is not zero.
    pub(super) fn start(&mut self, packet: Packet<T>, now: Time, rate: Bitrate) {
        let rate = rate.as_bps().max(1);
        let start = self.free_at.max(now);
        if now > self.free_at {
            self.carry = 0;
        } else if self.carry_rate != rate {
            let carry = u128::from(self.carry) * u128::from(rate);
            self.carry = (carry / u128::from(self.carry_rate.max(1))) as u64;
        }
        let units =
            u64::from(packet.size).saturating_mul(UNITS_PER_BYTE).saturating_add(self.carry);
        self.carry = units % rate;
        self.carry_rate = rate;
        self.in_service = Some((packet, start + Duration::from_nanos(units / rate)));
    }

    /// Starts on `packet`, which will have left at `finish`, whatever the rate.
    pub(super) fn start_until(&mut self, packet: Packet<T>, finish: Time) {
        self.carry = 0;
        self.in_service = Some((packet, finish));
    }

    /// Takes the packet in service with the time it has left at.
    pub(super) fn complete(&mut self) -> Option<(Packet<T>, Time)> {
        let (packet, finish) = self.in_service.take()?;
        self.free_at = finish;
        Some((packet, finish))
    }

    /// Gives up the packet in service at `now`.
    pub(super) fn abort(&mut self, now: Time) -> Option<Packet<T>> {
        let (packet, _) = self.in_service.take()?;
        self.free_at = now;
        self.carry = 0;
        Some(packet)
    }
}
