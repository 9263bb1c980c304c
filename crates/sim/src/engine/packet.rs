use anabranch_tcp::Segment;
use anabranch_types::Time;

use super::{PortId, RouteId};
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

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The links it takes.
    pub route: RouteId,
    /// The port at the far end of its route.
    pub to: PortId,
    /// Which of the conversations between the two ports it belongs to; 0 where there is only one.
    pub stream: u32,
    /// Bytes on the wire, all headers included.
    pub size: u32,
    /// Its ECN codepoint as of now.
    pub ecn: Ecn,
    /// When its sender sent it.
    pub sent: Time,
    /// Where it is in the table of all routes' links.
    pub(super) position: u32,
    /// The packet behind it in the same link, or the next free slot.
    pub(super) next: u32,
    /// When its last bit leaves the link's transmitter.
    pub(super) finish: u64,
}

/// No packet: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Every packet in the network, by handle. What a link needs of it and what it carries lie apart, so
/// that a hop touches the former alone.
#[derive(Debug)]
pub(super) struct Slab {
    packets: Vec<Packet>,
    payloads: Vec<Payload>,
    free: u32,
    live: usize,
}

impl Slab {
    pub(super) fn new() -> Self {
        Slab { packets: Vec::new(), payloads: Vec::new(), free: NONE, live: 0 }
    }

    /// Packets inside.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[inline]
    pub(super) fn insert(&mut self, packet: Packet, payload: Payload) -> u32 {
        self.live += 1;
        let handle = self.free;
        if handle == NONE {
            self.packets.push(packet);
            self.payloads.push(payload);
            return self.packets.len() as u32 - 1;
        }
        let slot = &mut self.packets[handle as usize];
        self.free = slot.next;
        *slot = packet;
        self.payloads[handle as usize] = payload;
        handle
    }

    #[inline]
    pub(super) fn remove(&mut self, handle: u32) -> (Packet, Payload) {
        self.live -= 1;
        let slot = &mut self.packets[handle as usize];
        let packet = *slot;
        slot.next = self.free;
        self.free = handle;
        let payload = &mut self.payloads[handle as usize];
        (packet, core::mem::replace(payload, Payload::Filler))
    }

    #[inline]
    pub(super) fn packet(&self, handle: u32) -> &Packet {
        &self.packets[handle as usize]
    }

    #[inline]
    pub(super) fn packet_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.packets[handle as usize]
    }

    pub(super) fn payload(&self, handle: u32) -> &Payload {
        &self.payloads[handle as usize]
    }
}
