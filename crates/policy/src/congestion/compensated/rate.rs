//! The bottleneck's rate, measured by what passes it, with the packets that random loss takes counted as
//! passed.

use crate::congestion::{AckEvent, RateSample};

/// Round trips whose rates are kept to fall back on.
const ROUNDS: usize = 3;

/// Mean rates of one round trip's samples, bits per second. The mean, since single samples are as noisy as
/// the delay is; while the rate doubles every round trip, the largest instead.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    samples: f64,
    passed: f64,
    delivered: f64,
}

impl Round {
    fn add(&mut self, passed: f64, delivered: f64, largest: bool) {
        self.samples += 1.0;
        if largest {
            self.passed = self.passed.max(passed);
            self.delivered = self.delivered.max(delivered);
        } else {
            self.passed += (passed - self.passed) / self.samples;
            self.delivered += (delivered - self.delivered) / self.samples;
        }
    }

    /// Lost packets count as passed as far as random loss, a share, explains them: those that a full queue
    /// dropped never passed it.
    fn rate(&self, random: f64) -> f64 {
        self.passed.min(self.delivered / (1.0 - random.clamp(0.0, 0.95)))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    /// What is believed, bits per second.
    kept: f64,
    now: Round,
    /// Finished round trips, the newest first: their rates, and what was delivered.
    rates: [f64; ROUNDS],
    deliveries: [f64; ROUNDS],
    /// A round trip ends when a packet is acknowledged that was sent after this many delivered bytes.
    round_end: u64,
}

impl Rate {
    /// Takes in an acknowledgement; true if it ends a round trip.
    pub(super) fn on_ack(&mut self, event: &AckEvent, random: f64, starting: bool) -> bool {
        let Some(sample) = event.rate else { return false };
        let round_over = sample.prior_delivered >= self.round_end;
        if round_over {
            self.round_end = event.total_delivered;
            self.end_round(random);
        }
        self.add(&sample, random, starting);
        round_over
    }

    fn end_round(&mut self, random: f64) {
        let round = core::mem::take(&mut self.now);
        if round.samples > 0.0 {
            self.rates = [round.rate(random), self.rates[0], self.rates[1]];
            self.deliveries = [round.delivered, self.deliveries[0], self.deliveries[1]];
            self.kept = self.kept.max(self.rates[0]);
        }
    }

    fn add(&mut self, sample: &RateSample, random: f64, starting: bool) {
        let passed = sample.resolved_rate().as_bps() as f64;
        let delivered = sample.delivery_rate().as_bps() as f64;
        let alone = Round { samples: 1.0, passed, delivered }.rate(random);
        if sample.app_limited && alone <= self.kept {
            return;
        }
        self.now.add(passed, delivered, starting);
        if starting {
            self.kept = self.kept.max(alone);
        }
    }

    /// What is believed, bits per second; zero before the first sample.
    pub(super) fn bps(&self) -> f64 {
        self.kept
    }

    /// Most that was delivered in one of the last round trips, bits per second.
    pub(super) fn delivery(&self) -> f64 {
        self.deliveries.iter().copied().fold(self.now.delivered, f64::max)
    }

    /// The larger rate of the two round trips that ended last.
    pub(super) fn last(&self) -> f64 {
        self.rates[0].max(self.rates[1])
    }

    /// The path carries less than was believed: takes the largest of the last rates.
    pub(super) fn fall(&mut self) {
        self.kept = self.rates.iter().copied().fold(0.0, f64::max).min(self.kept);
    }

    /// It carries what it did in the last two round trips.
    pub(super) fn fall_to_last(&mut self) {
        self.rates = [self.last(); ROUNDS];
        self.fall();
    }
}
