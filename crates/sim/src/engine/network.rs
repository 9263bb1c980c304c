use anabranch_types::{Ecn, Time};

use super::digest::Digest;
use super::links::{Due, Links, Offer};
use super::packet::{Packet, Payload, Slab, Transit};
use super::topology::{END, Topology};
use super::wheel::Wheel;
use super::{
    AgentId, LinkId, Observer, PacketEvent, PacketEventKind, PortId, RouteId, TopologyError,
};
use crate::link::{Delivery, DropCause, Dropped, LinkOutput};

/// Everything in an engine except the agents: links, packets and the timer wheel.
#[derive(Debug)]
pub(crate) struct Network {
    pub(super) now: Time,
    wheel: Wheel,
    pub(super) packets: Slab,
    pub(super) links: Links,
    ports: Vec<Port>,
    /// The links of all routes, each route followed by [`END`].
    hops: Vec<u32>,
    /// Outputs of the link that is being handled.
    outputs: Vec<LinkOutput<u32>>,
    /// Packets that the first link refused when they were sent.
    pub(super) refused: Vec<Outcome>,
    /// Empty buffers of datagrams that have arrived or were dropped.
    buffers: Vec<Vec<u8>>,
    pub(super) digest: Digest,
    pub(super) packet_hops: u64,
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

/// The fate of a packet, which the engine must report to an agent after it has handled a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The packet has come to the end of its route.
    Arrived(u32),
    /// The packet will not arrive.
    Dropped(u32, DropCause),
}

/// Maximum number of buffers kept for reuse.
const MAX_BUFFERS: usize = 1 << 16;

/// The observer, if there is one.
pub(crate) type Watch<'a> = Option<&'a mut (dyn Observer + 'a)>;

impl Network {
    pub(super) fn new(topology: &Topology, seed: u64) -> Result<Self, TopologyError> {
        Ok(Network {
            now: Time::ZERO,
            wheel: Wheel::new(),
            packets: Slab::new(),
            links: Links::new(topology.all_links(), seed).map_err(TopologyError::Link)?,
            ports: Vec::new(),
            hops: topology.hops().to_vec(),
            outputs: Vec::new(),
            refused: Vec::new(),
            buffers: Vec::new(),
            digest: Digest::new(),
            packet_hops: 0,
        })
    }

    /// Makes an event source of the wheel due at `time` or earlier. Sources are the links, by id,
    /// and then the agents.
    #[inline]
    pub(super) fn arm(&mut self, source: u32, time: Time) {
        self.wheel.arm(&mut self.links, source, time);
    }

    /// The next event source that is due by `limit`. The time of its event becomes the current
    /// time.
    #[inline]
    pub(super) fn next_due(&mut self, limit: Time) -> Option<u32> {
        let (time, source) = self.wheel.pop(&mut self.links, limit)?;
        self.now = time;
        Some(source)
    }

    /// When the next event source is due; `None` if none is.
    pub(super) fn next_event(&mut self) -> Option<Time> {
        self.wheel.next(&mut self.links)
    }

    /// Opens two ports that are each other's peer. Their routes start at `starts` in `hops`.
    pub(super) fn connect(
        &mut self,
        agents: [AgentId; 2],
        routes: [RouteId; 2],
        starts: [u32; 2],
    ) -> [PortId; 2] {
        let first = self.ports.len() as u32;
        let ports = [PortId(first), PortId(first + 1)];
        for side in 0..2 {
            self.ports.push(Port {
                agent: agents[side],
                peer: ports[1 - side],
                route: routes[side],
                start: starts[side],
            });
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

    /// Sends a packet from a port to its peer. A packet that the first link refuses is put into
    /// `refused` and reported later, because the sending agent is still in a call.
    #[expect(clippy::too_many_arguments, reason = "a packet, by its fields")]
    pub(crate) fn send(
        &mut self,
        watch: &mut Watch<'_>,
        from: PortId,
        stream: u32,
        size: u32,
        ecn: Ecn,
        payload: Payload,
    ) {
        let Some(&Port { peer, start, .. }) = self.ports.get(from.0 as usize) else {
            return;
        };
        let Some(link) = self.hops.get(start as usize).copied() else { return };
        let packet = Packet { sent: self.now, to: peer, stream, size, ecn, hop: start + 1 };
        let handle = self.packets.insert(packet, payload);
        if let Some(cause) = self.enter(watch, LinkId(link), handle, size) {
            let outcome = self.lose(watch, LinkId(link), handle, cause);
            self.refused.push(outcome);
        }
    }

    /// Handles a link that is due, up to the first outcome that concerns an agent, and returns this
    /// outcome. [`next_output`](Self::next_output) returns the following ones.
    #[inline(always)]
    pub(super) fn handle_link(&mut self, watch: &mut Watch<'_>, link: LinkId) -> Option<Outcome> {
        match self.links.take(link.0 as usize, &mut self.packets) {
            Due::Packet(taken) => {
                if let Some(time) = taken.following {
                    self.wheel.start(&mut self.links, link.0, time);
                }
                if taken.lost {
                    Some(self.lose(watch, link, taken.handle, DropCause::Random))
                } else {
                    self.arrive(watch, link, taken.handle)
                }
            }
            Due::Nothing => None,
            Due::Shaped => {
                self.advance_shaped(link);
                self.next_output(watch, link)
            }
        }
    }

    /// Collects the outputs of a shaped link at the current time, for [`next_output`](Self::next_output).
    fn advance_shaped(&mut self, link: LinkId) {
        let Some(shaped) = self.links.shaped_mut(link.0 as usize) else { return };
        let outputs = &mut self.outputs;
        shaped.advance(self.now, |output| outputs.push(output));
        let next = shaped.next_event();
        if let Some(faults) = self.links.faults_mut(link.0 as usize) {
            faults.pass(outputs, &mut self.packets);
        }
        outputs.reverse();
        if let Some(time) = next {
            self.arm(link.0, time);
        }
    }

    /// Handles the collected outputs up to the next outcome that concerns an agent, and returns
    /// this outcome; `None` if there is no further one.
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

    /// Moves a packet at the end of `link` to the next link of its route, or reports its arrival.
    #[inline(always)]
    fn arrive(&mut self, watch: &mut Watch<'_>, link: LinkId, handle: u32) -> Option<Outcome> {
        self.packet_hops += 1;
        let packet = self.packets.packet_mut(handle);
        let next = self.hops.get(packet.hop as usize).copied().unwrap_or(END);
        packet.hop += 1;
        let (size, ecn) = (packet.size, packet.ecn);
        self.digest.fold(self.now, link, size, ecn, None);
        self.tell(watch, link, PacketEventKind::Delivered, handle);
        if next == END {
            return Some(Outcome::Arrived(handle));
        }
        let cause = self.enter(watch, LinkId(next), handle, size)?;
        Some(self.lose(watch, LinkId(next), handle, cause))
    }

    /// Puts a packet into a link. Returns the cause if the link refuses the packet.
    #[inline(always)]
    fn enter(
        &mut self,
        watch: &mut Watch<'_>,
        link: LinkId,
        handle: u32,
        size: u32,
    ) -> Option<DropCause> {
        match self.links.offer(link.0 as usize, &mut self.packets, handle, size, self.now) {
            Offer::First(time) => self.wheel.start(&mut self.links, link.0, time),
            Offer::Behind => {}
            Offer::Refused => return Some(DropCause::QueueFull),
            Offer::Shaped => {
                if let Some(cause) = self.enter_shaped(link, handle) {
                    return Some(cause);
                }
            }
        }
        self.tell(watch, link, PacketEventKind::Entered, handle);
        None
    }

    /// The part of [`enter`](Self::enter) for a link that is not plain. It is not inlined, because
    /// a small event loop is faster.
    #[inline(never)]
    fn enter_shaped(&mut self, link: LinkId, handle: u32) -> Option<DropCause> {
        let &Transit { size, ecn, .. } = self.packets.packet(handle);
        let shaped = self.links.shaped_mut(link.0 as usize)?;
        if let Err(refused) = shaped.enqueue(self.now, size, ecn, handle) {
            return Some(refused.cause);
        }
        if let Some(time) = shaped.next_event() {
            self.arm(link.0, time);
        }
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
        let &Transit { size, ecn, .. } = self.packets.packet(handle);
        self.digest.fold(self.now, link, size, ecn, Some(cause));
        self.tell(watch, link, PacketEventKind::Dropped(cause), handle);
        Outcome::Dropped(handle, cause)
    }

    #[inline]
    fn tell(&mut self, watch: &mut Watch<'_>, link: LinkId, kind: PacketEventKind, handle: u32) {
        if let Some(observer) = watch {
            let time = self.now;
            self.packets.with_payload(handle, |packet, payload| {
                observer.packet(&PacketEvent { time, link, kind, packet, payload });
            });
        }
    }
}
