use anabranch_types::Time;

use super::{LinkId, Packet, Payload};
use crate::link::DropCause;

/// Sees what happens to every packet on every link, in the order of events.
///
/// An observer is passed to [`Engine::run_until_with`](super::Engine::run_until_with). Without an
/// observer, a run has no extra cost.
pub trait Observer {
    /// Called for every event of a packet.
    fn packet(&mut self, event: &PacketEvent<'_>);
}

/// An event of a packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// The time of the event.
    pub time: Time,
    /// The link on which the event happened.
    pub link: LinkId,
    /// The kind of event.
    pub kind: PacketEventKind,
    /// The packet after the event.
    pub packet: &'a Packet,
    /// Contents of the packet.
    pub payload: &'a Payload,
}

/// Kind of an event that happens to a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEventKind {
    /// The link accepted the packet, which now waits or is being serialised.
    Entered,
    /// The packet was dropped. A packet that the link refuses has no `Entered` event.
    Dropped(DropCause),
    /// The packet was marked CE. This is reported when the packet arrives, just before `Delivered`.
    Marked,
    /// The packet arrived at the far end of the link.
    Delivered,
}

impl<F: FnMut(&PacketEvent<'_>)> Observer for F {
    fn packet(&mut self, event: &PacketEvent<'_>) {
        self(event);
    }
}
