//! Packets sent on one path and their fates.

use anabranch_policy::view::{BlockId, SymbolId, SymbolSpace};
use anabranch_types::Time;
use core::ops::{Range, RangeInclusive};
use std::collections::VecDeque;

use super::received::Ecn;
use crate::runs::Runs;

/// Most packets without acknowledgement that are remembered while they outnumber the open ones by
/// more than `OPEN_SHARE` to one.
pub const MOST_UNWATCHED: usize = 4096;
const OPEN_SHARE: usize = 16;

/// A symbol that a packet carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A source symbol of a block.
    Source(BlockId, SymbolId),
    /// A repair of a block, by key.
    Repair(BlockId, u32),
}

impl Carried {
    /// The block of the symbol.
    pub fn block(self) -> BlockId {
        match self {
            Carried::Source(block, _) | Carried::Repair(block, _) => block,
        }
    }

    /// The symbol space of the block.
    #[inline]
    pub fn space(self) -> SymbolSpace {
        self.block().space()
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Neither acknowledged nor declared lost.
    InFlight,
    /// In flight for congestion control, but its symbols are already scheduled to be sent again on
    /// another path.
    WrittenOff,
    /// Acknowledged.
    Acked,
    /// Declared lost.
    Lost,
}

/// One sent packet.
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    /// When the packet was sent.
    pub sent: Time,
    /// Bytes on the wire, IP and UDP headers included.
    pub bytes: u32,
    /// When a later packet was first acknowledged, if this packet was not acknowledged by then.
    pub overtaken: Option<Time>,
    /// Fate of the packet.
    pub fate: Fate,
    /// Whether the packet is ack-eliciting, and so counts as in flight.
    pub ack_eliciting: bool,
    /// Whether the packet carried control frames, which are stored separately.
    pub has_control: bool,
    /// Whether the loss estimate counts the packet as lost.
    pub counted_lost: bool,
    /// Kind of probe, if the packet was only a probe. Its loss does not count in the loss estimate.
    pub probe: Option<Probe>,
    /// Whether the packet's symbols are early copies, sent before the fate of any other copy was
    /// known.
    pub early: bool,
    /// The first symbol that the packet carried. [`SentPackets::symbol`] returns the others.
    pub carried: Option<Carried>,
    /// State of the rate sampler when the packet was sent.
    pub snapshot: RateSnapshot,
}

/// Purpose of a probe, a packet that carries nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Probes whether the path carries packets of this length.
    Mtu,
    /// Probes whether a silent path works again.
    Life,
}

impl SentPacket {
    /// The block of the packet's first symbol.
    pub fn block(&self) -> Option<BlockId> {
        self.carried.map(|carried| carried.block())
    }

    /// Whether the packet was only a probe of the path's MTU.
    pub fn is_mtu_probe(&self) -> bool {
        self.probe == Some(Probe::Mtu)
    }

    /// The record of a packet of this many bytes on the wire that needs no acknowledgement.
    pub fn unwatched(sent: Time, bytes: u32) -> Self {
        SentPacket {
            sent,
            bytes,
            overtaken: None,
            fate: Fate::Acked,
            ack_eliciting: false,
            has_control: false,
            counted_lost: false,
            probe: None,
            early: false,
            carried: None,
            snapshot: RateSnapshot::default(),
        }
    }
}

/// The rate sampler's state when a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSnapshot {
    /// Bytes acknowledged when the packet was sent.
    pub delivered: u64,
    /// Bytes sent before the newest packet that was acknowledged at that time.
    pub acked_offset: u64,
    /// When the newest acknowledged packet was received (peer's clock, unwrapped microseconds).
    pub acked_at: u64,
    /// When the newest acknowledged packet was sent.
    pub first_sent: Time,
    /// Bytes sent before this packet.
    pub offset: u64,
    /// Whether the sender was app-limited.
    pub app_limited: bool,
}

/// The sent packets of one path, indexed by number, starting at the oldest one remembered.
#[derive(Debug, Default)]
pub struct SentPackets {
    base: u64,
    packets: VecDeque<SentPacket>,
    /// Symbols after the first one of a packet, by packet number, only for packets in `packets`.
    /// They are stored separately because few packets have more than one symbol.
    beside: VecDeque<(u64, Carried)>,
    /// Bytes of ack-eliciting packets neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// Ack-eliciting packets in flight.
    pub packets_in_flight: u32,
    /// Largest acknowledged number.
    largest_acked: Option<u64>,
    /// Numbers that were acknowledged or are no longer remembered.
    acked: Runs,
    /// Numbers below this are resolved or not ack-eliciting.
    scan_from: u64,
    /// Number of packets from `scan_from` on that are not ack-eliciting.
    unwatched: usize,
    /// Highest floor announced to the peer.
    announced: u64,
}

impl SentPackets {
    /// The next packet number.
    pub fn next_number(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// Number of packets that can be recorded without allocation.
    pub fn room(&self) -> usize {
        self.packets.capacity()
    }

    /// The lowest number still remembered.
    pub fn oldest(&self) -> u64 {
        self.base
    }

    /// The acknowledgement floor: the lowest number neither acknowledged nor lost.
    pub fn floor(&self) -> u64 {
        self.scan_from
    }

    /// Returns the floor if it is at least `step` above the last announced one, and records it as
    /// announced.
    pub fn announce_floor(&mut self, step: u64) -> Option<u64> {
        let news = self.scan_from >= self.announced + step;
        if news {
            self.announced = self.scan_from;
        }
        news.then_some(self.scan_from)
    }

    /// Records the packet with [`next_number`](Self::next_number).
    pub fn push(&mut self, packet: SentPacket) {
        if packet.ack_eliciting {
            self.bytes_in_flight += u64::from(packet.bytes);
            self.packets_in_flight += 1;
        } else if self.packets_in_flight == 0 {
            // The packets of a side that only sends acknowledgements are never acknowledged, so
            // they need no record.
            self.base = self.next_number() + 1;
            self.packets.clear();
            self.beside.clear();
            self.scan_from = self.base;
            self.unwatched = 0;
            return;
        } else {
            self.unwatched += 1;
        }
        self.packets.push_back(packet);
    }

    /// Whether nearly all remembered packets need no acknowledgement and are kept only because
    /// older ones are open. This happens if the peer acknowledges nothing but sends many
    /// ack-eliciting packets. Lost packets do not count.
    pub fn is_clogged(&self) -> bool {
        let many = self.unwatched > MOST_UNWATCHED;
        many && self.unwatched / OPEN_SHARE > self.packets_in_flight as usize
    }

    /// Records a further symbol of the next packet, in addition to the one that
    /// [`push`](Self::push) records.
    pub fn carry_beside(&mut self, carried: Carried) {
        self.beside.push_back((self.next_number(), carried));
    }

    /// Whether a remembered packet carries more than one symbol.
    pub fn has_shared(&self) -> bool {
        !self.beside.is_empty()
    }

    /// The `nth` symbol, counted from 0, of `packet`, which has this number.
    #[inline]
    pub fn symbol(&self, number: u64, packet: &SentPacket, nth: usize) -> Option<Carried> {
        let Some(after_first) = nth.checked_sub(1) else { return packet.carried };
        if self.beside.is_empty() {
            return None;
        }
        let from = self.beside.partition_point(|(earlier, _)| *earlier < number);
        let (of, carried) = self.beside.get(from + after_first)?;
        (*of == number).then_some(*carried)
    }

    /// The oldest open packet that carries symbols, and its number.
    pub fn oldest_with_symbols(&self) -> Option<(u64, SentPacket)> {
        let carrier = self.open().find(|(_, packet)| packet.carried.is_some());
        carrier.map(|(number, packet)| (number, *packet))
    }

    /// The packet with this number, if it is still remembered.
    pub fn get(&self, number: u64) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut SentPacket> {
        self.packets.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// Records that the peer acknowledges these numbers. Calls `news` with the ranges not
    /// acknowledged before, in ascending order.
    pub fn acknowledge(&mut self, numbers: RangeInclusive<u64>, mut news: impl FnMut(Range<u64>)) {
        self.acked.raise(self.base);
        let end = numbers.end().saturating_add(1);
        self.acked.insert(*numbers.start(), end, |from, to| news(from..to));
    }

    /// Changes a packet's fate. Returns the packet as it was before if its fate changes. A lost
    /// packet can still become acknowledged.
    pub fn resolve(&mut self, number: u64, fate: Fate) -> Option<SentPacket> {
        let packet = self.get_mut(number)?;
        let before = *packet;
        let open = matches!(before.fate, Fate::InFlight | Fate::WrittenOff);
        let changes = match fate {
            Fate::WrittenOff => before.fate == Fate::InFlight,
            Fate::Lost => open,
            Fate::Acked => before.fate != Fate::Acked,
            Fate::InFlight => false,
        };
        if !changes {
            return None;
        }
        packet.fate = fate;
        packet.counted_lost =
            fate == Fate::Lost && before.fate == Fate::InFlight && before.probe.is_none();
        if open && fate != Fate::WrittenOff && before.ack_eliciting {
            self.bytes_in_flight -= u64::from(before.bytes);
            self.packets_in_flight -= 1;
        }
        Some(before)
    }

    /// Largest acknowledged number.
    pub fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Notes that the packet with this number is acknowledged. It has overtaken the earlier packets
    /// that are not acknowledged.
    pub fn on_acked(&mut self, now: Time, number: u64) {
        let unseen = self.largest_acked.map_or(0, |largest| largest + 1);
        if number < unseen {
            return;
        }
        self.largest_acked = Some(number);
        for below in unseen.max(self.base)..number {
            if let Some(packet) = self.get_mut(below) {
                packet.overtaken = Some(now);
            }
        }
    }

    /// Open packets (in flight or written off) and their numbers, in ascending order from the
    /// floor.
    pub fn open(&self) -> impl Iterator<Item = (u64, &SentPacket)> + '_ {
        let skip = usize::try_from(self.scan_from.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.packets
            .iter()
            .enumerate()
            .skip(skip)
            .map(|(i, packet)| (self.base + i as u64, packet))
            .filter(|(_, p)| p.ack_eliciting && matches!(p.fate, Fate::InFlight | Fate::WrittenOff))
    }

    /// Open packets up to number `largest`, newest first. Each comes with the number of
    /// ack-eliciting packets above it, up to `largest`, that were acknowledged. One pass counts for
    /// all packets.
    pub fn open_up_to(&self, largest: u64) -> impl Iterator<Item = (u64, &SentPacket, u64)> + '_ {
        let offset =
            |number: u64| usize::try_from(number.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let end = offset(largest.saturating_add(1)).min(self.packets.len());
        let start = offset(self.scan_from).min(end);
        let first = self.base + start as u64;
        let mut acked = 0;
        let packets = self.packets.range(start..end).enumerate().rev();
        packets.filter(|(_, packet)| packet.ack_eliciting).filter_map(move |(i, packet)| {
            match packet.fate {
                Fate::InFlight | Fate::WrittenOff => Some((first + i as u64, packet, acked)),
                Fate::Acked => {
                    acked += 1;
                    None
                }
                Fate::Lost => None,
            }
        })
    }

    /// When the oldest open packet was sent, not counting MTU probes, which are often lost.
    pub fn oldest_open(&self) -> Option<Time> {
        self.open().find(|(_, packet)| !packet.is_mtu_probe()).map(|(_, packet)| packet.sent)
    }

    /// Number of open packets sent at `time` or before, not counting MTU probes.
    pub fn sent_before(&self, time: Time) -> u32 {
        let old = self.open().take_while(|(_, packet)| packet.sent <= time);
        old.filter(|(_, packet)| !packet.is_mtu_probe()).count() as u32
    }

    /// Moves the floor over resolved packets and removes them up to the first lost packet sent at
    /// `keep_after` or later. Lost packets are kept for a while so that late acknowledgements are
    /// recognised.
    pub fn prune(&mut self, keep_after: Time) {
        while let Some(packet) = self.get(self.scan_from) {
            let open = matches!(packet.fate, Fate::InFlight | Fate::WrittenOff);
            if packet.ack_eliciting && open {
                break;
            }
            let watched = packet.ack_eliciting;
            self.scan_from += 1;
            self.unwatched -= usize::from(!watched);
        }
        while self.base < self.scan_from {
            match self.packets.front() {
                Some(packet) if packet.fate != Fate::Lost || packet.sent < keep_after => {
                    self.packets.pop_front();
                    self.base += 1;
                }
                _ => break,
            }
        }
        while self.beside.front().is_some_and(|(number, _)| *number < self.base) {
            self.beside.pop_front();
        }
    }
}

/// A packet that was just sent.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent {
    /// UDP payload bytes.
    pub payload: usize,
    /// ECN mark of the packet.
    pub ecn: Ecn,
    /// Whether the packet is ack-eliciting.
    pub ack_eliciting: bool,
    /// Whether the packet carried control frames.
    pub has_control: bool,
    /// Kind of probe, if the packet is only a probe.
    pub probe: Option<Probe>,
    /// Whether the packet's symbols are early copies.
    pub early: bool,
    /// The first symbol that the packet carried.
    pub carried: Option<Carried>,
}

#[cfg(test)]
mod tests;
