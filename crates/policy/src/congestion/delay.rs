//! Round-trip times by round, for the controllers that steer by the queue they keep.

use anabranch_types::Time;
use core::time::Duration;

use crate::congestion::AckEvent;

/// What a finished round showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// The least round-trip time in it: the others may hold a burst of our own.
    pub(super) rtt: Duration,
    /// The least ever: what it is without a queue.
    pub(super) base: Duration,
    /// Acknowledgements in it.
    pub(super) samples: u32,
}

impl Round {
    /// w·(rtt − base)/rtt: how much of a window of `cwnd` bytes waits in queues, in packets of `packet`
    /// bytes.
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
    samples: u32,
    began: Time,
}

impl Rounds {
    /// Takes in an acknowledgement; gives the round that it ends, if it ends one.
    pub(super) fn take(&mut self, event: &AckEvent) -> Option<Round> {
        if event.acked_packets == 0 || event.rtt.samples == 0 || event.rtt.latest.is_zero() {
            return None;
        }
        let sample = event.rtt.latest;
        let base = self.base.map_or(sample, |base| base.min(sample));
        self.base = Some(base);
        // By the sample, not by `largest_acked_sent`: a TCP sender, which itself sees to one cut a window,
        // gives there a time that no cut has answered.
        let ends = event.now - sample >= self.began;
        let round =
            self.least.filter(|_| ends).map(|rtt| Round { rtt, base, samples: self.samples });
        if ends {
            // This packet was sent in the round that begins.
            (self.least, self.samples, self.began) = (None, 0, event.now);
        }
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        self.samples = self.samples.saturating_add(1);
        round
    }

    /// The least round-trip time ever; zero before the first.
    pub(super) fn base(&self) -> Duration {
        self.base.unwrap_or_default()
    }
}
