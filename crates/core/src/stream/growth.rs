//! Growth of the credit with the path, so that the credit does not limit the peer.
//!
//! The credit has to cover the bytes in flight, and the bytes that arrive after a gap until the
//! missing part has been sent again. Their amount depends on the rate and the round-trip time,
//! which become known only during the connection.

use anabranch_types::Time;
use core::time::Duration;

/// Number of round trips that a stream's credit covers: one for the data in flight, and three until
/// a loss is noticed, repaired by a retransmission, and repaired again if the retransmission is
/// lost too.
const ROUND_TRIPS: u64 = 4;
/// Least time over which reading is measured. In a shorter time, a busy reader may read much at
/// once.
const LEAST_TIME: Duration = Duration::from_millis(5);

/// The growth of the credit and its measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    factor: u64,
    most: u64,
    /// Start and end of the current measurement, and the total bytes read at its start.
    since: Time,
    until: Time,
    read: u64,
}

impl Growth {
    /// Creates credit that may grow to `most` times its initial value.
    pub(super) const fn new(most: u64) -> Self {
        Growth { factor: 1, most, since: Time::ZERO, until: Time::ZERO, read: 0 }
    }

    /// The current credit as a multiple of the initial credit.
    pub(super) const fn factor(&self) -> u64 {
        self.factor
    }

    /// Whether [`measure`](Self::measure) has to be called now.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.factor < self.most && now >= self.until
    }

    /// Ends a measurement at `now`. `read` is the total of bytes read, and `credit` is the credit
    /// of a stream in bytes. If the credit covers too few round trips at the rate of reading, it is
    /// doubled (up to the limit), and the call returns true.
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
