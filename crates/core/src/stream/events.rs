//! Stream events for the application. They need no queue that could grow if the application does
//! not read them.

use super::streams::Streams;
use crate::wire::StreamId;

/// An event for the application.
///
/// Events are edge-triggered and merged: at most one event of each kind waits per stream, and
/// `Readable` is reported again only after more has become readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened this stream.
    Opened(StreamId),
    /// More bytes, or the end of the stream, can be read.
    Readable(StreamId),
    /// At least half of the send buffer is free again after an incomplete write.
    Writable(StreamId),
    /// The stream is finished, and the peer has all of its data.
    Acked(StreamId),
    /// The peer reset the stream; unread data is discarded.
    Reset {
        /// The stream.
        id: StreamId,
        /// The code of the peer's application.
        code: u64,
    },
    /// The peer wants no more bytes. Unless the end of the stream had been sent, the stream was
    /// reset with the same code.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The code of the peer's application.
        code: u64,
    },
    /// The peer allows further streams after an open was refused.
    Openable,
    /// Datagrams can be received.
    Datagram,
    /// There is space for datagrams again after one was refused.
    DatagramSpace,
}

/// Bit set of the kinds of event that wait on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventSet(u8);

impl EventSet {
    pub(super) const OPENED: EventSet = EventSet(1);
    pub(super) const READABLE: EventSet = EventSet(1 << 1);
    pub(super) const WRITABLE: EventSet = EventSet(1 << 2);
    pub(super) const ACKED: EventSet = EventSet(1 << 3);
    pub(super) const RESET: EventSet = EventSet(1 << 4);
    pub(super) const STOPPED: EventSet = EventSet(1 << 5);

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn add(&mut self, kind: EventSet) {
        self.0 |= kind.0;
    }

    pub(super) const fn remove(&mut self, kind: EventSet) {
        self.0 &= !kind.0;
    }

    /// Removes and returns the first kind in the order of the constants.
    const fn pop(&mut self) -> EventSet {
        let lowest = EventSet(self.0 & self.0.wrapping_neg());
        self.0 &= !lowest.0;
        lowest
    }
}

/// Waiting events that belong to no stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notices {
    pub(super) openable: bool,
    pub(super) datagram: bool,
    pub(super) datagram_space: bool,
}

impl Streams {
    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.poll_notice().or_else(|| self.poll_stream_event())
    }

    fn poll_notice(&mut self) -> Option<StreamEvent> {
        let notices = &mut self.notices;
        for (waiting, event) in [
            (&mut notices.openable, StreamEvent::Openable),
            (&mut notices.datagram, StreamEvent::Datagram),
            (&mut notices.datagram_space, StreamEvent::DatagramSpace),
        ] {
            if core::mem::take(waiting) {
                return Some(event);
            }
        }
        None
    }

    fn poll_stream_event(&mut self) -> Option<StreamEvent> {
        while let Some(id) = self.eventful.front().copied() {
            let Some(stream) = self.streams.get_mut(&id) else {
                self.eventful.pop_front();
                continue;
            };
            let kind = stream.events.pop();
            let (reset, stopped) = (stream.receive.reset, stream.send.stopped);
            if stream.events.is_empty() {
                stream.listed = false;
                self.eventful.pop_front();
                if stream.is_over() {
                    self.retire(id);
                }
            }
            let event = match kind {
                EventSet::OPENED => StreamEvent::Opened(id),
                EventSet::READABLE => StreamEvent::Readable(id),
                EventSet::WRITABLE => StreamEvent::Writable(id),
                EventSet::ACKED => StreamEvent::Acked(id),
                EventSet::RESET => StreamEvent::Reset { id, code: reset.unwrap_or_default() },
                EventSet::STOPPED => StreamEvent::Stopped { id, code: stopped.unwrap_or_default() },
                _ => continue,
            };
            return Some(event);
        }
        None
    }
}
