use anabranch_tcp::{BareSegment, Segment, SegmentRest};
use anabranch_types::{Ecn, Time};

use super::PortId;

/// Contents of a packet.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A TCP segment. Its length is known, but its payload bytes are not stored.
    Segment(Segment),
    /// The complete payload of a UDP datagram. Its buffer returns to the engine's pool.
    Datagram(Vec<u8>),
    /// Background load, which has a size but no content.
    Filler,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When the packet's sender sent it.
    pub sent: Time,
    /// The port at the far end of the packet's route.
    pub to: PortId,
    /// Number of the conversation between the two ports that the packet belongs to; 0 if there is
    /// only one.
    pub stream: u32,
    /// Size on the wire with all headers, bytes.
    pub size: u32,
    /// Current ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Index of the route's next link in the table of all routes.
    pub(super) hop: u32,
}

/// The fields of a packet that links need. They take half a cache line, so that one line holds two
/// packets of a busy link.
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

/// The handle that stands for no packet, at the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// All packets in the network, by handle. Each packet is stored in three parts: the fields that
/// links need, those that the ends of the route need, and those that few segments carry. So a hop
/// touches only the first part, and the ends rarely touch the last.
///
/// A new packet takes the next free place after the previous packet, cyclically, and at least half
/// of the places are free. So packets that are sent one after the other lie close together. They
/// leave a busy link in about the same order, so the link reads memory almost sequentially, which
/// matters with a hundred thousand packets in flight.
#[derive(Debug)]
pub(super) struct Slab {
    packets: Vec<Transit>,
    cargo: Vec<Cargo>,
    rests: Vec<SegmentRest>,
    /// One bit per place, which is set if the place is free. There are exactly as many bits as
    /// places.
    free: Vec<u64>,
    /// Index of the word of `free` where the search for the next free place starts.
    word: usize,
    live: usize,
}

/// The fields of a packet that the ends of its route need, aligned to a cache line.
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

/// Memory for one place in the table of packets, bytes, without the content of a datagram. The
/// table doubles when half of it is in use, so it takes two to four times this memory for each
/// packet in flight at the peak.
pub const BYTES_PER_PACKET: usize =
    size_of::<Transit>() + size_of::<Cargo>() + size_of::<SegmentRest>();

impl Slab {
    pub(super) fn new() -> Self {
        let (packets, cargo, rests, free) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Slab { packets, cargo, rests, free, word: 0, live: 0 }
    }

    /// Number of packets in the slab.
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

    /// A packet and its payload. The bytes of a datagram are moved out, not copied.
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

    /// Calls `look` with a packet and its payload. Of its changes, only those to the payload and
    /// the size are kept.
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
