use anabranch_tcp::Segment;
use anabranch_types::Time;

use super::topology::END;
use super::{AgentId, PortId};
use crate::link::Ecn;

/// What a packet carries.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A TCP segment. Its stream bytes are counted, not carried.
    Segment(Segment),
    /// The payload of a UDP datagram, every byte of it. Its buffer returns to the engine's pool.
    Datagram(Vec<u8>),
    /// Nothing but its size: load.
    Filler,
}

/// A packet on its way: a cache line, so that a hop costs one.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// When its sender sent it.
    pub sent: Time,
    /// The port at the far end of its route.
    pub to: PortId,
    /// Which of the conversations between the two ports it belongs to; 0 where there is only one.
    pub stream: u32,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// Its ECN codepoint as of now.
    pub ecn: Ecn,
    /// The agent at the far end.
    pub(super) agent: AgentId,
    /// When its last bit leaves the link's transmitter.
    pub(super) finish: u64,
    /// The packet behind it in the same link.
    pub(super) next: u32,
    /// The links behind the present one, as far as there is room; where the rest of them is in the
    /// table of all routes; and how many have been taken from here.
    pub(super) ahead: [u32; AHEAD],
    pub(super) rest: u32,
    pub(super) taken: u8,
}

/// Links that a packet knows without looking at its route.
const AHEAD: usize = 5;

/// No packet: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

impl Packet {
    /// A packet that enters the link at `start` of the table `hops`.
    #[inline]
    pub(super) fn new(sent: Time, to: PortId, agent: AgentId, start: u32, hops: &[u32]) -> Self {
        let mut packet = Packet {
            sent,
            to,
            stream: 0,
            size: 0,
            ecn: Ecn::NotEct,
            agent,
            finish: 0,
            next: NONE,
            ahead: [END; AHEAD],
            rest: start + 1,
            taken: 0,
        };
        packet.look_ahead(hops);
        packet
    }

    /// The next link of its route, [`END`] behind the last one.
    #[inline]
    pub(super) fn next_link(&mut self, hops: &[u32]) -> u32 {
        if usize::from(self.taken) == AHEAD {
            self.look_ahead(hops);
        }
        let link = self.ahead.get(usize::from(self.taken)).copied().unwrap_or(END);
        self.taken += 1;
        link
    }

    #[inline]
    fn look_ahead(&mut self, hops: &[u32]) {
        let from = self.rest as usize;
        self.taken = 0;
        self.rest += AHEAD as u32;
        if let Some(links) = hops.get(from..from + AHEAD) {
            self.ahead.copy_from_slice(links);
            return;
        }
        for (at, link) in self.ahead.iter_mut().enumerate() {
            *link = hops.get(from + at).copied().unwrap_or(END);
        }
    }
}

/// Every packet in the network, by handle. What a link needs of it and what it carries lie apart, so
/// that a hop touches the former alone.
///
/// A new packet takes the next free place behind the one before it, round and round, and at least
/// half of the places are free. So packets sent one after the other lie one behind the other, and a
/// busy link, which they leave in about that order, walks through memory instead of jumping: with a
/// hundred thousand packets in flight that makes the difference.
#[derive(Debug)]
pub(super) struct Slab {
    packets: Vec<Packet>,
    payloads: Vec<Cargo>,
    /// A bit for every place, set where it is free; all bits are in use.
    free: Vec<u64>,
    /// The word of `free` in which the next packet gets its place.
    word: usize,
    live: usize,
}

/// A payload that shares no cache line with another.
#[derive(Debug)]
#[repr(align(64))]
struct Cargo(Payload);

/// Memory of a packet in flight: its place and what it carries, without the bytes of a datagram. The
/// table of packets doubles when half of it is in use, so it has two to four times this for each of
/// the most packets there were.
pub const BYTES_PER_PACKET: usize = size_of::<Packet>() + size_of::<Cargo>();

impl Slab {
    pub(super) fn new() -> Self {
        Slab { packets: Vec::new(), payloads: Vec::new(), free: Vec::new(), word: 0, live: 0 }
    }

    /// Packets inside.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, packet: Packet, payload: Payload) -> u32 {
        if self.live * 2 >= self.packets.len() {
            self.grow(packet);
        }
        self.live += 1;
        while self.free[self.word] == 0 {
            self.word = if self.word + 1 < self.free.len() { self.word + 1 } else { 0 };
        }
        let word = &mut self.free[self.word];
        let handle = self.word * 64 + word.trailing_zeros() as usize;
        *word &= *word - 1;
        self.packets[handle] = packet;
        self.payloads[handle].0 = payload;
        handle as u32
    }

    #[inline]
    pub(super) fn remove(&mut self, handle: u32) -> (Packet, Payload) {
        self.live -= 1;
        let handle = handle as usize;
        self.free[handle / 64] |= 1 << (handle % 64);
        let payload = &mut self.payloads[handle].0;
        (self.packets[handle], core::mem::replace(payload, Payload::Filler))
    }

    /// Doubles the room; `like` fills the new places.
    #[cold]
    fn grow(&mut self, like: Packet) {
        self.word = self.free.len();
        let words = (self.free.len() * 2).max(1);
        self.free.resize(words, u64::MAX);
        self.packets.resize(words * 64, like);
        self.payloads.resize_with(words * 64, || Cargo(Payload::Filler));
    }

    #[inline]
    pub(super) fn packet(&self, handle: u32) -> &Packet {
        &self.packets[handle as usize]
    }

    #[inline]
    pub(super) fn packet_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.packets[handle as usize]
    }

    /// A packet with what it carries.
    pub(super) fn both_mut(&mut self, handle: u32) -> (&mut Packet, &mut Payload) {
        let handle = handle as usize;
        (&mut self.packets[handle], &mut self.payloads[handle].0)
    }

    pub(super) fn payload(&self, handle: u32) -> &Payload {
        &self.payloads[handle as usize].0
    }
}
