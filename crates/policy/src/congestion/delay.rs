//! Round-trip times by round, for the controllers that react to queueing delay.

use anabranch_types::Time;
use core::time::Duration;

use crate::congestion::AckEvent;

/// Round-trip times of a finished round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// Least round-trip time of the round; longer ones may include the queue of our own burst.
    pub(super) rtt: Duration,
    /// Mean of the round's round-trip times.
    pub(super) mean: Duration,
    /// Least round-trip time ever, which is taken to be without a queue.
    pub(super) base: Duration,
    /// Acknowledgements in the round.
    pub(super) samples: u32,
}

impl Round {
    /// Replaces the round's least round-trip time by its mean.
    pub(super) fn by_mean(self) -> Round {
        Round { rtt: self.mean, ..self }
    }

    /// w·(rtt − base)/rtt: the part of a window of `cwnd` bytes that waits in queues, in packets of
    /// `packet` bytes.
    pub(super) fn backlog(&self, cwnd: u64, packet: u64) -> f64 {
        let (rtt, base) = (self.rtt.as_secs_f64(), self.base.as_secs_f64());
        if rtt > 0.0 { cwnd as f64 / packet.max(1) as f64 * (rtt - base) / rtt } else { 0.0 }
    }

    /// base/rtt, in `(0, 1]`.
    pub(super) fn thinning(&self) -> f64 {
        let rtt = self.rtt.as_secs_f64();
        if rtt > 0.0 { self.base.as_secs_f64() / rtt } else { 1.0 }
    }
}

/// Collects samples until a packet sent after the round began is acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    base: Option<Duration>,
    least: Option<Duration>,
    sum: Duration,
    samples: u32,
    began: Time,
}

impl Rounds {
    /// Processes an acknowledgement; returns the round that it ends, if it ends one.
    pub(super) fn take(&mut self, event: &AckEvent) -> Option<Round> {
        if event.acked_packets == 0 || event.rtt.samples == 0 || event.rtt.latest.is_zero() {
            return None;
        }
        let sample = event.rtt.latest;
        let base = self.base.map_or(sample, |base| base.min(sample));
        self.base = Some(base);
        // The round's end is computed from the sample, not from `largest_acked_sent`, which a TCP
        // sender mostly sets to the current time because it limits cuts to one per window itself.
        let ends = event.now - sample >= self.began;
        let round = self.least.filter(|_| ends).map(|rtt| {
            let mean = self.sum / self.samples.max(1);
            Round { rtt, mean, base, samples: self.samples }
        });
        if ends {
            // This packet was sent in the round that begins.
            (self.least, self.sum, self.samples, self.began) = (None, Duration::ZERO, 0, event.now);
        }
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        self.sum = self.sum.saturating_add(sample);
        self.samples = self.samples.saturating_add(1);
        round
    }

    /// The least round-trip time ever; zero before the first.
    pub(super) fn base(&self) -> Duration {
        self.base.unwrap_or_default()
    }
}

/// Veno's N, the packets in queues in the newest full round, and the limit from which the path
/// counts as congested.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    rounds: Rounds,
    last: Option<Round>,
    /// Packets in the queue at which the path counts as congested.
    limit: f64,
}

impl Backlog {
    pub(super) fn new(limit: f64) -> Self {
        Backlog { rounds: Rounds::default(), last: None, limit }
    }

    /// Processes an acknowledgement; returns whether so many packets of a window of `cwnd` bytes
    /// wait in queues that the path is congested.
    pub(super) fn take(&mut self, event: &AckEvent, cwnd: u64, packet: u64) -> bool {
        if let Some(round) = self.rounds.take(event) {
            self.last = Some(round);
        }
        self.last.map_or(0.0, |round| round.backlog(cwnd, packet)) >= self.limit
    }
}

/// The window, bytes, that a loss or a mark leaves of `cwnd`: half of it if the path is congested or there is a mark,
/// else four fifths (Fu and Liew 2003, §III).
pub(super) fn veno_cut(event: &AckEvent, cwnd: u64, congested: bool) -> u64 {
    if congested || event.ce_packets > 0 { cwnd / 2 } else { cwnd * 4 / 5 }
}
