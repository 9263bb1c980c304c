use anabranch_tcp::{BareSegment, Segment, SegmentRest};
use anabranch_types::{Ecn, Time};

use super::PortId;

/// Contents of a packet.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A TCP segment. Its stream bytes are counted, not carried.
    Segment(Segment),
    /// The payload of a UDP datagram, every byte of it. Its buffer returns to the engine's pool.
    Datagram(Vec<u8>),
    /// No content, only a size: background load.
    Filler,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When the packet's sender sent it.
    pub sent: Time,
    /// The port at the far end of the packet's route.
    pub to: PortId,
    /// Which of the conversations between the two ports the packet belongs to; 0 where there is only one.
    pub stream: u32,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// Current ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Index of the route's next link in the table of all routes.
    pub(super) hop: u32,
}

/// Fields of a packet that links need: half a cache line, so that one line serves two packets of a busy link.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Transit {
    /// When the packet's last bit leaves the link's transmitter.
    pub(super) finish: u64,
    /// The next packet in the same link.
    pub(super) next: u32,
    pub(super) size: u32,
    pub(super) hop: u32,
    pub(super) ecn: Ecn,
}

/// No packet: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Every packet in the network, by handle. Three parts are stored apart: what links need, what the ends need, and
/// what few segments carry. So a hop touches the first part alone, and the ends seldom touch the last.
///
/// A new packet takes the next free place after the previous one, cyclically, and at least half of the places
/// are free. So packets sent one after the other are adjacent in memory, and a busy link, which they leave in
/// about that order, reads memory sequentially; this matters with a hundred thousand packets in flight.
#[derive(Debug)]
pub(super) struct Slab {
    packets: Vec<Transit>,
    cargo: Vec<Cargo>,
    rests: Vec<SegmentRest>,
    /// One bit per place, set if the place is free; every bit stands for a place.
    free: Vec<u64>,
    /// The word of `free` in which the next packet gets its place.
    word: usize,
    live: usize,
}

/// Fields of a packet that the ends of its route need, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Cargo {
    sent: Time,
    to: PortId,
    stream: u32,
    load: Load,
}

#[derive(Debug)]
enum Load {
    Segment(BareSegment),
    Datagram(Vec<u8>),
    Filler,
}

/// Memory of a packet in flight: its place and what it carries, without the bytes of a datagram. The
/// table of packets doubles when half of it is in use, so it takes two to four times this for each packet
/// in flight at the peak.
pub const BYTES_PER_PACKET: usize =
    size_of::<Transit>() + size_of::<Cargo>() + size_of::<SegmentRest>();

impl Slab {
    pub(super) fn new() -> Self {
        let (packets, cargo, rests, free) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Slab { packets, cargo, rests, free, word: 0, live: 0 }
    }

    /// Packets inside.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, packet: Packet, payload: Payload) -> u32 {
        if self.live * 2 >= self.packets.len() {
            self.grow();
        }
        self.live += 1;
        while self.free[self.word] == 0 {
            self.word = if self.word + 1 < self.free.len() { self.word + 1 } else { 0 };
        }
        let word = &mut self.free[self.word];
        let handle = self.word * 64 + word.trailing_zeros() as usize;
        *word &= *word - 1;
        let Packet { sent, to, stream, size, ecn, hop } = packet;
        self.packets[handle] = Transit { finish: 0, next: NONE, size, hop, ecn };
        let load = self.pack(handle, payload);
        self.cargo[handle] = Cargo { sent, to, stream, load };
        handle as u32
    }

    #[inline]
    pub(super) fn remove(&mut self, handle: u32) -> (Packet, Payload) {
        self.live -= 1;
        let handle = handle as usize;
        self.free[handle / 64] |= 1 << (handle % 64);
        self.unpack(handle)
    }

    #[inline]
    fn pack(&mut self, handle: usize, payload: Payload) -> Load {
        match payload {
            Payload::Segment(segment) => {
                let (bare, rest) = BareSegment::split(&segment);
                if let Some(rest) = rest {
                    self.rests[handle] = rest;
                }
                Load::Segment(bare)
            }
            Payload::Datagram(bytes) => Load::Datagram(bytes),
            Payload::Filler => Load::Filler,
        }
    }

    /// A packet with what it carries. The bytes of a datagram are moved out, not copied.
    #[inline]
    fn unpack(&mut self, handle: usize) -> (Packet, Payload) {
        let Transit { size, hop, ecn, .. } = self.packets[handle];
        let Cargo { sent, to, stream, load } = &mut self.cargo[handle];
        let payload = match load {
            Load::Segment(bare) => Payload::Segment(bare.join(|| self.rests[handle])),
            Load::Datagram(bytes) => Payload::Datagram(core::mem::take(bytes)),
            Load::Filler => Payload::Filler,
        };
        (Packet { sent: *sent, to: *to, stream: *stream, size, ecn, hop }, payload)
    }

    /// Doubles the number of places.
    #[cold]
    fn grow(&mut self) {
        self.word = self.free.len();
        let words = (self.free.len() * 2).max(1);
        self.free.resize(words, u64::MAX);
        let transit = Transit { finish: 0, next: NONE, size: 0, hop: 0, ecn: Ecn::NotEct };
        self.packets.resize(words * 64, transit);
        let (sent, to) = (Time::ZERO, PortId(0));
        self.cargo.resize_with(words * 64, || Cargo { sent, to, stream: 0, load: Load::Filler });
        self.rests.resize(words * 64, SegmentRest::default());
    }

    #[inline]
    pub(super) fn packet(&self, handle: u32) -> &Transit {
        &self.packets[handle as usize]
    }

    #[inline]
    pub(super) fn packet_mut(&mut self, handle: u32) -> &mut Transit {
        &mut self.packets[handle as usize]
    }

    /// Calls `look` with a packet and its payload; the payload and the size may be changed.
    pub(super) fn with_payload<T>(
        &mut self,
        handle: u32,
        look: impl FnOnce(&mut Packet, &mut Payload) -> T,
    ) -> T {
        let handle = handle as usize;
        let (mut packet, mut payload) = self.unpack(handle);
        let result = look(&mut packet, &mut payload);
        self.packets[handle].size = packet.size;
        self.cargo[handle].load = self.pack(handle, payload);
        result
    }
}
