/// Measures random loss between a source and a destination, in both directions, by the number of
/// acknowledgements received per data packet sent. Copies count, too.
///
/// Data packets are counted in rounds. A round in which a link failed is ignored, since its losses
/// come from mobility. The receiver must acknowledge every packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossMeter {
    sent: u32,
    acknowledged: u32,
    link_failed: bool,
    /// Smoothed share of packets without an acknowledgement.
    loss: f64,
    lossy: bool,
}

/// Number of packets in a round.
const ROUND: u32 = 32;
/// Weight of a new round in the smoothed loss.
const WEIGHT: f64 = 0.25;

impl LossMeter {
    /// Counts a data packet that was sent.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
        if self.sent < ROUND {
            return;
        }
        if !self.link_failed {
            let share = f64::from(self.acknowledged.min(self.sent)) / f64::from(self.sent);
            self.loss += WEIGHT * (1.0 - share - self.loss);
        }
        (self.sent, self.acknowledged, self.link_failed) = (0, 0, false);
    }

    /// Counts an acknowledgement that was received.
    pub(super) fn on_acknowledgement(&mut self) {
        self.acknowledged += 1;
    }

    /// Notes that a link has failed.
    pub(super) fn on_link_failure(&mut self) {
        self.link_failed = true;
    }

    /// Whether the smoothed loss is above `most`. Once it is, the answer stays true until the loss
    /// is at most half of `most`.
    pub(super) fn is_lossy(&mut self, most: f64) -> bool {
        self.lossy = self.loss > if self.lossy { most / 2.0 } else { most };
        self.lossy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(meter: &mut LossMeter, acknowledged: u32) {
        for at in 0..ROUND {
            if at < acknowledged {
                meter.on_acknowledgement();
            }
            meter.on_sent();
        }
    }

    #[test]
    fn loss_is_seen_after_some_rounds_and_forgotten_after_more() {
        let mut meter = LossMeter::default();
        round(&mut meter, 30);
        assert!(!meter.is_lossy(0.1), "one round in which a sixteenth is lost");
        (0..2).for_each(|_| round(&mut meter, 20));
        assert!(meter.is_lossy(0.1));
        // The smoothed loss is 0.17 at first, and each round reduces it to three quarters.
        round(&mut meter, ROUND);
        round(&mut meter, ROUND);
        assert!(meter.is_lossy(0.1), "not yet below .05");
        (0..4).for_each(|_| round(&mut meter, ROUND));
        assert!(!meter.is_lossy(0.1));
    }

    #[test]
    fn rounds_with_a_failed_link_do_not_count() {
        let mut meter = LossMeter::default();
        for _ in 0..10 {
            meter.on_link_failure();
            round(&mut meter, 0);
        }
        assert!(!meter.is_lossy(0.01));
        round(&mut meter, 0);
        assert!(meter.is_lossy(0.2), "the next one does");
    }
}
