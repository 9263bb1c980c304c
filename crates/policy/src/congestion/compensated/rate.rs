//! The bottleneck's rate, measured from the packets that pass it. Packets lost at random after the
//! bottleneck count as having passed it.

use crate::congestion::{AckEvent, RateSample};

/// Round trips whose rates are kept to fall back on.
const ROUNDS: usize = 3;

/// Factor by which all measurements may be below the rate of a path: if packets arrive in clumps,
/// most samples end within a clump.
const DOUBT: f64 = 1.15;

/// Rates differ only by chance if the least divided by the largest is at least this.
const SETTLED: f64 = 0.95;

/// Packets that take this many times as long to arrive as to leave were sent faster than the
/// bottleneck's rate.
const STRETCHED: f64 = 1.25;

/// Fewer packets than this are not evaluated, since mostly jitter decides how long they take to
/// arrive.
const LEAST_TRAIN: u32 = 8;

/// Sums over the samples of one round trip, bytes and seconds. Single samples are as noisy as the delay is, and the
/// mean of their rates would be too low, since each uses the longer of its two intervals.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    passed: f64,
    delivered: f64,
    departure: f64,
    arrival: f64,
}

impl Round {
    fn add(&mut self, sample: &RateSample) {
        self.passed += (sample.delivered + sample.lost) as f64;
        self.delivered += sample.delivered as f64;
        self.departure += sample.departure.as_secs_f64();
        self.arrival += sample.arrival.as_secs_f64();
    }

    fn seconds(&self) -> f64 {
        self.departure.max(self.arrival)
    }

    fn per_second(&self, bytes: f64) -> f64 {
        if self.seconds() > 0.0 { 8.0 * bytes / self.seconds() } else { 0.0 }
    }

    fn delivery(&self) -> f64 {
        self.per_second(self.delivered)
    }

    /// The rate in bits per second, where lost packets count as passed only up to the share
    /// `random` of random loss: packets that a full queue dropped never passed it.
    fn rate(&self, random: f64) -> f64 {
        self.per_second(self.passed.min(self.delivered / (1.0 - random.clamp(0.0, 0.95))))
    }
}

/// The estimate of the bottleneck's rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    /// The estimate, bits per second.
    kept: f64,
    /// The largest rate of a round trip since the estimate was last confirmed.
    best: f64,
    now: Round,
    /// All samples of the round trip, and their packets. `now` has no app-limited samples.
    all: Round,
    all_packets: u32,
    /// Whether the packets of the last finished round trip were sent faster than they arrived.
    is_stretched: bool,
    /// Finished round trips, the newest first: their rates, and what was delivered.
    rates: [f64; ROUNDS],
    deliveries: [f64; ROUNDS],
    /// A round trip ends when a packet is acknowledged that was sent after this many delivered bytes.
    round_end: u64,
}

impl Rate {
    /// Processes an acknowledgement; returns true if it ends a round trip.
    ///
    /// `random` is the share of packets that is lost at random. If the rate would rise, only the
    /// share `least` of the packets counts as lost at random.
    pub(super) fn on_ack(
        &mut self,
        event: &AckEvent,
        random: f64,
        least: f64,
        starting: bool,
    ) -> bool {
        let Some(sample) = event.rate else { return false };
        let round_over = sample.prior_delivered >= self.round_end;
        if round_over {
            self.round_end = event.total_delivered;
            self.end_round(random, least);
        }
        self.add(&sample, least, starting);
        self.all.add(&sample);
        self.all_packets = self.all_packets.saturating_add(event.acked_packets);
        round_over
    }

    /// Whether the packets of the last round trip were sent faster than they arrived.
    pub(super) fn is_stretched(&self) -> bool {
        self.is_stretched
    }

    fn end_round(&mut self, random: f64, least: f64) {
        let round = core::mem::take(&mut self.now);
        let (all, packets) =
            (core::mem::take(&mut self.all), core::mem::take(&mut self.all_packets));
        self.is_stretched = packets >= LEAST_TRAIN && all.arrival > STRETCHED * all.departure;
        if round.seconds() > 0.0 {
            self.rates = [round.rate(random), self.rates[0], self.rates[1]];
            self.deliveries = [round.delivery(), self.deliveries[0], self.deliveries[1]];
            self.kept = self.kept.max(round.rate(least));
            self.best = self.best.max(self.rates[0]);
        }
    }

    fn add(&mut self, sample: &RateSample, random: f64, starting: bool) {
        let mut alone = Round::default();
        alone.add(sample);
        let alone = alone.rate(random);
        if sample.app_limited && alone <= self.kept {
            return;
        }
        self.now.add(sample);
        if starting {
            // While the rate doubles every round trip, the mean of a round trip lags behind.
            self.kept = self.kept.max(alone);
        }
    }

    /// The estimate, bits per second; zero before the first sample.
    pub(super) fn bps(&self) -> f64 {
        self.kept
    }

    /// The largest delivery rate of the last round trips, bits per second.
    pub(super) fn delivery(&self) -> f64 {
        self.deliveries.iter().copied().fold(self.now.delivery(), f64::max)
    }

    /// The rates of the two round trips that ended last.
    pub(super) fn last_two(&self) -> [f64; 2] {
        [self.rates[0], self.rates[1]]
    }

    /// Lowers the estimate to the largest of the last rates, since the path carries less than
    /// estimated.
    pub(super) fn fall(&mut self) {
        self.kept = self.rates.iter().copied().fold(0.0, f64::max).min(self.kept);
    }

    /// Lowers the estimate to the last rates if these agree: there was a queue in the last round
    /// trips, so they show all that the path carries. If the rates differ, the path's rate varies
    /// and may rise again.
    pub(super) fn settle(&mut self) {
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        if self.rates.iter().all(|rate| least >= SETTLED * rate) {
            self.fall();
        }
    }

    /// Lowers the estimate to the larger rate of the last two round trips.
    pub(super) fn fall_to_last(&mut self) {
        self.rates = [self.rates[0].max(self.rates[1]); ROUNDS];
        self.fall();
    }

    /// Lowers the estimate to `bps` if it is higher, since the path carries no more.
    pub(super) fn fall_to(&mut self, bps: f64) {
        self.rates = self.rates.map(|rate| rate.min(bps));
        (self.kept, self.best) = (self.kept.min(bps), self.best.min(bps));
    }

    /// Lowers the estimate to [`DOUBT`] times the largest rate measured since the last call, if any was.
    pub(super) fn confirm(&mut self) {
        let best = core::mem::take(&mut self.best);
        if best > 0.0 {
            self.kept = self.kept.min(best * DOUBT);
        }
    }
}
