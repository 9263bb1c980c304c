use anabranch_types::{Rng, math};

use super::{Idle, QueueLimit, RedConfig, RedSpacing};

/// Random early detection (Floyd and Jacobson 1993, figure 2), with the gentle slope and ECN.
///
/// The average counts the waiting packets, and is updated at every arrival, even if the arriving
/// packet is dropped.
#[derive(Clone, Debug)]
pub struct Red {
    min: f64,
    max: f64,
    weight: f64,
    max_probability: f64,
    gentle: bool,
    ecn: bool,
    mark_limit: f64,
    spacing: RedSpacing,
    idle_packet_bits: f64,
    average: f64,
    /// Number of packets since the last mark or drop; −1 while RED admits every packet.
    count: i64,
    random: Rng,
}

/// RED's decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedVerdict {
    /// The packet is admitted unchanged.
    Admit,
    /// The packet is admitted and marked.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// RED's decision before it is known whether the packet is ECN-capable.
enum Pressure {
    None,
    /// Mark or drop with this base probability, which must still be spread over the arrivals.
    Probability(f64),
    Drop,
}

impl Red {
    /// RED for a buffer of `limit`, with draws from `random`.
    pub fn new(config: &RedConfig, limit: QueueLimit, random: Rng) -> Self {
        let (min, max) = config.thresholds.resolve(limit);
        Red {
            min,
            max,
            weight: config.weight,
            max_probability: config.max_probability.get(),
            gentle: config.gentle,
            ecn: config.ecn,
            mark_limit: config.mark_limit.get(),
            spacing: config.spacing,
            idle_packet_bits: 8.0 * f64::from(config.idle_packet_bytes.max(1)),
            average: 0.0,
            count: -1,
            random,
        }
    }

    /// Decides about an arrival that finds `waiting` packets in the queue. If the limit is in
    /// bytes, this is the number of waiting bytes divided by
    /// [`NOMINAL_PACKET`](super::NOMINAL_PACKET), so that the thresholds are the same share of the
    /// buffer for any packet size.
    ///
    /// `idle` is as in [`Queue::offer`](super::Queue::offer), `capable` says whether the packet is
    /// ECN-capable, and `full` forces a drop.
    pub fn on_arrival(
        &mut self,
        waiting: f64,
        idle: Option<Idle>,
        capable: bool,
        full: bool,
    ) -> RedVerdict {
        self.update_average(waiting, idle);
        if full {
            self.count = 0;
            return RedVerdict::Drop;
        }
        let spared = self.spacing == RedSpacing::Waiting && waiting <= 1.0;
        match self.pressure() {
            Pressure::None => {
                self.count = -1;
                RedVerdict::Admit
            }
            _ if spared => {
                self.count = -1;
                RedVerdict::Admit
            }
            Pressure::Drop => {
                self.count = 0;
                RedVerdict::Drop
            }
            Pressure::Probability(base) => {
                self.count += 1;
                if !self.random.chance(self.spacing.spread(base, self.count)) {
                    return RedVerdict::Admit;
                }
                self.count = 0;
                let mark =
                    self.ecn && capable && (base < self.mark_limit || self.mark_limit >= 1.0);
                if mark { RedVerdict::Mark } else { RedVerdict::Drop }
            }
        }
    }

    /// The average queue in packets.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// The probability p_b at the current average, before it is spread over the arrivals; 1 if
    /// every packet is dropped.
    pub fn base_probability(&self) -> f64 {
        match self.pressure() {
            Pressure::None => 0.0,
            Pressure::Probability(p) => p,
            Pressure::Drop => 1.0,
        }
    }

    /// The lower and upper thresholds in packets.
    pub fn thresholds(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    fn update_average(&mut self, waiting: f64, idle: Option<Idle>) {
        match idle {
            // Idle time counts as if small packets had arrived all the time and found an empty
            // queue.
            Some(Idle { lasted, rate }) => {
                let m = lasted.as_secs_f64() * rate.as_bps() as f64 / self.idle_packet_bits;
                self.average *= math::pow(1.0 - self.weight, m);
            }
            None => self.average += self.weight * (waiting - self.average),
        }
    }

    fn pressure(&self) -> Pressure {
        let (average, max_p) = (self.average, self.max_probability);
        if average < self.min {
            Pressure::None
        } else if average < self.max {
            Pressure::Probability(max_p * (average - self.min) / (self.max - self.min))
        } else if self.gentle && average < 2.0 * self.max {
            Pressure::Probability(max_p + (1.0 - max_p) * (average - self.max) / self.max)
        } else {
            Pressure::Drop
        }
    }
}

impl RedSpacing {
    /// The probability p_a for the `count`-th arrival since the last mark or drop, given the base
    /// probability p_b.
    fn spread(self, base: f64, count: i64) -> f64 {
        let filled = count as f64 * base;
        let rest = match self {
            RedSpacing::Even => 1.0 - filled,
            RedSpacing::Waiting if filled < 1.0 => return 0.0,
            RedSpacing::Waiting => 2.0 - filled,
        };
        if rest <= base { 1.0 } else { base / rest }
    }
}
