use anabranch_types::Time;

use super::{LinkId, Packet, Payload};
use crate::link::DropCause;

/// Sees what happens to every packet on every link, in the order of events.
///
/// Given to [`Engine::run_until_with`](super::Engine::run_until_with); a run without an observer pays
/// nothing for it.
pub trait Observer {
    /// Something happened to a packet.
    fn packet(&mut self, event: &PacketEvent<'_>);
}

/// Something that happened to a packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// The time.
    pub time: Time,
    /// On which link.
    pub link: LinkId,
    /// The kind.
    pub kind: PacketEventKind,
    /// The packet after the event.
    pub packet: &'a Packet,
    /// Contents of the packet.
    pub payload: &'a Payload,
}

/// Kind of an event that happens to a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEventKind {
    /// The packet arrived at the link and was accepted: it waits or is being serialised.
    Entered,
    /// The packet will not arrive. A packet that is refused never entered.
    Dropped(DropCause),
    /// The packet was marked CE; reported when it arrives, just before `Delivered`.
    Marked,
    /// The packet arrived at the far end of the link.
    Delivered,
}

impl<F: FnMut(&PacketEvent<'_>)> Observer for F {
    fn packet(&mut self, event: &PacketEvent<'_>) {
        self(event);
    }
}
