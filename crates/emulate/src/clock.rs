use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anabranch_types::Time;

/// Time since the relay started, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

/// Kernel receive timestamps older than this are ignored, since the wall clock may have been
/// stepped.
const OLDEST_STAMP: Duration = Duration::from_millis(100);

#[allow(clippy::disallowed_methods, reason = "real time is this crate's purpose")]
impl Clock {
    pub(crate) fn start() -> Self {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    /// Reads both clocks, so that kernel receive timestamps can be converted to relay time.
    pub(crate) fn reading(&self) -> Reading {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Reading { now: self.now(), wall }
    }
}

/// One instant on the monotonic and on the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) now: Time,
    /// Wall-clock time since the Unix epoch.
    pub(crate) wall: Duration,
}

impl Reading {
    /// When a datagram with the kernel receive timestamp `stamp` (since the Unix epoch) arrived. If
    /// the timestamp is missing, in the future or older than 100 ms, the datagram counts as
    /// arriving now.
    ///
    /// With these arrival times, links do not notice when the relay's thread reads a socket late.
    pub(crate) fn arrival(&self, stamp: Option<Duration>) -> Time {
        match stamp.and_then(|stamp| self.wall.checked_sub(stamp)) {
            Some(age) if age <= OLDEST_STAMP => self.now - age,
            _ => self.now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_placed_and_implausible_ones_ignored() {
        let reading = Reading { now: Time::from_secs(10), wall: Duration::from_secs(1_000) };
        let at = |stamp| reading.arrival(Some(Duration::from_millis(stamp)));
        assert_eq!(at(999_980), Time::from_millis(9_980));
        assert_eq!(at(999_000), Time::from_secs(10));
        assert_eq!(at(1_000_500), Time::from_secs(10));
        assert_eq!(reading.arrival(None), Time::from_secs(10));
    }
}
