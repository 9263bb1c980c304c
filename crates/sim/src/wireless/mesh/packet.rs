use anabranch_types::Ecn;
use std::sync::Arc;

use super::route::Route;
use super::selection::NeighbourList;
use crate::engine::Payload;

/// A packet of the network layer.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// Serial number, which is the same at every station on the route. A copy that the source makes
    /// has a number of its own.
    pub(super) serial: u64,
    pub(super) source: u16,
    pub(super) target: u16,
    pub(super) load: Load,
    /// The route that the packet takes. For a request, this is the route taken so far.
    pub(super) route: Route,
    /// Index on the route of the station that the packet is being sent to, or has reached.
    pub(super) at: u8,
    pub(super) request: Option<Request>,
    pub(super) reply: Option<Box<Reply>>,
    pub(super) errors: Errors,
    /// How many times stations on the route have given the packet another route.
    pub(super) salvaged: u8,
    /// Number of stations that may still forward the packet.
    pub(super) lifetime: u8,
    /// The number that two copies share; `None` for a packet without a copy.
    pub(super) copy: Option<u64>,
    /// Whether the packet carries the number `copy` on the air.
    pub(super) is_numbered: bool,
}

/// Contents of a packet in addition to routing options.
#[derive(Clone, Debug)]
pub(super) enum Load {
    Nothing,
    Data(Arc<Data>),
    /// Asks a neighbour for its MAC address.
    ArpRequest,
    /// Answers with the MAC address.
    ArpReply,
}

/// A packet of a transport connection.
#[derive(Clone, Debug)]
pub(super) struct Data {
    /// Index of the connection's end to which the packet is sent.
    pub(super) port: u32,
    pub(super) stream: u32,
    /// Length including the transport and IP headers, bytes.
    pub(super) size: u32,
    pub(super) ecn: Ecn,
    pub(super) payload: Payload,
}

impl Data {
    /// Whether the packet carries only an acknowledgement.
    pub(super) fn is_acknowledgement(&self) -> bool {
        matches!(self.payload, Payload::Segment(segment) if !segment.carries_data())
    }
}

/// A route request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The request's number among those of its source.
    pub(super) number: u32,
    /// Whether the request is for neighbours only and must not be forwarded.
    pub(super) limited: bool,
}

/// A route reply.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// The route from the station that asked.
    pub(super) route: Route,
    /// The neighbours that each of the stations that forwarded the reply has heard.
    pub(super) neighbours: Vec<NeighbourList>,
}

/// A link that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkError {
    /// The station to which the error is addressed; `None` for every station that receives it.
    pub(super) tell: Option<u16>,
    pub(super) from: u16,
    pub(super) to: u16,
}

/// Maximum number of errors in a packet, as in ns-2.
const MAX_ERRORS: usize = 3;

/// The link errors that a packet carries, the newest last. The others were carried by error packets
/// that could not be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    errors: [Option<LinkError>; MAX_ERRORS],
}

impl Errors {
    /// Adds an error as the newest. Returns whether there was room.
    pub(super) fn push(&mut self, error: LinkError) -> bool {
        let place = self.errors.iter_mut().find(|place| place.is_none());
        place.is_some_and(|place| {
            *place = Some(error);
            true
        })
    }

    /// Removes the newest error and returns it.
    pub(super) fn pop(&mut self) -> Option<LinkError> {
        self.errors.iter_mut().rev().find_map(Option::take)
    }

    pub(super) fn last(&self) -> Option<LinkError> {
        self.errors.iter().rev().copied().find_map(|error| error)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = LinkError> {
        self.errors.into_iter().flatten()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors[0].is_none()
    }
}

/// Bytes of an IP header. It is counted twice in a data packet, as in ns-2, because the transport's
/// size includes it, too.
const IP_BYTES: u32 = 20;
/// Bytes of an ARP packet (RFC 826).
const ARP_BYTES: u32 = 28;
/// Bytes of an address.
const ADDRESS_BYTES: u32 = 4;

impl Packet {
    /// A packet without a route and without options.
    pub(super) fn new(source: u16, target: u16, load: Load) -> Self {
        Packet {
            serial: 0,
            source,
            target,
            load,
            route: Route::EMPTY,
            at: 0,
            request: None,
            reply: None,
            errors: Errors::default(),
            salvaged: 0,
            lifetime: 255,
            copy: None,
            is_numbered: false,
        }
    }

    /// Length passed to the MAC, bytes. The sizes of options are those of ns-2: 4 bytes fixed, 4
    /// for each address of the source route after the first, 8 for a request, 5 plus 4 per address
    /// for a reply, and 16 for each error, rounded up to a multiple of 4. A list of neighbours
    /// takes 4 bytes plus 4 per neighbour, and the number of a copy takes 4.
    pub(super) fn bytes(&self) -> u32 {
        let data = match &self.load {
            Load::ArpRequest | Load::ArpReply => return ARP_BYTES,
            Load::Data(data) => data.size,
            Load::Nothing => 0,
        };
        let addresses = |route: &Route| ADDRESS_BYTES * route.len() as u32;
        let mut options = 4 + addresses(&self.route).saturating_sub(ADDRESS_BYTES);
        if self.request.is_some() {
            options += 8;
        }
        if let Some(reply) = &self.reply {
            options += 5 + addresses(&reply.route);
            let lists = reply.neighbours.iter().map(|list| 1 + list.neighbours.len() as u32);
            options += ADDRESS_BYTES * lists.sum::<u32>();
        }
        options += 4 * u32::from(self.is_numbered);
        options += 16 * self.errors.iter().count() as u32;
        IP_BYTES + options.next_multiple_of(4) + data
    }

    /// Whether the packet carries only routing options.
    pub(super) fn is_routing(&self) -> bool {
        matches!(self.load, Load::Nothing)
    }

    /// The station that the packet is being sent to or has reached.
    pub(super) fn here(&self) -> Option<u16> {
        self.route.get(self.at.into())
    }

    /// The station after [`here`](Self::here) on the route.
    pub(super) fn next(&self) -> Option<u16> {
        self.route.get(usize::from(self.at) + 1)
    }
}

/// The packets of all stations, by token.
#[derive(Debug, Default)]
pub(super) struct Packets {
    places: Vec<Option<Packet>>,
    free: Vec<u32>,
}

impl Packets {
    pub(super) fn insert(&mut self, packet: Packet) -> u32 {
        let token = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        if let Some(place) = self.places.get_mut(token as usize) {
            *place = Some(packet);
        }
        token
    }

    pub(super) fn remove(&mut self, token: u32) -> Option<Packet> {
        let packet = self.places.get_mut(token as usize)?.take()?;
        self.free.push(token);
        Some(packet)
    }

    pub(super) fn get(&self, token: u32) -> Option<&Packet> {
        self.places.get(token as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, token: u32) -> Option<&mut Packet> {
        self.places.get_mut(token as usize)?.as_mut()
    }

    /// Number of packets stored.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(size: u32) -> Load {
        let (ecn, payload) = (Ecn::NotEct, Payload::Filler);
        Load::Data(Arc::new(Data { port: 0, stream: 0, size, ecn, payload }))
    }

    #[test]
    fn sizes_are_those_of_ns2() {
        let route = Route::new(&[0, 1, 2, 3, 4, 5, 6, 7]);
        // The packet has 540 bytes of TCP, 20 of IP, and 4 + 7 · 4 of options and source route.
        let packet = Packet { route, ..Packet::new(0, 7, data(540)) };
        assert_eq!(packet.bytes(), 592);
        // The request has 20 bytes of IP, 4 + 8 of options and request, and 2 · 4 of the route so
        // far.
        let request = Some(Request { number: 1, limited: false });
        let route = Route::new(&[0, 1, 2]);
        let packet = Packet { route, request, ..Packet::new(0, 7, Load::Nothing) };
        assert_eq!(packet.bytes(), 40);
        // The reply has 20 bytes of IP, 4 + 2 · 4 of options and reverse route, and 5 + 3 · 4 of
        // the reply, rounded up from 49 to 52 bytes. A list of 3 neighbours is added later.
        let list = NeighbourList { station: 1, neighbours: vec![0, 2, 8] };
        let neighbours = Vec::new();
        let mut reply = Reply { route, neighbours };
        let packet = |reply: &Reply| Packet {
            route: route.reversed(),
            reply: Some(Box::new(reply.clone())),
            ..Packet::new(2, 0, Load::Nothing)
        };
        assert_eq!(packet(&reply).bytes(), 52);
        reply.neighbours.push(list);
        assert_eq!(packet(&reply).bytes(), 68);
    }

    #[test]
    fn a_packet_holds_three_errors() {
        let mut errors = Errors::default();
        let error = |from| LinkError { tell: Some(9), from, to: from + 1 };
        assert!((0..3).all(|from| errors.push(error(from))));
        assert!(!errors.push(error(3)));
        assert_eq!(errors.pop(), Some(error(2)));
        assert_eq!(errors.last(), Some(error(1)));
        assert_eq!(errors.iter().count(), 2);
    }

    #[test]
    fn tokens_are_used_again() {
        let mut packets = Packets::default();
        let one = packets.insert(Packet::new(0, 1, Load::Nothing));
        let two = packets.insert(Packet::new(0, 2, Load::Nothing));
        assert!(packets.remove(one).is_some() && packets.remove(one).is_none());
        assert_eq!(packets.insert(Packet::new(0, 3, Load::Nothing)), one);
        assert_eq!(packets.get(two).map(|packet| packet.target), Some(2));
        assert_eq!(packets.len(), 2);
    }
}
