use anabranch_types::Time;

use super::Policer;
use crate::loss::{LossModel, LossProcess};
use crate::rate::RateProcess;

/// Integrates the erasure capacity, ∫ rate(t)·(1 − loss(t)) dt, piece by piece. Where there is a
/// policer, the rate of a piece is at most the policer's.
///
/// The integrator has its own copies of the rate process and the loss process, so neither the
/// traffic nor the times of the calls affect the result or its rounding.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    rate: RateProcess,
    loss: LossProcess,
    policer: Option<Policer>,
    /// Bits that can be delivered in `[0, at)`, where `at` is zero or the time of a change of rate
    /// or loss.
    bits: f64,
    at: Time,
}

impl Capacity {
    pub(super) fn new(rate: RateProcess, loss: LossProcess, policer: Option<Policer>) -> Self {
        Capacity { rate, loss, policer, bits: 0.0, at: Time::ZERO }
    }

    /// Bits that can be delivered in `[0, until)`. `until` must not decrease between calls: a time
    /// before the last change gives the value at that change.
    pub(super) fn until(&mut self, until: Time) -> f64 {
        loop {
            self.rate.advance(self.at);
            let change = self.rate.next_change().min(self.loss.next_change());
            if change > until {
                return self.bits + self.deliverable(until.max(self.at));
            }
            self.bits += self.deliverable(change);
            self.at = change;
            if change == Time::MAX {
                return self.bits;
            }
        }
    }

    /// Bits that can be delivered from `at` to `to`, which must lie in the same piece.
    fn deliverable(&mut self, to: Time) -> f64 {
        let loss = self.loss.capacity_loss(self.at);
        let mut bits = self.rate.bits(self.at, to);
        if let Some(policer) = self.policer {
            bits = bits.min(policer.rate.as_bps() as f64 * to.since(self.at).as_secs_f64());
        }
        bits * loss.complement().get()
    }
}
