//! Events for the application.

use anabranch_types::PathId;

use super::{CloseReason, Connection};
use crate::stream::StreamEvent;

/// An event that the application may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets have been exchanged under the connection's keys.
    Established,
    /// An event of a stream or of the datagram queue.
    Stream(StreamEvent),
    /// A path became usable.
    PathUp(PathId),
    /// A path stopped answering; its data goes over other paths.
    PathDown(PathId),
    /// A path's address changed, by either side or by a translator between them.
    PathMoved(PathId),
    /// The peer can be reached at further addresses: [`Connection::peer_addresses`].
    PeerAddresses,
    /// A path was closed by either side.
    PathClosed(PathId),
    /// No path had an answer to its last packets. The event is repeated while this lasts. If this
    /// side opened the connection, the driver asks the peer whether it still has the connection:
    /// [`Router::check`](crate::endpoint::Router::check). Endpoints do so by themselves.
    CheckDue,
    /// The peer has become silent on every path.
    Silent,
    /// Packets of the peer arrive again.
    Heard,
    /// All data written so far has reached the peer.
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
        // The connection is announced before the streams of its first packet. It may ask for ids
        // even before that.
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

    /// Emits an event once when all written data has arrived.
    pub(super) fn note_drained(&mut self) {
        let drained = self.is_drained();
        if drained && !self.was_drained {
            self.emit(Event::Drained);
        }
        self.was_drained = drained;
    }
}
