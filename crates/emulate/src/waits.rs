use core::time::Duration;

use crate::histogram::{Histogram, Steps};

/// How long packets wait in a link's queue. The wait of a packet is estimated when it arrives: it
/// is the time in which the link, at its current rate, sends the packets that are queued ahead.
///
/// The waits are kept in a histogram up to about a minute (2^26 µs), so memory is constant. Its
/// steps are at most a sixteenth of the value, or 1 µs.
#[derive(Clone, Debug)]
pub struct Waits {
    histogram: Histogram<Doubling>,
    sum: Duration,
}

/// Sixteen steps for each doubling, from 16 µs to 2^26 µs.
#[derive(Debug)]
enum Doubling {}

/// Number of steps for each doubling of the value, and its binary logarithm.
const STEPS: u64 = 16;
const STEPS_LOG2: u32 = 4;

impl Steps for Doubling {
    const COUNT: usize = (26 - STEPS_LOG2) as usize * STEPS as usize;

    fn index(micros: u64) -> u64 {
        let micros = micros.max(STEPS);
        let halvings = u64::from(micros.ilog2() - STEPS_LOG2);
        halvings * STEPS + (micros >> halvings) - STEPS
    }

    fn edge(index: u64) -> u64 {
        (index % STEPS + STEPS + 1) << (index / STEPS)
    }
}

impl Waits {
    pub(crate) fn new() -> Self {
        Waits { histogram: Histogram::new(), sum: Duration::ZERO }
    }

    pub(crate) fn record(&mut self, wait: Duration) {
        self.histogram.record(wait);
        self.sum = self.sum.saturating_add(wait);
    }

    /// The mean wait; zero before the first packet.
    pub fn mean(&self) -> Duration {
        self.sum.div_f64(self.histogram.count().max(1) as f64)
    }

    /// An upper bound on the `q` quantile of the waits, where `q` is in `[0, 1]`. Up to a minute it
    /// is too high by at most a sixteenth of the wait or 17 µs. Zero before the first packet.
    pub fn quantile(&self, q: f64) -> Duration {
        self.histogram.quantile(q)
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
