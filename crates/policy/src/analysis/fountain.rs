//! How many packets a rateless block needs, and when a path delivers one.

use anabranch_types::{Rng, math};

/// δ(l): the chance that more than `extra` of `window + extra` packets are lost, so that the block
/// fails to decode (FMTCP eq. 4). `window` is the current congestion window in packets.
pub fn decoding_failure(window: u32, extra: u32, p: f64) -> f64 {
    let sent = u64::from(window) + u64::from(extra);
    // Sums the tail itself, because one minus the head would lose the precision of a small tail.
    (u64::from(extra) + 1..=sent).map(|lost| math::binomial(sent, p, lost)).sum::<f64>().min(1.0)
}

/// Distributions with up to this many entries are kept on the stack.
const FEW: usize = 8;

/// The chance that more than `spare` packets are lost in all, where each of `paths` has a number of packets and the
/// share of them that it loses: FMTCP eq. 4 for a block on several paths (a Poisson binomial distribution).
pub fn losses_beyond(spare: u32, paths: impl Iterator<Item = (u32, f64)>) -> f64 {
    let kept = spare as usize + 1;
    if kept <= FEW {
        let [mut chance, mut next, mut term] = [[0.0; FEW]; 3];
        beyond(paths, &mut chance[..kept], &mut next[..kept], &mut term[..kept])
    } else {
        let (mut chance, mut next, mut term) = (vec![0.0; kept], vec![0.0; kept], vec![0.0; kept]);
        beyond(paths, &mut chance, &mut next, &mut term)
    }
}

/// [`losses_beyond`] with its buffers: `chance` is the distribution of the losses so far, `term` that of one path,
/// both up to `spare` losses.
fn beyond(
    paths: impl Iterator<Item = (u32, f64)>,
    chance: &mut [f64],
    next: &mut [f64],
    term: &mut [f64],
) -> f64 {
    // Losses up to `most` are possible.
    let mut most = 0;
    if let Some(none) = chance.first_mut() {
        *none = 1.0;
    }
    for (packets, p) in paths.filter(|(packets, p)| *packets > 0 && *p > 0.0) {
        let own = losses_of(packets, p.min(1.0), term);
        let sum = (most + own).min(chance.len() - 1);
        for (total, slot) in next.iter_mut().enumerate().take(sum + 1) {
            let here = total.saturating_sub(most)..=total.min(own);
            *slot = here.map(|lost| term[lost] * chance[total - lost]).sum();
        }
        chance[..=sum].copy_from_slice(&next[..=sum]);
        most = sum;
    }
    (1.0 - chance[..=most].iter().sum::<f64>()).max(0.0)
}

/// Fills `term` with the distribution of the losses among `packets`, as far as its length allows; returns the
/// largest number of losses in it.
fn losses_of(packets: u32, p: f64, term: &mut [f64]) -> usize {
    let most = (packets as usize).min(term.len() - 1);
    let none = whole_power(1.0 - p, packets);
    if none < 1e-280 {
        // Powers this small have lost their precision.
        for (lost, slot) in term.iter_mut().enumerate().take(most + 1) {
            *slot = math::binomial(u64::from(packets), p, lost as u64);
        }
        return most;
    }
    let (odds, mut chance) = (p / (1.0 - p), none);
    for (lost, slot) in term.iter_mut().enumerate().take(most + 1) {
        *slot = chance;
        chance *= odds * (f64::from(packets) - lost as f64) / (lost as f64 + 1.0);
    }
    most
}

/// `x` to the power `n`, by squaring.
fn whole_power(mut x: f64, mut n: u32) -> f64 {
    let mut power = 1.0;
    while n > 0 {
        if n & 1 == 1 {
            power *= x;
        }
        x *= x;
        n >>= 1;
    }
    power
}

/// The largest mean number of losses with which more than `spare` losses have a chance of at most `accepted`,
/// however they are spread over paths.
///
/// More than `spare` losses are at most as likely as by the Poisson distribution of the same mean,
/// as long as `spare` is no less than that mean (Hoeffding 1956; Anderson and Samuels 1967). If
/// `spare` is 0, the mean itself is the bound.
pub fn tolerable_losses(spare: u32, accepted: f64) -> f64 {
    if spare == 0 {
        return accepted;
    }
    let beyond = |mean: f64| {
        let mut term = math::exp(-mean);
        let mut sum = term;
        for lost in 1..=spare {
            term *= mean / f64::from(lost);
            sum += term;
        }
        1.0 - sum
    };
    // In the range of the bound, the chance rises with the mean.
    let (mut low, mut high) = (0.0, f64::from(spare));
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if beyond(middle) <= accepted { low = middle } else { high = middle }
    }
    low
}

/// l*: the least number of extra packets with δ(l) ≤ `accepted` (below FMTCP eq. 4); `limit` if even
/// that many do not suffice.
pub fn extra_packets(window: u32, p: f64, accepted: f64, limit: u32) -> u32 {
    (0..limit).find(|extra| decoding_failure(window, *extra, p) <= accepted).unwrap_or(limit)
}

/// √(1.5/p): the mean window of a TCP that loses a share `p`, in packets (Mathis et al. 1997, eq. 3,
/// every packet acknowledged). FMTCP's l* values hold for this window.
pub fn window_under_loss(p: f64) -> f64 {
    math::sqrt(1.5 / p)
}

/// A path as FMTCP's delivery estimates see it; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeliveryPath {
    /// Packet loss, `[0, 1)`.
    pub loss: f64,
    /// Round-trip time r.
    pub rtt: f64,
    /// Retransmission timeout R.
    pub rto: f64,
}

impl DeliveryPath {
    /// EDT = p·RTO/(1 − p) + RTT/2: mean time until a packet arrives if only this path carries it
    /// (FMTCP eq. 8, closed form of Σ j·pʲ(1 − p)·RTO; the printed series is not that sum).
    pub fn expected_delivery(&self) -> f64 {
        self.loss * self.rto / (1.0 - self.loss) + self.rtt / 2.0
    }

    /// EDT by the series as it is printed in eq. 8, with (1 − p)ʲ for (1 − p). Kept to show the
    /// difference: Σ pʲ(1 − p)ʲ·RTO over j ≥ 0 is RTO/(1 − p + p²).
    pub fn expected_delivery_as_printed(&self) -> f64 {
        self.rto / (1.0 - self.loss + self.loss * self.loss) + self.rtt / 2.0
    }

    /// RT = (1 − p)·RTT + p·RTO: mean time until the fate of a packet is known (FMTCP eq. 9).
    pub fn response_time(&self) -> f64 {
        (1.0 - self.loss) * self.rtt + self.loss * self.rto
    }

    /// Draws the time until a packet arrives if it is sent again on this path an RTO after each
    /// loss, as in regular MPTCP. The mean of the time is the EDT.
    pub fn draw_repeated(&self, random: &mut Rng) -> f64 {
        let mut time = self.rtt / 2.0;
        while random.chance(self.loss) {
            time += self.rto;
        }
        time
    }

    /// Draws the time until a packet first sent on this path arrives if its loss is repaired on
    /// `fast`, after waiting there for `wait` seconds (at most R₁): FMTCP under the condition of
    /// Lemma 1 (eq. 17).
    pub fn draw_moved(&self, fast: &DeliveryPath, wait: f64, random: &mut Rng) -> f64 {
        if random.chance(self.loss) {
            self.rto + wait + fast.draw_repeated(random)
        } else {
            self.rtt / 2.0
        }
    }
}

/// (3 − p₁)/(1 + p₁): where EDT₂/EDT₁ exceeds this, losses of path 2 are repaired on path 1 only (FMTCP Lemma 1, eq.
/// 14; assumes RTO ≈ RTT).
pub fn move_threshold(p1: f64) -> f64 {
    (3.0 - p1) / (1.0 + p1)
}

/// E(T₂)/E(T₁) ≤ p₂(3 − p₁)/(1 + p₁) + (1 − p₂)·m with m = EDT₂/EDT₁: the bound on how much later a
/// symbol first sent on path 2 arrives (FMTCP Theorem 4, eq. 16; assumes RTO ≈ RTT and m above
/// [`move_threshold`]). Repeating on the same path gives m exactly.
pub fn delivery_ratio_bound(p1: f64, p2: f64, m: f64) -> f64 {
    p2 * move_threshold(p1) + (1.0 - p2) * m
}
