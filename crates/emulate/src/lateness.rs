use core::time::Duration;

use crate::histogram::{Histogram, Steps};

/// How long after their due times the relay sent datagrams on.
///
/// The values are kept in a histogram of 10 µs steps up to 10 ms, so memory is constant. Of values
/// beyond 10 ms only the number and the largest are known.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<Equal>);

/// Steps of 10 µs up to 10 ms.
#[derive(Debug)]
enum Equal {}

const STEP_MICROS: u64 = 10;

impl Steps for Equal {
    const COUNT: usize = 1_000;

    fn index(micros: u64) -> u64 {
        micros / STEP_MICROS
    }

    fn edge(index: u64) -> u64 {
        (index + 1) * STEP_MICROS
    }
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Lateness(Histogram::new())
    }

    pub(crate) fn record(&mut self, late: Duration) {
        self.0.record(late);
    }

    /// The lateness of all of `parts` together.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Lateness>) -> Self {
        let mut all = Lateness::new();
        parts.into_iter().for_each(|part| all.0.add(&part.0));
        all
    }

    /// Number of datagrams sent on.
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// The greatest lateness.
    pub fn max(&self) -> Duration {
        self.0.max()
    }

    /// An upper bound on the `q` quantile of the lateness, where `q` is in `[0, 1]`. It is at most
    /// 10 µs too high up to 10 ms, and the greatest lateness beyond. Zero if no datagram was sent
    /// on.
    pub fn quantile(&self, q: f64) -> Duration {
        self.0.quantile(q)
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
