use core::time::Duration;

/// How long the packets that a link let in had to wait for those before them, as far as the link's rate at their
/// arrival tells.
///
/// Kept in a histogram whose steps are a sixteenth of the value at most, up to a minute, so memory is constant.
#[derive(Clone, Debug)]
pub struct Waits {
    buckets: Box<[u32]>,
    count: u64,
    sum: Duration,
    max: Duration,
}

/// Steps for each doubling of the value, and as a power of two.
const STEPS: u64 = 16;
const STEPS_LOG2: u32 = 4;
/// Beyond 2^26 µs all waits are in one step.
const BUCKETS: usize = ((26 - STEPS_LOG2) as usize + 1) * STEPS as usize;

impl Waits {
    pub(crate) fn new() -> Self {
        Waits {
            buckets: vec![0; BUCKETS].into(),
            count: 0,
            sum: Duration::ZERO,
            max: Duration::ZERO,
        }
    }

    pub(crate) fn record(&mut self, wait: Duration) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX).max(STEPS);
        let halvings = u64::from(micros.ilog2() - STEPS_LOG2);
        let index = halvings * STEPS + (micros >> halvings) - STEPS;
        let index = usize::try_from(index).unwrap_or(BUCKETS).min(BUCKETS - 1);
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(wait);
        self.max = self.max.max(wait);
    }

    /// The mean; zero before the first packet.
    pub fn mean(&self) -> Duration {
        self.sum.div_f64(self.count.max(1) as f64)
    }

    /// An upper bound, tight to a sixteenth or 16 µs, on the waits of the share `q` (in `[0, 1]`) of packets that
    /// waited least; zero before the first.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (self.count as f64 * q.clamp(0.0, 1.0)).ceil() as u64;
        let mut seen = 0;
        for (index, bucket) in (0_u64..).zip(&self.buckets) {
            seen += u64::from(*bucket);
            if seen >= rank.max(1) {
                let edge = (index % STEPS + STEPS + 1) << (index / STEPS);
                return Duration::from_micros(edge).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_bound_the_recorded_values() {
        let mut waits = Waits::new();
        assert_eq!((waits.mean(), waits.quantile(0.95)), (Duration::ZERO, Duration::ZERO));
        for millis in 1..=1_000 {
            waits.record(Duration::from_millis(millis));
        }
        assert_eq!(waits.mean(), Duration::from_micros(500_500));
        for q in [0.01, 0.1, 0.5, 0.95, 1.0] {
            let (exact, bound) = (q * 1e3, waits.quantile(q).as_secs_f64() * 1e3);
            assert!((exact..=exact * 17.0 / 16.0 + 0.01).contains(&bound), "{q}: {bound}");
        }
    }

    #[test]
    fn the_shortest_and_the_longest_waits_have_their_place() {
        let mut waits = Waits::new();
        waits.record(Duration::ZERO);
        assert_eq!(waits.quantile(1.0), Duration::ZERO);
        waits.record(Duration::from_micros(3));
        assert_eq!(waits.quantile(1.0), Duration::from_micros(3));
        let long = Duration::from_secs(3_600);
        waits.record(long);
        assert_eq!(waits.quantile(0.5), Duration::from_micros(17));
        assert!(waits.quantile(1.0) >= Duration::from_secs(60) && waits.quantile(1.0) <= long);
        assert_eq!(waits.mean(), (long + Duration::from_micros(3)).div_f64(3.0));
        waits.record(Duration::MAX);
    }
}
