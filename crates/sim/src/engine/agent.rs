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
    /// The agent has got a port: the local end of a path. Called once per path, in the order of the calls of
    /// [`Engine::connect`](super::Engine::connect), before the run.
    fn attach(&mut self, port: PortId);

    /// A packet has arrived at one of the agent's ports.
    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>);

    /// The agent's start has come, or the time that [`next_timer`](Self::next_timer) named, or the agent was
    /// [woken](super::Engine::wake).
    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>);

    /// When to call [`handle_timer`](Self::handle_timer) next, if at all. Asked after every call; the
    /// answer may move either way. A time that is not later than the current one means at once, so
    /// `handle_timer` must leave a later time or none.
    fn next_timer(&self) -> Option<Time>;

    /// A packet that the agent sent will not arrive. Real senders never learn of that at once: this is
    /// for statistics, and for oracles such as those of explicit loss notification.
    fn handle_loss(&mut self, _loss: Loss<'_>, _out: &mut Outbox<'_>) {}
}

/// A packet at the end of its route.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The current time.
    pub now: Time,
    /// The port that the packet arrived at.
    pub port: PortId,
    /// Which of the conversations between the two ports the packet belongs to.
    pub stream: u32,
    /// Bytes on the wire.
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
    /// The current time: for random loss, when the packet would have arrived at the end of the link that lost it.
    pub now: Time,
    /// The port that the packet was sent from.
    pub port: PortId,
    /// Which of the conversations between the two ports the packet belongs to.
    pub stream: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// When the packet was sent.
    pub sent: Time,
    /// The reason.
    pub cause: DropCause,
    /// Contents of the packet.
    pub payload: &'a Payload,
}

/// Where an agent puts what it sends.
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

    /// Sends a packet of `size` bytes on the wire, headers included, from `port` to its peer: it enters
    /// the first link of the port's route at once.
    #[inline]
    pub fn send(&mut self, port: PortId, size: u32, ecn: Ecn, payload: Payload) {
        self.send_in(port, 0, size, ecn, payload);
    }

    /// Like [`send`](Self::send), as part of one of several conversations between the two ports.
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
