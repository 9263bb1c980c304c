//! Credit that grows with the path, so that it does not hold the peer up.
//!
//! The credit has to hold what is in flight, and what arrives behind a hole until the missing part has been sent again.
//! How much that is depends on the rate and the round-trip time, which become known only as the connection goes on.

use anabranch_types::Time;
use core::time::Duration;

/// Round trips that a stream's credit covers: one in flight, and the others until what was lost has been noticed, sent
/// again, and sent once more if that was lost too.
const ROUND_TRIPS: u64 = 4;
/// Least time over which reading is measured: in shorter ones a busy reader reads much at once.
const LEAST_TIME: Duration = Duration::from_millis(5);

/// How far the credit has grown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    factor: u64,
    most: u64,
    /// When the measurement under way began and ends, and the bytes that had been read at its beginning.
    since: Time,
    until: Time,
    read: u64,
}

impl Growth {
    /// Credit that grows to `most` times what it is at first.
    pub(super) const fn new(most: u64) -> Self {
        Growth { factor: 1, most, since: Time::ZERO, until: Time::ZERO, read: 0 }
    }

    /// The present credit as a multiple of the first.
    pub(super) const fn factor(&self) -> u64 {
        self.factor
    }

    /// Whether [`measure`](Self::measure) is to be called.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.factor < self.most && now >= self.until
    }

    /// Ends a measurement at `now`, with `read` bytes read in all, while `credit` bytes were the credit of a stream.
    /// Doubles the credit if it covers too few round trips at the rate of reading. True if it did.
    pub(super) fn measure(
        &mut self,
        now: Time,
        round_trip: Duration,
        read: u64,
        credit: u64,
    ) -> bool {
        let elapsed = now.since(self.since).max(Duration::from_nanos(1));
        let bytes = u128::from(read - self.read) * u128::from(ROUND_TRIPS);
        let grows = bytes * round_trip.as_nanos() > u128::from(credit) * elapsed.as_nanos();
        (self.since, self.until, self.read) = (now, now + round_trip.max(LEAST_TIME), read);
        if grows {
            self.factor = self.factor.saturating_mul(2).min(self.most);
        }
        grows
    }
}
