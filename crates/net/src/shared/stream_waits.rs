//! Counts how often opening a stream had to wait.

use super::ConnectionShared;
use crate::log::{self, Voice};
use std::sync::atomic::{AtomicU64, Ordering};

/// How often opening a stream had to wait because the peer allows no more at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamWaits {
    /// Streams that wait now.
    pub waiting: u64,
    /// Streams that have waited since the connection began, those that wait now included.
    pub total: u64,
}

#[derive(Debug, Default)]
pub(crate) struct StreamWaitCounts {
    waiting: AtomicU64,
    total: AtomicU64,
}

impl StreamWaitCounts {
    pub(crate) fn counts(&self) -> StreamWaits {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        StreamWaits { waiting: read(&self.waiting), total: read(&self.total) }
    }
}

/// Counts a stream as waiting until this is dropped.
pub(crate) struct StreamWait<'a>(&'a StreamWaitCounts);

impl<'a> StreamWait<'a> {
    pub(crate) fn begin(connection: &'a ConnectionShared, voice: Option<&Voice>) -> Self {
        let counts = &connection.stream_waits;
        counts.total.fetch_add(1, Ordering::Relaxed);
        // Only the first of those that wait at the same time is logged.
        let first = counts.waiting.fetch_add(1, Ordering::Relaxed) == 0;
        if let Some(voice) = voice.filter(|_| first) {
            log::stream_waits(voice);
        }
        StreamWait(counts)
    }
}

impl Drop for StreamWait<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
