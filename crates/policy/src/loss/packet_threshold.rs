//! Loss detection by packet and time threshold, widened when it proves too tight.

use core::time::Duration;

use crate::loss::{DetectionView, InFlight, LossDetector, LossVerdict};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::RttView;

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    name: "packet-threshold",
    summary: "lost when packets sent later, or 9/8 RTT later, are acknowledged; widens when spurious",
    source: "RFC 9002 §6.1 and §6.2; widening after RFC 8985 §6.2",
    options: &[
        option("packets", "packet threshold", "3"),
        option("packets-max", "largest packet threshold that spurious losses may lead to", "128"),
        option("time", "time threshold as a multiple of the round-trip time", "1.125"),
        option("time-max", "largest time threshold that spurious losses may lead to", "2"),
        option("ack-delay", "longest time the peer may delay an acknowledgement", "25ms"),
    ],
};

/// Timers are not finer than this (RFC 9002 §6.1.2, kGranularity).
const GRANULARITY: Duration = Duration::from_millis(1);

/// RFC 9002's detector. A packet is lost when the largest acknowledged number is `packets` above it,
/// or when it was sent `time` round-trip times ago and a later one is acknowledged.
#[derive(Clone, Debug)]
pub struct PacketThreshold {
    packets: u64,
    packets_max: u64,
    time: f64,
    time_max: f64,
    ack_delay: Duration,
}

/// Makes it from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn LossDetector>, PolicyError> {
    let packets = options.integer("packets", 1..=1000)?;
    let time = options.real("time", 1.0..=10.0)?;
    Ok(Box::new(PacketThreshold {
        packets,
        packets_max: options.integer("packets-max", 1..=100_000)?.max(packets),
        time,
        time_max: options.real("time-max", 1.0..=10.0)?.max(time),
        ack_delay: options.duration("ack-delay", Duration::ZERO..=Duration::from_secs(10))?,
    }))
}

impl PacketThreshold {
    fn delay(&self, rtt: &RttView) -> Duration {
        scale(rtt.smoothed.max(rtt.latest), self.time).max(GRANULARITY)
    }
}

impl LossDetector for PacketThreshold {
    fn judge(&self, packet: &InFlight, view: &DetectionView) -> LossVerdict {
        let due = packet.sent + self.delay(&view.rtt);
        if packet.number.saturating_add(self.packets) <= view.largest_acked || due <= view.now {
            LossVerdict::Lost
        } else {
            LossVerdict::At(due)
        }
    }

    fn on_spurious(&mut self, gap: u64, late: Duration, rtt: &RttView) {
        if gap >= self.packets {
            self.packets = gap.saturating_add(1).min(self.packets_max);
        }
        let base = rtt.smoothed.max(rtt.latest).max(GRANULARITY).as_secs_f64();
        let needed = self.time + late.as_secs_f64() / base;
        self.time = needed.clamp(self.time, self.time_max);
    }

    fn timeout(&self, rtt: &RttView) -> Duration {
        let variation = rtt.variation.saturating_mul(4).max(GRANULARITY);
        rtt.smoothed.saturating_add(variation).saturating_add(self.ack_delay)
    }
}

/// `duration` times `factor`, saturating.
fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
