use anabranch_types::Time;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A token bucket in integer arithmetic: `rate` tokens per second, of which at most `burst`
/// accumulate.
///
/// Levels are kept in billionths of a token, so a rate of any size loses nothing to rounding.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: u64,
    burst: u64,
    billionths: u128,
    refilled: Time,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: u64, burst: u64, now: Time) -> Self {
        let billionths = u128::from(burst) * NANOS_PER_SECOND;
        TokenBucket { rate, burst, billionths, refilled: now }
    }

    /// Whole tokens at `now`.
    pub fn level(&mut self, now: Time) -> u64 {
        let elapsed = now.since(self.refilled).as_nanos();
        let full = u128::from(self.burst) * NANOS_PER_SECOND;
        self.billionths =
            self.billionths.saturating_add(elapsed.saturating_mul(u128::from(self.rate))).min(full);
        self.refilled = self.refilled.max(now);
        u64::try_from(self.billionths / NANOS_PER_SECOND).unwrap_or(u64::MAX)
    }

    /// Takes one token, if there is one.
    pub fn take(&mut self, now: Time) -> bool {
        let some = self.level(now) > 0;
        if some {
            self.billionths -= NANOS_PER_SECOND;
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_burst_then_the_rate() {
        let mut bucket = TokenBucket::new(3, 5, Time::ZERO);
        assert_eq!((0..100).filter(|_| bucket.take(Time::ZERO)).count(), 5);
        let taken = (1..=10_000).filter(|ms| bucket.take(Time::from_millis(*ms))).count();
        assert_eq!(taken, 30);
        assert_eq!(bucket.level(Time::MAX), 5);
    }

    #[test]
    fn time_going_back_adds_nothing() {
        let mut bucket = TokenBucket::new(1000, 1, Time::from_secs(10));
        assert!(bucket.take(Time::from_secs(10)));
        assert!(!bucket.take(Time::from_secs(9)));
        assert!(!bucket.take(Time::from_secs(10)));
    }
}
