use anabranch_types::{Bitrate, Time};

use crate::loss::{LossModel, LossProcess};
use crate::rate::Cursor;

/// Integrates erasure capacity, ∫ rate(t)·(1 − loss(t)) dt, piece by piece.
///
/// It walks its own copies of the rate and of the loss process, so neither traffic nor the times at
/// which it is asked change its course or its rounding.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    rate: Cursor<Bitrate>,
    loss: LossProcess,
    /// Bits deliverable in `[0, at)`; `at` is the epoch or a change of rate or loss.
    bits: f64,
    at: Time,
}

impl Capacity {
    pub(super) fn new(rate: Cursor<Bitrate>, loss: LossProcess) -> Self {
        Capacity { rate, loss, bits: 0.0, at: Time::ZERO }
    }

    /// Bits deliverable in `[0, until)`. Times must not fall between calls by more than a piece; an
    /// earlier time than the last change gives the value at that change.
    pub(super) fn until(&mut self, until: Time) -> f64 {
        loop {
            self.rate.advance(self.at);
            let per_second = self.deliverable_per_second();
            let change = self.rate.next_change().min(self.loss.next_change());
            if change > until {
                return self.bits + per_second * until.since(self.at).as_secs_f64();
            }
            self.bits += per_second * change.since(self.at).as_secs_f64();
            self.at = change;
            if change == Time::MAX {
                return self.bits;
            }
        }
    }

    fn deliverable_per_second(&mut self) -> f64 {
        let loss = self.loss.capacity_loss(self.at);
        self.rate.current().as_bps() as f64 * loss.complement().get()
    }
}
