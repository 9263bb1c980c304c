use anabranch_tcp::segment::SackBlocks;
use anabranch_tcp::{BareSegment, Segment};
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

/// Every packet in the network, by handle. What a link needs of it, what it carries, and the ranges that
/// an acknowledgement of data out of order reports lie apart, so that a hop touches the first alone, and
/// its ends the last seldom.
///
/// A new packet takes the next free place behind the one before it, round and round, and at least
/// half of the places are free. So packets sent one after the other lie one behind the other, and a
/// busy link, which they leave in about that order, walks through memory instead of jumping: with a
/// hundred thousand packets in flight that makes the difference.
#[derive(Debug)]
pub(super) struct Slab {
    packets: Vec<Packet>,
    cargo: Vec<Cargo>,
    sacks: Vec<SackBlocks>,
    /// A bit for every place, set where it is free; all bits are in use.
    free: Vec<u64>,
    /// The word of `free` in which the next packet gets its place.
    word: usize,
    live: usize,
}

/// What a packet carries, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
enum Cargo {
    Segment {
        bare: BareSegment,
        /// Whether the place has SACK blocks for it.
        sacked: bool,
    },
    Datagram(Vec<u8>),
    Filler,
}

/// Memory of a packet in flight: its place and what it carries, without the bytes of a datagram. The
/// table of packets doubles when half of it is in use, so it has two to four times this for each of
/// the most packets there were.
pub const BYTES_PER_PACKET: usize =
    size_of::<Packet>() + size_of::<Cargo>() + size_of::<SackBlocks>();

impl Slab {
    pub(super) fn new() -> Self {
        let (packets, cargo, sacks, free) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Slab { packets, cargo, sacks, free, word: 0, live: 0 }
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
        self.load(handle, payload);
        handle as u32
    }

    #[inline]
    pub(super) fn remove(&mut self, handle: u32) -> (Packet, Payload) {
        self.live -= 1;
        let payload = self.unload(handle);
        let handle = handle as usize;
        self.free[handle / 64] |= 1 << (handle % 64);
        (self.packets[handle], payload)
    }

    #[inline]
    fn load(&mut self, handle: usize, payload: Payload) {
        self.cargo[handle] = match payload {
            Payload::Segment(segment) => {
                let sacked = !segment.sack.is_empty();
                if sacked {
                    self.sacks[handle] = segment.sack;
                }
                Cargo::Segment { bare: BareSegment::new(&segment), sacked }
            }
            Payload::Datagram(bytes) => Cargo::Datagram(bytes),
            Payload::Filler => Cargo::Filler,
        };
    }

    /// Takes out what a packet carries. A datagram leaves nothing behind.
    #[inline]
    fn unload(&mut self, handle: u32) -> Payload {
        let handle = handle as usize;
        match &mut self.cargo[handle] {
            Cargo::Segment { bare, sacked } => {
                let sack = if *sacked { self.sacks[handle] } else { SackBlocks::default() };
                Payload::Segment(bare.with(sack))
            }
            Cargo::Datagram(bytes) => Payload::Datagram(core::mem::take(bytes)),
            Cargo::Filler => Payload::Filler,
        }
    }

    /// Doubles the room; `like` fills the new places.
    #[cold]
    fn grow(&mut self, like: Packet) {
        self.word = self.free.len();
        let words = (self.free.len() * 2).max(1);
        self.free.resize(words, u64::MAX);
        self.packets.resize(words * 64, like);
        self.cargo.resize_with(words * 64, || Cargo::Filler);
        self.sacks.resize(words * 64, SackBlocks::default());
    }

    #[inline]
    pub(super) fn packet(&self, handle: u32) -> &Packet {
        &self.packets[handle as usize]
    }

    #[inline]
    pub(super) fn packet_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.packets[handle as usize]
    }

    /// Lets `look` have a packet with what it carries.
    pub(super) fn with_payload<T>(
        &mut self,
        handle: u32,
        look: impl FnOnce(&mut Packet, &mut Payload) -> T,
    ) -> T {
        let mut payload = self.unload(handle);
        let result = look(&mut self.packets[handle as usize], &mut payload);
        self.load(handle as usize, payload);
        result
    }
}
