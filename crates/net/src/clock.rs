//! The only module that reads clocks.

use anabranch_types::Time;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Translates between the runtime's clock and the core's time, which starts with the endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    /// The instant of `time`; `None` if it is further away than clocks count.
    pub(crate) fn instant(&self, time: Time) -> Option<Instant> {
        self.start.checked_add(time.since(Time::ZERO))
    }
}

/// Nanoseconds since 1970 by the system's clock; 0 if it is set to before that.
#[expect(clippy::disallowed_methods, reason = "handshake timestamps are wall-clock time")]
pub(crate) fn wall_clock() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}
