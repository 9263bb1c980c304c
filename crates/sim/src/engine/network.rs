use anabranch_types::Time;

use super::digest::Digest;
use super::packet::{Packet, Payload, Slab};
use super::plain::{Offer, Plain};
use super::topology::{END, Topology};
use super::wheel::Wheel;
use super::{
    AgentId, LinkId, Observer, PacketEvent, PacketEventKind, PortId, RouteId, TopologyError,
};
use crate::link::{Delivery, DropCause, Dropped, Ecn, Link, LinkOutput};

/// Everything but the agents: links with packets inside, and what is due when.
///
/// Sources of the wheel are the links by id, then the agents.
#[derive(Debug)]
pub(crate) struct Network {
    pub(super) now: Time,
    pub(super) wheel: Wheel,
    pub(super) packets: Slab,
    pub(super) links: Vec<Channel>,
    ports: Vec<Port>,
    /// The links of all routes, each route followed by [`END`].
    hops: Vec<u32>,
    /// Outputs of the link that is being handled.
    outputs: Vec<LinkOutput<u32>>,
    /// Packets that were refused as they were sent.
    pub(super) refused: Vec<Outcome>,
    /// Empty buffers of datagrams that have arrived or were dropped.
    buffers: Vec<Vec<u8>>,
    pub(super) digest: Digest,
    pub(super) packet_hops: u64,
}

/// A link: by far most are plain.
#[derive(Debug)]
pub(super) enum Channel {
    Plain(Plain),
    Shaped(Box<Link<u32>>),
}

/// The local end of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) agent: AgentId,
    pub(super) peer: PortId,
    pub(super) route: RouteId,
    /// Where the route to the peer starts in `hops`.
    start: u32,
}

/// What an agent has to hear of after a link was handled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The packet has come to the end of its route.
    Arrived(u32),
    /// The packet will not arrive.
    Dropped(u32, DropCause),
}

/// Buffers kept for reuse, at most.
const MAX_BUFFERS: usize = 1 << 16;

/// Whoever watches, if anyone.
pub(crate) type Watch<'a> = Option<&'a mut (dyn Observer + 'a)>;

impl Network {
    pub(super) fn new(topology: &Topology, seed: u64) -> Result<Self, TopologyError> {
        let mut wheel = Wheel::new();
        let mut links = Vec::with_capacity(topology.links());
        for link in topology.all_links() {
            wheel.add_source();
            links.push(match Plain::new(&link.config, seed, &link.name) {
                Some(plain) => Channel::Plain(plain),
                None => {
                    let link = Link::new(&link.config, seed, &link.name);
                    Channel::Shaped(Box::new(link.map_err(TopologyError::Link)?))
                }
            });
        }
        Ok(Network {
            now: Time::ZERO,
            wheel,
            packets: Slab::new(),
            links,
            ports: Vec::new(),
            hops: topology.hops().to_vec(),
            outputs: Vec::new(),
            refused: Vec::new(),
            buffers: Vec::new(),
            digest: Digest::new(),
            packet_hops: 0,
        })
    }

    /// Opens two ports that are each other's peer; the routes start at `starts` in the table.
    pub(super) fn connect(
        &mut self,
        agents: [AgentId; 2],
        routes: [RouteId; 2],
        starts: [u32; 2],
    ) -> [PortId; 2] {
        let first = self.ports.len() as u32;
        let ports = [PortId(first), PortId(first + 1)];
        for side in 0..2 {
            let (agent, route, start) = (agents[side], routes[side], starts[side]);
            self.ports.push(Port { agent, peer: ports[1 - side], route, start });
        }
        ports
    }

    pub(super) fn port(&self, port: PortId) -> Option<&Port> {
        self.ports.get(port.0 as usize)
    }

    /// The empty buffer of an earlier datagram, or a new one.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Keeps the buffer of a payload that is no longer needed.
    pub(super) fn recycle(&mut self, payload: Payload) {
        if let Payload::Datagram(mut buffer) = payload
            && self.buffers.len() < MAX_BUFFERS
        {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Sends a packet from a port to its peer. What the first link refuses waits in `refused`, as its
    /// agent is being called.
    pub(crate) fn send(
        &mut self,
        watch: &mut Watch<'_>,
        from: PortId,
        stream: u32,
        size: u32,
        ecn: Ecn,
        payload: Payload,
    ) {
        let Some(&Port { peer, route, start, .. }) = self.port(from) else { return };
        let Some(link) = self.hops.get(start as usize).copied() else { return };
        let sent = self.now;
        let (position, next, finish) = (start, 0, 0);
        let packet = Packet { route, to: peer, stream, size, ecn, sent, position, next, finish };
        let handle = self.packets.insert(packet, payload);
        if let Some(cause) = self.enter(watch, LinkId(link), handle) {
            let outcome = self.lose(watch, LinkId(link), handle, cause);
            self.refused.push(outcome);
        }
    }

    /// Handles the first packet to arrive over a plain link. `None` if nothing but the network is
    /// concerned.
    #[inline]
    pub(super) fn handle_plain(&mut self, watch: &mut Watch<'_>, link: LinkId) -> Option<Outcome> {
        let Some(Channel::Plain(plain)) = self.links.get_mut(link.0 as usize) else { return None };
        let taken = plain.take(&mut self.packets)?;
        if let Some(time) = taken.following {
            self.wheel.arm(link.0, time);
        }
        if taken.lost {
            Some(self.lose(watch, link, taken.handle, DropCause::Random))
        } else {
            self.arrive(watch, link, taken.handle)
        }
    }

    /// Collects what a shaped link has for the present, for [`next_output`](Self::next_output).
    pub(super) fn advance_shaped(&mut self, link: LinkId) {
        let Some(Channel::Shaped(shaped)) = self.links.get_mut(link.0 as usize) else { return };
        let outputs = &mut self.outputs;
        shaped.advance(self.now, |output| outputs.push(output));
        outputs.reverse();
        if let Some(time) = shaped.next_event() {
            self.wheel.arm(link.0, time);
        }
    }

    /// Handles the next of the outputs collected until there are no more, or one of them concerns
    /// more than the network.
    pub(super) fn next_output(&mut self, watch: &mut Watch<'_>, link: LinkId) -> Option<Outcome> {
        while let Some(output) = self.outputs.pop() {
            let outcome = match output {
                LinkOutput::Dropped(Dropped { token, cause, .. }) => {
                    Some(self.lose(watch, link, token, cause))
                }
                LinkOutput::Delivered(Delivery { token, ecn, .. }) => {
                    let packet = self.packets.packet_mut(token);
                    if core::mem::replace(&mut packet.ecn, ecn) != ecn {
                        self.tell(watch, link, PacketEventKind::Marked, token);
                    }
                    self.arrive(watch, link, token)
                }
            };
            if outcome.is_some() {
                return outcome;
            }
        }
        None
    }

    /// A packet has come to the end of `link`: on to the next one, or it has arrived.
    #[inline]
    fn arrive(&mut self, watch: &mut Watch<'_>, link: LinkId, handle: u32) -> Option<Outcome> {
        self.packet_hops += 1;
        let packet = self.packets.packet_mut(handle);
        packet.position += 1;
        let (position, size, ecn) = (packet.position, packet.size, packet.ecn);
        self.digest.fold(self.now, link, size, ecn, None);
        self.tell(watch, link, PacketEventKind::Delivered, handle);
        let next = self.hops.get(position as usize).copied().unwrap_or(END);
        if next == END {
            return Some(Outcome::Arrived(handle));
        }
        let cause = self.enter(watch, LinkId(next), handle)?;
        Some(self.lose(watch, LinkId(next), handle, cause))
    }

    /// Puts a packet into a link; the cause if the link refuses it.
    #[inline]
    fn enter(&mut self, watch: &mut Watch<'_>, link: LinkId, handle: u32) -> Option<DropCause> {
        match self.links.get_mut(link.0 as usize)? {
            Channel::Plain(plain) => match plain.offer(&mut self.packets, handle, self.now) {
                Offer::First(time) => self.wheel.arm(link.0, time),
                Offer::Behind => {}
                Offer::Refused => return Some(DropCause::QueueFull),
            },
            Channel::Shaped(shaped) => {
                let Packet { size, ecn, .. } = *self.packets.packet(handle);
                if let Err(refused) = shaped.enqueue(self.now, size, ecn, handle) {
                    return Some(refused.cause);
                }
                if let Some(time) = shaped.next_event() {
                    self.wheel.arm(link.0, time);
                }
            }
        }
        self.tell(watch, link, PacketEventKind::Entered, handle);
        None
    }

    /// Records that a packet was dropped by `link`.
    fn lose(
        &mut self,
        watch: &mut Watch<'_>,
        link: LinkId,
        handle: u32,
        cause: DropCause,
    ) -> Outcome {
        let Packet { size, ecn, .. } = *self.packets.packet(handle);
        self.digest.fold(self.now, link, size, ecn, Some(cause));
        self.tell(watch, link, PacketEventKind::Dropped(cause), handle);
        Outcome::Dropped(handle, cause)
    }

    #[inline]
    fn tell(&self, watch: &mut Watch<'_>, link: LinkId, kind: PacketEventKind, handle: u32) {
        if let Some(observer) = watch {
            let (packet, payload) = (self.packets.packet(handle), self.packets.payload(handle));
            observer.packet(&PacketEvent { time: self.now, link, kind, packet, payload });
        }
    }
}
