use anabranch_types::{Probability, Rng, Time};

use super::{GilbertElliottConfig, LossConfigError, LossModel};

/// The Gilbert–Elliott model (Gilbert 1960; Elliott 1963): a good and a bad state, which may change
/// after every packet.
///
/// For each packet, the loss in the current state is drawn first, then the transition. The first
/// state is drawn from the stationary distribution.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    config: GilbertElliottConfig,
    bad: bool,
    packets: Rng,
}

impl GilbertElliott {
    /// The process of `config`, drawing from `packets`.
    ///
    /// # Errors
    /// When both transition probabilities are zero, so that no stationary distribution is defined.
    pub fn new(config: &GilbertElliottConfig, mut packets: Rng) -> Result<Self, LossConfigError> {
        config.validate()?;
        let bad = packets.chance(config.bad_share());
        Ok(GilbertElliott { config: config.clone(), bad, packets })
    }
}

impl LossModel for GilbertElliott {
    fn is_lost(&mut self, now: Time) -> bool {
        let lost = self.packets.uniform() < self.probability(now).get();
        let leave = if self.bad { self.config.bad_to_good } else { self.config.good_to_bad };
        self.bad ^= self.packets.chance(leave.get());
        lost
    }

    fn probability(&mut self, _now: Time) -> Probability {
        if self.bad { self.config.loss_in_bad } else { self.config.loss_in_good }
    }

    fn capacity_loss(&mut self, _now: Time) -> Probability {
        self.config.mean_loss()
    }

    fn next_change(&self) -> Time {
        Time::MAX
    }
}
