//! The interface of agents, which send and receive in an engine.

use std::any::Any;
use std::fmt::Debug;

use anabranch_types::{Ecn, Time};

use super::{Network, Payload, PortId, Watch};
use crate::link::DropCause;

/// A protocol endpoint, an application, or both, driven by packets and its own timer.
///
/// An agent knows time only as an argument, sends through the [`Outbox`] it is given, and draws random
/// numbers only from substreams named after itself.
pub trait Agent: Any + Debug + Send {
    /// Tells the agent about a new port: the local end of a path. Called once per path, in the
    /// order of the calls of [`Engine::connect`](super::Engine::connect), before the run.
    fn attach(&mut self, port: PortId);

    /// A packet has arrived at one of the agent's ports.
    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>);

    /// Called at the agent's start, at the time that [`next_timer`](Self::next_timer) returned, and
    /// when the agent is [woken](super::Engine::wake).
    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>);

    /// When to call [`handle_timer`](Self::handle_timer) next; `None` for never. The engine asks
    /// after every call, and the time may become earlier or later. A time that is not in the future
    /// means at once, so after `handle_timer` the agent must return a later time or `None`.
    fn next_timer(&self) -> Option<Time>;

    /// A packet that the agent sent will not arrive. A real sender never learns this at once: the
    /// call is for statistics, and for oracles such as explicit loss notification.
    fn handle_loss(&mut self, _loss: Loss<'_>, _out: &mut Outbox<'_>) {}
}

/// A packet at the end of its route.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The current time.
    pub now: Time,
    /// The port that the packet arrived at.
    pub port: PortId,
    /// Number of the conversation between the two ports that the packet belongs to.
    pub stream: u32,
    /// Size on the wire, bytes.
    pub size: u32,
    /// The ECN codepoint that the packet arrived with.
    pub ecn: Ecn,
    /// When the packet was sent.
    pub sent: Time,
    /// Contents of the packet. The agent may take a datagram's buffer; a buffer left here is reused.
    pub payload: &'a mut Payload,
}

/// A packet that was dropped somewhere on its route.
#[derive(Debug)]
pub struct Loss<'a> {
    /// The current time. For random loss, this is when the packet would have arrived at the end of
    /// the link that lost it.
    pub now: Time,
    /// The port that the packet was sent from.
    pub port: PortId,
    /// Number of the conversation between the two ports that the packet belongs to.
    pub stream: u32,
    /// Size on the wire, bytes.
    pub size: u32,
    /// When the packet was sent.
    pub sent: Time,
    /// The reason for the drop.
    pub cause: DropCause,
    /// Contents of the packet.
    pub payload: &'a Payload,
}

/// The interface through which an agent sends packets.
pub struct Outbox<'a> {
    network: &'a mut Network,
    watch: Watch<'a>,
}

impl Debug for Outbox<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("network", &self.network).finish_non_exhaustive()
    }
}

impl<'a> Outbox<'a> {
    #[inline]
    pub(crate) fn new<'b>(network: &'a mut Network, watch: &'a mut Watch<'b>) -> Self
    where
        'b: 'a,
    {
        let watch = watch.as_mut().map(|observer| &mut **observer as _);
        Outbox { network, watch }
    }

    /// Sends a packet of `size` bytes on the wire, headers included, from `port` to its peer. The
    /// packet enters the first link of the port's route at once.
    #[inline]
    pub fn send(&mut self, port: PortId, size: u32, ecn: Ecn, payload: Payload) {
        self.send_in(port, 0, size, ecn, payload);
    }

    /// Like [`send`](Self::send), but the packet belongs to the conversation `stream` between the
    /// two ports.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "a packet, by its fields")]
    pub fn send_in(&mut self, port: PortId, stream: u32, size: u32, ecn: Ecn, payload: Payload) {
        self.network.send(&mut self.watch, port, stream, size, ecn, payload);
    }

    /// An empty buffer for a datagram, reused from an earlier datagram if possible, which saves an allocation.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.network.buffer()
    }
}
