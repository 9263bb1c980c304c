use core::time::Duration;

/// How long after its due time the relay sent each datagram on.
///
/// Kept in a histogram of 10 µs steps up to 10 ms, so memory is constant; beyond that only the
/// largest value is known.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Box<[u64]>,
    count: u64,
    max: Duration,
}

const STEP_MICROS: u64 = 10;
const STEPS: usize = 1_000;

impl Lateness {
    pub(crate) fn new() -> Self {
        Lateness { buckets: vec![0; STEPS + 1].into(), count: 0, max: Duration::ZERO }
    }

    pub(crate) fn record(&mut self, late: Duration) {
        let step = late.as_micros() / u128::from(STEP_MICROS);
        let index = usize::try_from(step).unwrap_or(STEPS).min(STEPS);
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket += 1;
        }
        self.count += 1;
        self.max = self.max.max(late);
    }

    /// The lateness of all of `parts` together.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Lateness>) -> Self {
        let mut all = Lateness::new();
        for part in parts {
            all.count += part.count;
            all.max = all.max.max(part.max);
            for (sum, count) in all.buckets.iter_mut().zip(&part.buckets) {
                *sum += count;
            }
        }
        all
    }

    /// Datagrams sent on.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The greatest lateness.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// An upper bound, tight to 10 µs, on the lateness of the share `q` (in `[0, 1]`) of datagrams
    /// that were least late; zero before the first.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (self.count as f64 * q.clamp(0.0, 1.0)).ceil() as u64;
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().take(STEPS).enumerate() {
            seen += bucket;
            if seen >= rank.max(1) {
                let edge = Duration::from_micros((index as u64 + 1) * STEP_MICROS);
                return edge.min(self.max);
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
        let mut lateness = Lateness::new();
        assert_eq!(lateness.quantile(0.99), Duration::ZERO);
        for micros in 1..=1_000 {
            lateness.record(Duration::from_micros(micros));
        }
        assert_eq!(lateness.quantile(0.5), Duration::from_micros(510));
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(1_000));
        lateness.record(Duration::from_secs(1));
        assert_eq!((lateness.max(), lateness.count()), (Duration::from_secs(1), 1_001));
        assert_eq!(lateness.quantile(1.0), Duration::from_secs(1));
        assert_eq!(lateness.quantile(0.99), Duration::from_micros(1_000));
    }
}
