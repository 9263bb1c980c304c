//! Round-trip times and the retransmission timeout (RFC 6298).

use anabranch_policy::view::RttView;
use core::time::Duration;
use std::sync::Arc;

use crate::config::Config;

/// Keeps SRTT, RTTVAR and the RTO with its back-off.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    config: Arc<Config>,
    /// Nanoseconds; zero before the first sample.
    smoothed: u64,
    variation: u64,
    latest: u64,
    min: u64,
    samples: u64,
    backoff: u32,
    /// The timeout that follows from the fields above.
    rto: u64,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 1024)
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        let mut estimator = RttEstimator {
            config: config.into(),
            smoothed: 0,
            variation: 0,
            latest: 0,
            min: u64::MAX,
            samples: 0,
            backoff: 1,
            rto: 0,
        };
        estimator.set_rto();
        estimator
    }

    /// A round trip took `sample` (RFC 6298 §2.2, §2.3). SRTT and RTTVAR use the sample rounded to
    /// the clock's granularity.
    pub fn on_sample(&mut self, sample: Duration) {
        let exact = nanos(sample);
        let tick = nanos(self.config.timers.granularity).max(1);
        let sample = ((exact + tick / 2) / tick).max(1) * tick;
        self.latest = exact;
        self.min = self.min.min(exact);
        if self.samples == 0 {
            self.smoothed = sample;
            self.variation = sample / 2;
        } else {
            let deviation = self.smoothed.abs_diff(sample);
            self.variation = self.variation - self.variation / 4 + deviation / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
        }
        self.samples += 1;
        self.set_rto();
    }

    /// A sample that Karn's rule trusts has come: the back-off ends.
    pub fn reset_backoff(&mut self) {
        if self.backoff > 1 {
            self.backoff = 1;
            self.set_rto();
        }
    }

    /// The timer fired: the next timeout is twice as long, up to the limits (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        if self.backoff < self.config.timers.max_backoff && self.rto() < self.config.timers.max_rto
        {
            self.backoff *= 2;
            self.set_rto();
        }
    }

    /// The present timeout, back-off included.
    pub fn rto(&self) -> Duration {
        Duration::from_nanos(self.rto)
    }

    fn set_rto(&mut self) {
        let base = if self.samples == 0 {
            nanos(self.config.timers.initial_rto)
        } else {
            let spread = (4 * self.variation).max(nanos(self.config.timers.granularity));
            (self.smoothed + spread).max(nanos(self.config.timers.min_rto))
        };
        let backed_off = base.saturating_mul(u64::from(self.backoff));
        self.rto = backed_off.min(nanos(self.config.timers.max_rto));
    }

    /// The present back-off factor; 1 without back-off.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The values as policies read them. Before the first sample, the initial timeout stands for
    /// the round-trip time.
    pub fn view(&self) -> RttView {
        if self.samples == 0 {
            let guess = self.config.timers.initial_rto;
            return RttView {
                latest: guess,
                smoothed: guess,
                variation: guess / 2,
                min: guess,
                ..RttView::default()
            };
        }
        RttView {
            latest: Duration::from_nanos(self.latest),
            smoothed: Duration::from_nanos(self.smoothed),
            variation: Duration::from_nanos(self.variation),
            min: Duration::from_nanos(self.min),
            queue: Duration::from_nanos(self.latest - self.min.min(self.latest)),
            forward: 0,
            samples: self.samples,
        }
    }

    /// Least sample so far, or `None` before the first.
    pub fn min(&self) -> Option<Duration> {
        (self.samples > 0).then(|| Duration::from_nanos(self.min))
    }

    /// Smoothed round-trip time, or `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.samples > 0).then(|| Duration::from_nanos(self.smoothed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TimerConfig;

    fn estimator(timers: TimerConfig) -> RttEstimator {
        RttEstimator::new(&Config { timers, ..Config::default() })
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn first_sample_and_gains() {
        let mut rtt = estimator(TimerConfig { min_rto: ms(1), ..TimerConfig::default() });
        assert_eq!(rtt.rto(), ms(1000));
        rtt.on_sample(ms(100));
        // SRTT = 100, RTTVAR = 50.
        assert_eq!(rtt.rto(), ms(300));
        rtt.on_sample(ms(180));
        // RTTVAR = 37.5 + 20, SRTT = 87.5 + 22.5.
        assert_eq!(rtt.rto(), ms(340));
    }

    #[test]
    fn back_off_doubles_up_to_its_limits() {
        let config = TimerConfig { max_backoff: 8, ..TimerConfig::default() };
        let mut rtt = estimator(config);
        rtt.on_sample(ms(10));
        assert_eq!(rtt.rto(), ms(200));
        for expected in [400, 800, 1600, 1600] {
            rtt.back_off();
            assert_eq!(rtt.rto(), ms(expected));
        }
        rtt.on_sample(ms(10));
        assert_eq!(rtt.rto(), ms(1600), "a sample alone does not end it");
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), ms(200));
        let mut capped = estimator(TimerConfig::default());
        (0..20).for_each(|_| capped.back_off());
        assert_eq!(capped.rto(), Duration::from_secs(60));
    }

    #[test]
    fn samples_are_read_off_a_coarse_clock() {
        let config = TimerConfig { granularity: ms(10), min_rto: ms(1), ..TimerConfig::default() };
        let mut rtt = estimator(config);
        rtt.on_sample(ms(43));
        assert_eq!(rtt.rto(), ms(40 + 80));
    }
}
