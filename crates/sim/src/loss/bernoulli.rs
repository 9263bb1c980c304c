use anabranch_types::{Probability, Rng, Time};

use super::LossModel;

/// Every packet is lost independently with the same probability.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    probability: Probability,
    packets: Rng,
}

impl Bernoulli {
    /// A process that loses each packet with `probability` and draws from `packets`.
    pub fn new(probability: Probability, packets: Rng) -> Self {
        Bernoulli { probability, packets }
    }
}

impl LossModel for Bernoulli {
    #[inline]
    fn is_lost(&mut self, _now: Time) -> bool {
        self.packets.chance(self.probability.get())
    }

    fn probability(&mut self, _now: Time) -> Probability {
        self.probability
    }

    fn next_change(&self) -> Time {
        Time::MAX
    }
}
