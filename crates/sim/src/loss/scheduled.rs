use anabranch_types::{Probability, Rng, Time};

use super::LossModel;
use crate::rate::{Cursor, Schedule};

/// Independent losses whose probability changes at known times.
#[derive(Clone, Debug)]
pub struct Scheduled {
    probability: Cursor<Probability>,
    packets: Rng,
}

impl Scheduled {
    /// A process that loses each packet with the probability that `schedule` has at that time, and
    /// draws from `packets`.
    pub fn new(schedule: &Schedule<Probability>, packets: Rng) -> Self {
        Scheduled { probability: schedule.cursor(), packets }
    }
}

impl LossModel for Scheduled {
    fn is_lost(&mut self, now: Time) -> bool {
        self.probability.advance(now);
        self.packets.chance(self.probability.current().get())
    }

    fn probability(&mut self, now: Time) -> Probability {
        self.probability.advance(now);
        self.probability.current()
    }

    fn next_change(&self) -> Time {
        self.probability.next_change()
    }
}
