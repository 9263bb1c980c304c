//! The bottleneck's rate, measured from the packets that pass it. Packets lost at random after the
//! bottleneck count as having passed it.

use anabranch_types::Time;

use crate::congestion::{AckEvent, RateSample};

/// Round trips whose rates are kept to fall back on.
const ROUNDS: usize = 3;

/// Typical round trips for which rates are remembered: as long as a cycle, so that one is from
/// probing up.
const MEMORY: usize = 16;

/// A round trip through a long queue is remembered as several typical ones, but as at most this
/// many: a pause of the path is not its rate.
const MOST_COUNTED: f64 = 5.0;

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

/// What is assumed about packets lost at random.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomLoss {
    /// Their share of all packets.
    pub(super) share: f64,
    /// The share that is believed where the rate would rise.
    pub(super) least: f64,
}

/// The estimate of the bottleneck's rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    /// The estimate, bits per second.
    kept: f64,
    now: Round,
    /// All samples of the round trip, and their packets. `now` has no app-limited samples.
    all: Round,
    all_packets: u32,
    /// Whether the packets of the last finished round trip were sent faster than they arrived.
    is_stretched: bool,
    /// Finished round trips, the newest first: their rates, and what was delivered.
    rates: [f64; ROUNDS],
    deliveries: [f64; ROUNDS],
    /// The rates of the last [`MEMORY`] typical round trips, the newest first.
    memory: [f64; MEMORY],
    /// A round trip ends when a packet is acknowledged that was sent after this many delivered bytes.
    round_end: u64,
    /// When the current round trip began.
    began: Time,
}

impl Rate {
    /// Processes an acknowledgement; returns true if it ends a round trip.
    ///
    /// `typical` is the round-trip time without a queue, s.
    pub(super) fn on_ack(
        &mut self,
        event: &AckEvent,
        random: RandomLoss,
        typical: f64,
        starting: bool,
    ) -> bool {
        let Some(sample) = event.rate else { return false };
        let round_over = sample.prior_delivered >= self.round_end;
        if round_over {
            let length = event.now.since(self.began).as_secs_f64();
            (self.round_end, self.began) = (event.total_delivered, event.now);
            let counted = (length / typical.max(1e-6)).round().clamp(1.0, MOST_COUNTED);
            self.end_round(random, counted as usize);
        }
        self.add(&sample, random.least, starting);
        self.all.add(&sample);
        self.all_packets = self.all_packets.saturating_add(event.acked_packets);
        round_over
    }

    /// Whether the packets of the last round trip were sent faster than they arrived.
    pub(super) fn is_stretched(&self) -> bool {
        self.is_stretched
    }

    /// Ends a round trip, which is remembered as `counted` typical ones.
    fn end_round(&mut self, random: RandomLoss, counted: usize) {
        let round = core::mem::take(&mut self.now);
        let (all, packets) =
            (core::mem::take(&mut self.all), core::mem::take(&mut self.all_packets));
        self.is_stretched = packets >= LEAST_TRAIN && all.arrival > STRETCHED * all.departure;
        if round.seconds() > 0.0 {
            self.rates = [round.rate(random.share), self.rates[0], self.rates[1]];
            self.memory.rotate_right(counted);
            self.memory[..counted].fill(self.rates[0]);
            self.deliveries = [round.delivery(), self.deliveries[0], self.deliveries[1]];
            // What no remembered round trip confirms is forgotten.
            self.kept = self.kept.max(round.rate(random.least)).min(DOUBT * largest(&self.memory));
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
        self.kept = self.kept.min(largest(&self.rates));
    }

    /// Lowers the estimate to the last rates if these agree: there was a queue in the last round
    /// trips, so they show all that the path carries. If the rates differ, the path's rate varies
    /// and may rise again.
    pub(super) fn settle(&mut self) {
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        if least >= SETTLED * largest(&self.rates) {
            self.fall();
        }
    }

    /// Lowers the estimate to the larger rate of the last two round trips.
    pub(super) fn fall_to_last(&mut self) {
        self.rates = [largest(&self.last_two()); ROUNDS];
        self.fall();
    }

    /// Lowers the estimate to `bps` if it is higher, since the path carries no more.
    pub(super) fn fall_to(&mut self, bps: f64) {
        self.rates = self.rates.map(|rate| rate.min(bps));
        self.kept = self.kept.min(bps);
    }
}

fn largest(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}
