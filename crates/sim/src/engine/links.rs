use std::sync::Arc;

use anabranch_types::{Bitrate, DataSize, Time};

use super::faults::Faults;
use super::packet::{NONE, Slab, Transit};
use super::topology::TopologyLink;
use super::wheel::{Entries, Entry};
use crate::link::{Link, LinkConfig, LinkConfigError, Serialiser};
use crate::loss::{LossConfig, LossModel, LossProcess};
use crate::queue::{Discipline, QueueLimit};
use crate::rate::Schedule;

/// All links of an engine, and the entries of all event sources in its wheel: the links by id, then
/// the agents.
///
/// A link with constant rate and delay, a drop-tail queue and at most independent losses (no
/// policer, blackout, MTU or faults) is *plain*: its arrival time is known when a packet enters, so
/// a packet costs one event. A plain link behaves exactly as [`Link`] does, with the same random
/// draws and to the nanosecond, but most packets touch only one of its cache lines. The packets
/// inside, including those that propagate, form a linked list in the slab in the order of arrival.
/// All other links are [`Link`]s.
#[derive(Debug)]
pub(super) struct Links {
    slots: Vec<Slot>,
    extras: Vec<LinkExtras>,
    params: Vec<LinkParams>,
    agents: Vec<Entry>,
}

/// State of a link that every packet touches.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot {
    entry: Entry,
    first: u32,
    last: u32,
    /// The packet being serialised, as of the last update.
    serving: u32,
    /// Packets queued behind `serving`, as of the last update.
    waiting: u32,
    free_at: u64,
    bytes_delivered: u64,
    delivered: u32,
    /// Nanoseconds between the finish times of the first and the second packet, or [`FAR`]. The gap
    /// allows the first packet to be taken out without waiting for the memory of the second.
    gap: u32,
    /// Bytes of the waiting packets, modulo 2³²; used if the queue limit is in bytes.
    bytes_waiting: u32,
    params: u32,
}

/// The value of `gap` if no gap is stored. The finish time must then be read from the packet.
const FAR: u32 = u32::MAX;

/// Parameters that links of equal configuration share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinkParams {
    shaped: bool,
    lossy: bool,
    delay: u64,
    /// Nanoseconds per byte if that is a whole number, else 0.
    per_byte: u64,
    rate: Bitrate,
    limit: QueueLimit,
}

/// State of a link that few packets touch.
#[derive(Debug, Default)]
struct LinkExtras {
    serialiser: Serialiser,
    /// Delivered packets that the slot's 32-bit counter no longer holds: a multiple of 2³².
    delivered: u64,
    dropped_full: u64,
    bytes_dropped: u64,
    loss: Option<Box<Losses>>,
    shaped: Option<Box<Link<u32>>>,
    faults: Option<Box<Faults>>,
}

/// The loss process of a plain link with random losses, and the packets and bytes lost.
#[derive(Debug)]
struct Losses {
    process: LossProcess,
    packets: u64,
    bytes: u64,
}

/// The counters of a plain link, as defined for [`LinkCounters`](crate::link::LinkCounters).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) delivered: u64,
    pub(super) bytes_delivered: u64,
    pub(super) dropped_full: u64,
    pub(super) bytes_dropped: u64,
    pub(super) lost: u64,
    pub(super) bytes_lost: u64,
}

/// The fate of a packet offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The packet is the only one in the link and arrives at this time.
    First(Time),
    /// The packet arrives after other packets in the link.
    Behind,
    /// The queue was full.
    Refused,
    /// The link is not plain; see [`Links::shaped_mut`].
    Shaped,
}

/// A packet that has reached the end of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) handle: u32,
    pub(super) lost: bool,
    /// When the next packet in the link arrives.
    pub(super) following: Option<Time>,
}

/// Output of a link that is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A packet from a plain link.
    Packet(Taken),
    /// A plain link has no packet inside.
    Nothing,
    /// The link is not plain, so [`Link::advance`] must be called.
    Shaped,
}

impl Links {
    pub(super) fn new(links: &[TopologyLink], seed: u64) -> Result<Self, LinkConfigError> {
        let mut made = Links {
            slots: Vec::with_capacity(links.len()),
            extras: Vec::with_capacity(links.len()),
            params: Vec::new(),
            agents: Vec::new(),
        };
        // Links of equal configuration share their parameters. The newest configurations are
        // searched first.
        let mut known: Vec<(Arc<LinkConfig>, u32)> = Vec::new();
        for TopologyLink { name, config, .. } in links {
            let same = known.iter().rev().find(|(other, _)| Arc::ptr_eq(other, config));
            let params = match same {
                Some((_, params)) => *params,
                None => {
                    let params = made.params_index(LinkParams::new(config));
                    known.push((Arc::clone(config), params));
                    params
                }
            };
            made.add(params, config, seed, name)?;
        }
        Ok(made)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds a wheel entry for an agent.
    pub(super) fn add_agent(&mut self) {
        self.agents.push(Entry::UNARMED);
    }

    /// Puts a packet into a plain link at `now`, unless the queue is full.
    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "called for every packet: what it needs stays in registers"
    )]
    pub(super) fn offer(
        &mut self,
        link: usize,
        packets: &mut Slab,
        handle: u32,
        size: u32,
        now: Time,
    ) -> Offer {
        let now = now.as_nanos();
        let slot = &mut self.slots[link];
        let params = &self.params[slot.params as usize];
        if params.shaped {
            return Offer::Shaped;
        }
        let idle = slot.free_at <= now;
        let start = if idle {
            slot.serving = handle;
            slot.waiting = 0;
            slot.bytes_waiting = 0;
            now
        } else {
            // The number of waiting packets may be out of date, so update it before refusing a
            // packet.
            if slot.is_full_for(size, params.limit) {
                slot.catch_up(packets, now);
                if slot.waiting > 0 && slot.is_full_for(size, params.limit) {
                    let extras = &mut self.extras[link];
                    extras.dropped_full += 1;
                    extras.bytes_dropped += u64::from(size);
                    return Offer::Refused;
                }
            }
            slot.waiting += 1;
            slot.bytes_waiting = slot.bytes_waiting.wrapping_add(size);
            slot.free_at
        };
        let finish = start
            + if params.per_byte > 0 {
                u64::from(size) * params.per_byte
            } else {
                let fresh = idle && slot.free_at < now;
                self.extras[link].serialiser.nanos(size, params.rate, fresh)
            };
        slot.free_at = finish;
        let packet = packets.packet_mut(handle);
        packet.finish = finish;
        packet.next = NONE;
        let before = core::mem::replace(&mut slot.last, handle);
        if before == NONE {
            slot.first = handle;
            return Offer::First(Time::from_nanos(finish + params.delay));
        }
        let ahead = packets.packet_mut(before);
        ahead.next = handle;
        if before == slot.first {
            slot.gap = gap(ahead.finish, finish);
        }
        Offer::Behind
    }

    /// Takes out the packet that arrives next. Returns whether it was lost on the way, and when the
    /// packet after it arrives.
    #[inline]
    pub(super) fn take(&mut self, link: usize, packets: &mut Slab) -> Due {
        let slot = &mut self.slots[link];
        let params = &self.params[slot.params as usize];
        if params.shaped {
            return Due::Shaped;
        }
        let handle = slot.first;
        if handle == NONE {
            return Due::Nothing;
        }
        let &Transit { next, size, finish, .. } = packets.packet(handle);
        slot.first = next;
        let following = slot.advance(packets, next, finish, params.delay);
        if slot.serving == handle {
            slot.serve(packets, next);
        }
        let lost = params.lossy && self.extras[link].is_lost(finish, size);
        if !lost {
            slot.delivered = slot.delivered.wrapping_add(1);
            if slot.delivered == 0 {
                self.extras[link].delivered += 1 << 32;
            }
            slot.bytes_delivered += u64::from(size);
        }
        Due::Packet(Taken { handle, lost, following })
    }

    /// The model of a link that is not plain.
    pub(super) fn shaped(&self, link: usize) -> Option<&Link<u32>> {
        self.extras.get(link)?.shaped.as_deref()
    }

    /// The model of a link that is not plain.
    #[inline]
    pub(super) fn shaped_mut(&mut self, link: usize) -> Option<&mut Link<u32>> {
        self.extras.get_mut(link)?.shaped.as_deref_mut()
    }

    /// The faults of a link that is not plain.
    pub(super) fn faults_mut(&mut self, link: usize) -> Option<&mut Faults> {
        self.extras.get_mut(link)?.faults.as_deref_mut()
    }

    /// Packets and bytes queued in a plain link at `now`, without the packet being serialised.
    pub(super) fn waiting(&self, link: usize, packets: &Slab, now: Time) -> (u64, u64) {
        let mut handle = self.slots[link].first;
        let mut sums = (0, 0);
        // Whether the list position is past the packet being serialised: all packets behind that
        // one wait.
        let mut serving = false;
        while handle != NONE {
            let packet = packets.packet(handle);
            if serving {
                sums.0 += 1;
                sums.1 += u64::from(packet.size);
            }
            serving |= packet.finish > now.as_nanos();
            handle = packet.next;
        }
        sums
    }

    /// Packets and bytes inside a plain link, then packets and bytes of those among them whose last
    /// bit has left the transmitter by `now`.
    pub(super) fn inside(&self, link: usize, packets: &Slab, now: Time) -> [u64; 4] {
        let mut sums = [0; 4];
        let mut handle = self.slots[link].first;
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

    /// The counters of a plain link.
    pub(super) fn tally(&self, link: usize) -> Tally {
        let (slot, extras) = (&self.slots[link], &self.extras[link]);
        let losses = extras.loss.as_ref().map(|losses| (losses.packets, losses.bytes));
        let (lost, bytes_lost) = losses.unwrap_or_default();
        Tally {
            delivered: extras.delivered + u64::from(slot.delivered),
            bytes_delivered: slot.bytes_delivered,
            dropped_full: extras.dropped_full,
            bytes_dropped: extras.bytes_dropped,
            lost,
            bytes_lost,
        }
    }

    fn params_index(&mut self, params: LinkParams) -> u32 {
        let at = self.params.iter().position(|known| *known == params);
        let at = at.unwrap_or_else(|| {
            self.params.push(params);
            self.params.len() - 1
        });
        at as u32
    }

    fn add(
        &mut self,
        params: u32,
        config: &LinkConfig,
        seed: u64,
        name: &str,
    ) -> Result<(), LinkConfigError> {
        let mut extras = LinkExtras::default();
        let LinkParams { shaped, lossy, .. } = self.params[params as usize];
        if shaped {
            extras.shaped = Some(Box::new(Link::new(config, seed, name)?));
            extras.faults = Faults::new(config.faults, seed, name);
        } else if lossy {
            let process = LossProcess::new(&config.loss, seed, &format!("link.{name}.loss"))
                .map_err(|why| LinkConfigError {
                    key: "loss".to_owned(),
                    given: "the model".to_owned(),
                    allowed: why.to_string(),
                })?;
            extras.loss = Some(Box::new(Losses { process, packets: 0, bytes: 0 }));
        }
        self.extras.push(extras);
        self.slots.push(Slot {
            entry: Entry::UNARMED,
            first: NONE,
            last: NONE,
            serving: NONE,
            waiting: 0,
            free_at: 0,
            bytes_delivered: 0,
            delivered: 0,
            gap: FAR,
            bytes_waiting: 0,
            params,
        });
        Ok(())
    }
}

impl Entries for Links {
    #[inline]
    fn entry(&mut self, source: u32) -> &mut Entry {
        let (source, links) = (source as usize, self.slots.len());
        if source < links {
            &mut self.slots[source].entry
        } else {
            &mut self.agents[source - links]
        }
    }
}

impl LinkParams {
    fn new(config: &LinkConfig) -> Self {
        let rate = config.rate.at(Time::ZERO);
        let plain = config.is_steady()
            && rate != Bitrate::ZERO
            && config.faults.is_none()
            && config.mtu == Schedule::constant(u32::MAX)
            && config.queue.discipline == Discipline::DropTail
            && matches!(config.loss, LossConfig::None | LossConfig::Bernoulli(_));
        // A slot counts the waiting bytes in 32 bits, so the limit is reduced to this range.
        let limit = match config.buffer() {
            QueueLimit::Bytes(bytes) => {
                QueueLimit::Bytes(DataSize::from_bytes(bytes.as_bytes().min(u64::from(u32::MAX))))
            }
            packets => packets,
        };
        LinkParams {
            shaped: !plain,
            lossy: config.loss != LossConfig::None,
            delay: u64::try_from(config.delay.as_nanos()).unwrap_or(u64::MAX),
            per_byte: Serialiser::per_byte(rate).unwrap_or(0),
            rate,
            limit,
        }
    }
}

/// The time between two finish times; [`FAR`] if it does not fit into a slot.
#[inline]
fn gap(first: u64, second: u64) -> u32 {
    u32::try_from(second - first).unwrap_or(FAR)
}

impl Slot {
    /// Makes `next` the first packet. `finish` is the finish time of the packet before it. Returns
    /// when `next` arrives.
    #[inline]
    fn advance(&mut self, packets: &Slab, next: u32, finish: u64, delay: u64) -> Option<Time> {
        if next == NONE {
            self.last = NONE;
            return None;
        }
        let first = match self.gap {
            FAR => packets.packet(next).finish,
            gap => finish + u64::from(gap),
        };
        // The result of this read is not needed yet, so its latency overlaps with other work.
        self.gap = match packets.packet(next).next {
            NONE => FAR,
            second => gap(first, packets.packet(second).finish),
        };
        Some(Time::from_nanos(first + delay))
    }

    /// Whether the queue was full for a packet of `size` bytes at the last update.
    #[inline]
    fn is_full_for(&self, size: u32, limit: QueueLimit) -> bool {
        limit.is_full(u64::from(self.waiting), u64::from(self.bytes_waiting), size)
    }

    /// Updates `serving` and the backlog to `now`. The transmitter must be busy.
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
            self.bytes_waiting = self.bytes_waiting.wrapping_sub(packets.packet(next).size);
        }
    }
}

impl LinkExtras {
    /// Whether a packet that left the transmitter at `finish` is lost. Every call draws anew.
    #[inline]
    fn is_lost(&mut self, finish: u64, size: u32) -> bool {
        let Some(losses) = &mut self.loss else { return false };
        let lost = losses.process.is_lost(Time::from_nanos(finish));
        if lost {
            losses.packets += 1;
            losses.bytes += u64::from(size);
        }
        lost
    }
}
