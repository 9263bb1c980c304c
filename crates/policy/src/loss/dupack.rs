//! Loss detection as in TCP: a packet is lost when three later ones are acknowledged, or when the
//! retransmission timer fires.

use core::time::Duration;

use crate::loss::{DetectionView, InFlight, LossDetector, LossVerdict};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::RttView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "dupack",
    summary: "lost when 3 later packets of the path are acknowledged, or at the retransmission timeout",
    source: "RFC 5681 §3.2, RFC 6298 §2; per path as MPLOT §II-C needs it",
    options: &[
        option("packets", "later packets of the same path that must be acknowledged", "3"),
        option("min", "least retransmission timeout", "200ms"),
        option("initial", "retransmission timeout before the first sample", "1s"),
        option("granularity", "clock granularity, the least term for variation", "1ms"),
        option("backoff", "how often the timeout may double in a row", "6"),
        option("max", "longest timeout that doubling leads to; 60s: RFC 6298 §2.5", "500ms"),
        option("probes", "packets beyond the window after a timeout; 0: as TCP", "2"),
    ],
};

/// TCP's detector, applied to each path separately, since the order of packets on different paths
/// proves nothing.
#[derive(Clone, Debug)]
pub struct Dupack {
    packets: u64,
    min: Duration,
    initial: Duration,
    granularity: Duration,
    backoff: u32,
    max: Duration,
    probes: u8,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn LossDetector>, PolicyError> {
    let minute = Duration::from_secs(60);
    Ok(Box::new(Dupack {
        packets: options.integer("packets", 1..=1000)?,
        min: options.duration("min", Duration::ZERO..=minute)?,
        initial: options.duration("initial", Duration::from_millis(1)..=minute)?,
        granularity: options.duration("granularity", Duration::ZERO..=Duration::from_secs(1))?,
        backoff: options.integer("backoff", 0..=16)? as u32,
        max: options.duration("max", Duration::from_millis(1)..=minute)?,
        probes: options.integer("probes", 0..=2)? as u8,
    }))
}

impl LossDetector for Dupack {
    fn judge(&self, _packet: &InFlight, view: &DetectionView) -> LossVerdict {
        if view.acked_above >= self.packets { LossVerdict::Lost } else { LossVerdict::Waiting }
    }

    fn timeout(&self, rtt: &RttView) -> Duration {
        if rtt.samples == 0 {
            return self.initial;
        }
        let variation = rtt.variation.saturating_mul(4).max(self.granularity);
        rtt.smoothed.saturating_add(variation).max(self.min)
    }

    fn backoff_limit(&self) -> u32 {
        self.backoff
    }

    fn longest_timeout(&self) -> Option<Duration> {
        Some(self.max)
    }

    fn probes(&self) -> u8 {
        self.probes
    }

    fn timeout_loses_flight(&self) -> bool {
        true
    }
}
