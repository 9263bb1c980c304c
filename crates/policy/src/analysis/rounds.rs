//! How many packets a TCP window delivers within a time, losses, fast retransmissions and timeouts
//! included: LATE's forecast.

use std::collections::BTreeMap;

use anabranch_types::math;
use core::time::Duration;

/// A path whose deliveries are forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Round-trip time R, above zero.
    pub rtt: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Packet loss l, `[0, 1]`.
    pub loss: f64,
    /// Largest window W the path may reach, packets; at most [`MAX_WINDOW`] is used.
    pub cap: u32,
}

/// Windows beyond this many packets are forecast as this many.
pub const MAX_WINDOW: u32 = 512;

/// Times beyond this many round trips are forecast as this many.
pub const MAX_ROUNDS: u32 = 200;

/// The three ways in which a round may end, each with its chance and the packets delivered in all the
/// time, given that way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// Nothing is lost.
    pub clean: (f64, f64),
    /// Some packets are lost and retransmitted fast.
    pub repaired: (f64, f64),
    /// So many are lost that the retransmission timer has to fire. Where the time is too short for
    /// that the packets are those of the round that arrive.
    pub timed_out: (f64, f64),
}

impl Forecast {
    /// N(T, w, s): the mean number of packets delivered within `time` from a window of `window`
    /// packets with slow-start threshold `ssthresh` (LATE eqs 1–23).
    ///
    /// Where the printed equations differ from the model they describe this follows the model: the
    /// recursive terms carry the probability of their branch, and thresholds are at least 2.
    pub fn packets(&self, time: Duration, window: u32, ssthresh: u32) -> f64 {
        Walk { path: *self, known: BTreeMap::new() }.packets(self.horizon(time), window, ssthresh)
    }

    /// The branches of the first round, for `time` of at least 3/2 round trips; before that there
    /// is no second round to branch into, and all are zero.
    pub fn outcomes(&self, time: Duration, window: u32, ssthresh: u32) -> Outcomes {
        Walk { path: *self, known: BTreeMap::new() }.outcomes(self.horizon(time), window, ssthresh)
    }

    fn horizon(&self, time: Duration) -> Duration {
        time.min(self.rtt.saturating_mul(MAX_ROUNDS))
    }

    fn largest(&self) -> u32 {
        self.cap.clamp(1, MAX_WINDOW)
    }
}

/// One forecast in the making; equal states met on different ways are computed once.
struct Walk {
    path: Forecast,
    known: BTreeMap<(Duration, u32, u32), f64>,
}

impl Walk {
    fn packets(&mut self, time: Duration, window: u32, ssthresh: u32) -> f64 {
        let half = self.path.rtt / 2;
        let window = window.clamp(1, self.path.largest());
        if self.path.rtt.is_zero() || time < half {
            return 0.0;
        }
        if time < self.path.rtt + half {
            return f64::from(window) * (1.0 - self.path.loss);
        }
        if let Some(known) = self.known.get(&(time, window, ssthresh)) {
            return *known;
        }
        let Outcomes { clean, repaired, timed_out } = self.outcomes(time, window, ssthresh);
        let mean = [clean, repaired, timed_out].iter().map(|(p, n)| p * n).sum();
        self.known.insert((time, window, ssthresh), mean);
        mean
    }

    fn outcomes(&mut self, time: Duration, window: u32, ssthresh: u32) -> Outcomes {
        let Forecast { rtt, rto, loss, .. } = self.path;
        if rtt.is_zero() || time < rtt + rtt / 2 {
            return Outcomes::default();
        }
        let w = window.clamp(1, self.path.largest());
        let chance = |lost: u32| math::binomial(u64::from(w), loss, u64::from(lost));
        // Three survivors are needed for three duplicate acknowledgements.
        let heavy = w.saturating_sub(2).max(1);
        let p_clean = chance(0);
        let p_repaired: f64 = (1..heavy).map(chance).sum();
        let p_timeout: f64 = (heavy..=w).map(chance).sum();
        let (all, half_window) = (f64::from(w), w / 2);

        let mut outcomes = Outcomes::default();
        if p_clean > 0.0 {
            let grown = if w < ssthresh { 2 * w } else { w + 1 }.min(self.path.largest());
            outcomes.clean = (p_clean, all + self.packets(time - rtt, grown, ssthresh));
        }
        if p_repaired > 0.0 {
            let later = time.saturating_sub(2 * rtt);
            outcomes.repaired = (p_repaired, all + self.packets(later, half_window, half_window));
        }
        if p_timeout > 0.0 {
            let restart = rto + rtt / 2;
            let packets = if time < restart {
                (heavy..=w).map(|lost| chance(lost) * f64::from(w - lost)).sum::<f64>() / p_timeout
            } else {
                all + self.packets(time - restart, 1, half_window.max(2))
            };
            outcomes.timed_out = (p_timeout, packets);
        }
        outcomes
    }
}
