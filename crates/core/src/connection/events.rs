//! Events for the application.

use anabranch_types::PathId;

use super::{CloseReason, Connection};
use crate::stream::StreamEvent;

/// Something the application may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets flow under the connection's keys.
    Established,
    /// Something about a stream or the datagram queue.
    Stream(StreamEvent),
    /// A path became usable.
    PathUp(PathId),
    /// A path stopped answering; its data goes over others.
    PathDown(PathId),
    /// A path's address changed, by either side or by a translator between them.
    PathMoved(PathId),
    /// The peer can be reached at further addresses: [`Connection::peer_addresses`].
    PeerAddresses,
    /// A path was taken out of use for good, by either side.
    PathClosed(PathId),
    /// No path had an answer to its last packets; repeated while that lasts. If this side opened
    /// the connection, the driver asks the peer whether it still has it:
    /// [`Router::check`](crate::endpoint::Router::check). Endpoints do so by themselves.
    CheckDue,
    /// The peer is silent on every path.
    Silent,
    /// The peer is heard again.
    Heard,
    /// Everything written so far is at the peer.
    Drained,
    /// The connection wants connection ids for further paths, or has some to give back: the driver calls
    /// [`Router::exchange_ids`](crate::endpoint::Router::exchange_ids). Endpoints do so by themselves.
    ConnectionIds,
    /// The connection is over.
    Closed(CloseReason),
}

impl Connection {
    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        // Streams of a first packet are announced after the connection, which may want ids even before that.
        if let Some(Event::Established | Event::ConnectionIds) = self.events.front() {
            return self.events.pop_front();
        }
        if let Some(event) = self.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        self.events.pop_front()
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Tells once when everything written has arrived.
    pub(super) fn note_drained(&mut self) {
        let drained = self.is_drained();
        if drained && !self.was_drained {
            self.emit(Event::Drained);
        }
        self.was_drained = drained;
    }
}
