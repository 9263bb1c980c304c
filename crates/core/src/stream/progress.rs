//! The progress of streams, for measurements.

use core::ops::Range;

use super::streams::Streams;
use crate::wire::StreamId;

/// How far a stream has come on this side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamProgress {
    /// Offset of the next byte to be put into a symbol: everything below has been sent at least once, or
    /// is about to be.
    pub sent: u64,
    /// Everything below this offset has arrived.
    pub arrived: u64,
    /// Offset of the next byte for the application.
    pub read: u64,
}

impl Streams {
    /// How far a stream has come; `None` if it does not exist, or no longer does.
    pub fn progress(&self, id: StreamId) -> Option<StreamProgress> {
        let stream = self.streams.get(&id)?;
        Some(StreamProgress {
            sent: stream.send.sent,
            arrived: stream.receive.arrived(),
            read: stream.receive.read,
        })
    }

    /// Whether all bytes of `range` have arrived on a stream that is still known.
    pub fn holds(&self, id: StreamId, range: Range<u64>) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.receive.holds(range))
    }
}
