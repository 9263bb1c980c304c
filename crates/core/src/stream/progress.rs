//! The progress of streams, for measurements.

use core::ops::Range;

use super::streams::Streams;
use crate::wire::StreamId;

/// The progress of a stream on this side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamProgress {
    /// Offset of the next byte to be put into a symbol. All bytes below it have been sent at least
    /// once or are about to be sent.
    pub sent: u64,
    /// All bytes below this offset have arrived.
    pub arrived: u64,
    /// Offset of the next byte for the application.
    pub read: u64,
}

impl Streams {
    /// The progress of a stream; `None` if the stream does not exist or no longer exists.
    pub fn progress(&self, id: StreamId) -> Option<StreamProgress> {
        let stream = self.streams.get(&id)?;
        Some(StreamProgress {
            sent: stream.send.sent,
            arrived: stream.receive.arrived(),
            read: stream.receive.read,
        })
    }

    /// Whether the stream still exists and all bytes of `range` have arrived.
    pub fn holds(&self, id: StreamId, range: Range<u64>) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.receive.holds(range))
    }
}
