use anabranch_types::{Bitrate, Time};

use super::packet::{NONE, Packet, Slab};
use crate::link::LinkConfig;
use crate::loss::{LossConfig, LossModel, LossProcess};
use crate::queue::{Discipline, QueueLimit};

/// Nanoseconds that a byte takes at a bit per second.
const UNITS_PER_BYTE: u64 = 8_000_000_000;

/// A link of constant rate and delay with a drop-tail queue: what a packet will do is known when it
/// comes in, so it costs one event and no memory but its own.
///
/// It behaves as [`Link`](crate::link::Link) does, draw for draw and to the nanosecond. The packets
/// inside, propagating ones included, are a list through the slab in the order of arrival.
#[derive(Debug)]
pub(super) struct Plain {
    first: u32,
    last: u32,
    /// The first packet inside whose last bit had not left when that was last looked at.
    serving: u32,
    /// Packets behind that one.
    waiting: u32,
    bytes_waiting: u64,
    free_at: u64,
    /// Nanoseconds per byte if that is a whole number, else 0.
    per_byte: u64,
    /// What the last end of service was rounded down by, in units of 1 / rate nanoseconds.
    carry: u64,
    delay: u64,
    delivered: u64,
    bytes_delivered: u64,
    most_bytes: u64,
    most_packets: u32,
    dropped_full: u32,
    bytes_dropped: u64,
    rate: u64,
    loss: Option<Box<Losses>>,
}

/// The random losses of a link that has them.
#[derive(Debug)]
struct Losses {
    process: LossProcess,
    packets: u64,
    bytes: u64,
}

/// What a [`Plain`] link has done, in the terms of [`LinkCounters`](crate::link::LinkCounters).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) delivered: u64,
    pub(super) bytes_delivered: u64,
    pub(super) dropped_full: u64,
    pub(super) bytes_dropped: u64,
    pub(super) lost: u64,
    pub(super) bytes_lost: u64,
}

impl Plain {
    /// A link as `config` describes it, or `None` if it takes more than this.
    pub(super) fn new(config: &LinkConfig, seed: u64, name: &str) -> Option<Self> {
        let simple = config.is_steady()
            && config.jitter.max.is_zero()
            && config.queue.discipline == Discipline::DropTail
            && matches!(config.loss, LossConfig::None | LossConfig::Bernoulli(_));
        let rate = config.rate.at(Time::ZERO);
        if !simple || rate == Bitrate::ZERO {
            return None;
        }
        let loss = match &config.loss {
            LossConfig::None => None,
            some => {
                let process = LossProcess::new(some, seed, &format!("link.{name}.loss")).ok()?;
                Some(Box::new(Losses { process, packets: 0, bytes: 0 }))
            }
        };
        let (most_packets, most_bytes) = match config.buffer() {
            QueueLimit::Packets(packets) => (packets, u64::MAX),
            QueueLimit::Bytes(bytes) => (u32::MAX, bytes.as_bytes()),
        };
        let rate = rate.as_bps();
        let exact = UNITS_PER_BYTE.is_multiple_of(rate);
        Some(Plain {
            first: NONE,
            last: NONE,
            serving: NONE,
            waiting: 0,
            bytes_waiting: 0,
            free_at: 0,
            per_byte: if exact { UNITS_PER_BYTE / rate } else { 0 },
            carry: 0,
            delay: config.delay.as_nanos() as u64,
            delivered: 0,
            bytes_delivered: 0,
            most_bytes,
            most_packets,
            dropped_full: 0,
            bytes_dropped: 0,
            rate,
            loss,
        })
    }

    /// Takes a packet in at `now`, unless the queue is full. If the link was empty, the result says
    /// when the packet will arrive.
    #[inline]
    pub(super) fn offer(&mut self, packets: &mut Slab, handle: u32, now: Time) -> Offer {
        let now = now.as_nanos();
        let size = packets.packet(handle).size;
        let start = if self.free_at <= now {
            if self.free_at < now {
                self.carry = 0;
            }
            self.serving = handle;
            self.waiting = 0;
            self.bytes_waiting = 0;
            now
        } else {
            self.catch_up(packets, now);
            if self.waiting > 0 && self.is_full_for(size) {
                self.dropped_full += 1;
                self.bytes_dropped += u64::from(size);
                return Offer::Refused;
            }
            self.waiting += 1;
            self.bytes_waiting += u64::from(size);
            self.free_at
        };
        let finish = start + self.serialisation(size);
        self.free_at = finish;
        let packet = packets.packet_mut(handle);
        packet.finish = finish;
        packet.next = NONE;
        let before = core::mem::replace(&mut self.last, handle);
        if before == NONE {
            self.first = handle;
            return Offer::First(Time::from_nanos(finish + self.delay));
        }
        packets.packet_mut(before).next = handle;
        Offer::Behind
    }

    /// Takes out the packet that arrives next, and whether it was lost on the way; then, when the one
    /// behind it will arrive.
    #[inline]
    pub(super) fn take(&mut self, packets: &mut Slab) -> Option<Taken> {
        let handle = self.first;
        if handle == NONE {
            return None;
        }
        let Packet { next, size, finish, .. } = *packets.packet(handle);
        let size = u64::from(size);
        self.first = next;
        let mut following = None;
        if next == NONE {
            self.last = NONE;
        } else {
            let behind = packets.packet(next);
            following = Some(Time::from_nanos(behind.finish + self.delay));
        }
        if self.serving == handle {
            self.serve(packets, next);
        }
        let lost = match &mut self.loss {
            None => false,
            Some(losses) => {
                let lost = losses.process.is_lost(Time::from_nanos(finish));
                losses.packets += u64::from(lost);
                losses.bytes += if lost { size } else { 0 };
                lost
            }
        };
        if !lost {
            self.delivered += 1;
            self.bytes_delivered += size;
        }
        Some(Taken { handle, lost, following })
    }

    /// Packets and bytes that wait at `now`, the one being serialised not among them.
    pub(super) fn waiting(&self, packets: &Slab, now: Time) -> (u64, u64) {
        let (mut waiting, mut bytes) = (self.waiting, self.bytes_waiting);
        let mut serving = self.serving;
        while waiting > 0 && packets.packet(serving).finish <= now.as_nanos() {
            serving = packets.packet(serving).next;
            waiting -= 1;
            bytes -= u64::from(packets.packet(serving).size);
        }
        (u64::from(waiting), bytes)
    }

    /// Packets inside and their bytes; then those among them whose last bit has left by `now`.
    pub(super) fn inside(&self, packets: &Slab, now: Time) -> [u64; 4] {
        let mut sums = [0; 4];
        let mut handle = self.first;
        while handle != NONE {
            let packet = packets.packet(handle);
            sums[0] += 1;
            sums[1] += u64::from(packet.size);
            if packet.finish <= now.as_nanos() {
                sums[2] += 1;
                sums[3] += u64::from(packet.size);
            }
            handle = packet.next;
        }
        sums
    }

    pub(super) fn tally(&self) -> Tally {
        let losses = self.loss.as_ref().map(|losses| (losses.packets, losses.bytes));
        let (lost, bytes_lost) = losses.unwrap_or_default();
        Tally {
            delivered: self.delivered,
            bytes_delivered: self.bytes_delivered,
            dropped_full: u64::from(self.dropped_full),
            bytes_dropped: self.bytes_dropped,
            lost,
            bytes_lost,
        }
    }

    /// Brings `serving` and what is behind it to `now`; the transmitter is busy.
    #[inline]
    fn catch_up(&mut self, packets: &Slab, now: u64) {
        while self.waiting > 0 {
            let packet = packets.packet(self.serving);
            if packet.finish > now {
                break;
            }
            self.serve(packets, packet.next);
        }
    }

    #[inline]
    fn serve(&mut self, packets: &Slab, next: u32) {
        self.serving = next;
        if next != NONE {
            self.waiting -= 1;
            self.bytes_waiting -= u64::from(packets.packet(next).size);
        }
    }

    fn is_full_for(&self, size: u32) -> bool {
        self.waiting >= self.most_packets || self.bytes_waiting + u64::from(size) > self.most_bytes
    }

    #[inline]
    fn serialisation(&mut self, size: u32) -> u64 {
        if self.per_byte > 0 {
            return u64::from(size) * self.per_byte;
        }
        let units = u64::from(size) * UNITS_PER_BYTE + self.carry;
        self.carry = units % self.rate;
        units / self.rate
    }
}

/// What became of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// It is alone in the link and will arrive then.
    First(Time),
    /// It will arrive after others.
    Behind,
    /// There was no room.
    Refused,
}

/// A packet that has come to the end of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) handle: u32,
    pub(super) lost: bool,
    /// When the next one arrives.
    pub(super) following: Option<Time>,
}
