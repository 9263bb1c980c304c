//! How many packets a rateless block needs, and when a path delivers one.

use anabranch_types::{Rng, math};

/// δ(l): the chance that more than `extra` of `window + extra` packets are lost, so that the block
/// fails to decode (FMTCP eq. 4). `window` is the live congestion window in packets.
pub fn decoding_failure(window: u32, extra: u32, p: f64) -> f64 {
    let sent = u64::from(window) + u64::from(extra);
    // The tail term by term, because one minus the head loses the digits of a small tail.
    (u64::from(extra) + 1..=sent).map(|lost| math::binomial(sent, p, lost)).sum::<f64>().min(1.0)
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

    /// Draws the time until a packet arrives when every loss is repeated on this path after an RTO:
    /// what regular MPTCP does. Its mean is the EDT.
    pub fn draw_repeated(&self, random: &mut Rng) -> f64 {
        let mut time = self.rtt / 2.0;
        while random.chance(self.loss) {
            time += self.rto;
        }
        time
    }

    /// Draws the time until a packet first sent here arrives when its loss is made good on `fast`,
    /// after waiting there for `wait` (at most R₁): FMTCP under the condition of Lemma 1 (eq. 17).
    pub fn draw_moved(&self, fast: &DeliveryPath, wait: f64, random: &mut Rng) -> f64 {
        if random.chance(self.loss) {
            self.rto + wait + fast.draw_repeated(random)
        } else {
            self.rtt / 2.0
        }
    }
}

/// (3 − p₁)/(1 + p₁): where EDT₂/EDT₁ exceeds this, losses of path 2 are made good on path 1 only
/// (FMTCP Lemma 1, eq. 14; assumes RTO ≈ RTT).
pub fn move_threshold(p1: f64) -> f64 {
    (3.0 - p1) / (1.0 + p1)
}

/// E(T₂)/E(T₁) ≤ p₂(3 − p₁)/(1 + p₁) + (1 − p₂)·m with m = EDT₂/EDT₁: the bound on how much later a
/// symbol first sent on path 2 arrives (FMTCP Theorem 4, eq. 16; assumes RTO ≈ RTT and m above
/// [`move_threshold`]). Repeating on the same path gives m exactly.
pub fn delivery_ratio_bound(p1: f64, p2: f64, m: f64) -> f64 {
    p2 * move_threshold(p1) + (1.0 - p2) * m
}
