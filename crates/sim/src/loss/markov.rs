use core::time::Duration;

use anabranch_types::{Probability, Rng, Time};

use super::{LossConfigError, LossModel, MarkovConfig};

/// Losses whose probability follows a continuous-time Markov chain: an exponentially distributed
/// dwell time in each state, then a jump of the embedded chain. The first state is drawn from the
/// stationary distribution.
///
/// MPLOT's bimodal loss has two states with a mean dwell time of 250 ms each.
#[derive(Clone, Debug)]
pub struct Markov {
    losses: Vec<Probability>,
    mean_dwell_secs: Vec<f64>,
    /// Cumulative probabilities of the next state, row by row.
    cumulative_jumps: Vec<f64>,
    state: usize,
    until: Time,
    modulator: Rng,
    packets: Rng,
}

impl Markov {
    /// The process of `config`. The states are drawn from `modulator`, the losses of packets from
    /// `packets`.
    ///
    /// # Errors
    /// When `config` is not well formed; see [`MarkovConfig`].
    pub fn new(
        config: &MarkovConfig,
        mut modulator: Rng,
        packets: Rng,
    ) -> Result<Self, LossConfigError> {
        let share = config.time_shares()?;
        let jumps = config.jump_matrix();
        let state = pick(&cumulative(&share), modulator.uniform());
        let mut markov = Markov {
            losses: config.states.iter().map(|s| s.loss).collect(),
            mean_dwell_secs: config.states.iter().map(|s| s.mean_dwell.as_secs_f64()).collect(),
            cumulative_jumps: jumps.iter().flat_map(|row| cumulative(row)).collect(),
            state,
            until: Time::ZERO,
            modulator,
            packets,
        };
        markov.until = markov.draw_end(Time::ZERO);
        Ok(markov)
    }

    /// The index of the state at `now`.
    pub fn state(&mut self, now: Time) -> usize {
        while self.until <= now {
            let n = self.losses.len();
            let row = &self.cumulative_jumps[self.state * n..(self.state + 1) * n];
            self.state = pick(row, self.modulator.uniform());
            self.until = self.draw_end(self.until);
        }
        self.state
    }

    /// When the state entered at `start` ends. Exponential dwell times are memoryless, so the dwell
    /// time left at time zero is exponential, too.
    fn draw_end(&mut self, start: Time) -> Time {
        if self.losses.len() == 1 {
            return Time::MAX;
        }
        let dwell = self.modulator.exponential(self.mean_dwell_secs[self.state]);
        // The dwell time is at least a nanosecond, so that time advances.
        start + Duration::from_nanos(((dwell * 1e9) as u64).max(1))
    }
}

impl LossModel for Markov {
    fn is_lost(&mut self, now: Time) -> bool {
        let p = self.probability(now).get();
        self.packets.chance(p)
    }

    fn probability(&mut self, now: Time) -> Probability {
        let state = self.state(now);
        self.losses[state]
    }

    fn next_change(&self) -> Time {
        self.until
    }
}

/// Running sums of `weights`.
fn cumulative(weights: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    weights
        .iter()
        .map(|w| {
            sum += w;
            sum
        })
        .collect()
}

/// The first index whose cumulative weight exceeds `draw`. Rounding may leave the total just below
/// one. A draw above the total gives the last index whose weight is not zero.
fn pick(cumulative: &[f64], draw: f64) -> usize {
    let total = cumulative.last().copied().unwrap_or(0.0);
    let first = cumulative.partition_point(|c| *c <= draw);
    first.min(cumulative.partition_point(|c| *c < total))
}
