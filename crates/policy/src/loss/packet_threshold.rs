//! Loss detection by packet and time threshold, and by the lateness of packets that arrive out of order.

use anabranch_types::Time;
use core::time::Duration;

use crate::loss::{DetectionView, InFlight, Late, LossDetector, LossVerdict};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::RttView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "packet-threshold",
    summary: "lost when packets sent later, or 9/8 RTT later, are acknowledged; waits as long as packets come late",
    source: "RFC 9002 §6.1 and §6.2; out of order, a measured window in the way of RFC 8985 §6.2",
    options: &[
        option("packets", "packet threshold while packets arrive in order", "3"),
        option("time", "time threshold as a multiple of the round-trip time", "1.125"),
        option(
            "window",
            "longest reordering window, mean deviations of the RTT, at least an RTT",
            "16",
        ),
        option("memory", "round trips for which reordering is remembered", "32"),
        option("ack-delay", "longest time the peer may delay an acknowledgement", "25ms"),
        option(
            "timeout",
            "congestion control hears of a timeout at once, as in TCP (cut), or of a second one in a row (probe)",
            "probe",
        ),
    ],
};

/// Finest resolution of timers (RFC 9002 §6.1.2, kGranularity).
const GRANULARITY: Duration = Duration::from_millis(1);

/// RFC 9002's detector, for paths that keep packets in order and for paths that do not.
///
/// While packets arrive in order, a packet is lost when the largest acknowledged number is
/// `packets` above its own, or when it was sent `time` round-trip times ago and a later packet is
/// acknowledged. Once packets have arrived late, the detector waits for a missing packet, from the
/// time when it was overtaken, as long as the latest packet was late. If a late packet was behind
/// by at least the packet threshold, the threshold no longer applies.
#[derive(Clone, Debug)]
pub struct PacketThreshold {
    packets: u64,
    time: f64,
    window: u32,
    memory: u32,
    ack_delay: Duration,
    timeout_cuts: bool,
    reordering: Reordering,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn LossDetector>, PolicyError> {
    Ok(Box::new(PacketThreshold {
        packets: options.integer("packets", 1..=1000)?,
        time: options.real("time", 1.0..=10.0)?,
        window: options.integer("window", 0..=100)? as u32,
        memory: options.integer("memory", 1..=10_000)? as u32,
        ack_delay: options.duration("ack-delay", Duration::ZERO..=Duration::from_secs(10))?,
        timeout_cuts: options.choice("timeout", &[("probe", false), ("cut", true)])?,
        reordering: Reordering::default(),
    }))
}

/// How far out of order packets arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    late: Duration,
    gap: u64,
}

impl Extent {
    fn max(self, other: Extent) -> Extent {
        Extent { late: self.late.max(other.late), gap: self.gap.max(other.gap) }
    }
}

/// The largest recent extents. The time for which they are remembered has two halves, and each half
/// has its own largest extent.
#[derive(Clone, Copy, Debug, Default)]
struct Reordering {
    current: Extent,
    previous: Extent,
    /// When the current half began.
    since: Time,
}

impl Reordering {
    fn add(&mut self, now: Time, extent: Extent, half: Duration) {
        let age = now.since(self.since);
        if age >= half {
            self.previous = if age < 2 * half { self.current } else { Extent::default() };
            (self.current, self.since) = (Extent::default(), now);
        }
        self.current = self.current.max(extent);
    }

    fn extent(&self, now: Time, half: Duration) -> Extent {
        match now.since(self.since) {
            age if age < half => self.current.max(self.previous),
            age if age < 2 * half => self.current,
            _ => Extent::default(),
        }
    }
}

impl PacketThreshold {
    fn delay(&self, rtt: &RttView) -> Duration {
        scale(rtt.smoothed.max(rtt.latest), self.time).max(GRANULARITY)
    }

    /// Half of the time for which reordering is remembered.
    fn half(&self, rtt: &RttView) -> Duration {
        (rtt.smoothed.max(GRANULARITY) * self.memory) / 2
    }
}

impl LossDetector for PacketThreshold {
    fn judge(&self, packet: &InFlight, view: &DetectionView) -> LossVerdict {
        let Extent { late, gap } = self.reordering.extent(view.now, self.half(&view.rtt));
        let due = (packet.sent + self.delay(&view.rtt)).max(packet.overtaken + late);
        let counted = gap < self.packets;
        let behind = view.largest_acked.saturating_sub(packet.number);
        if (counted && behind >= self.packets) || due <= view.now {
            LossVerdict::Lost
        } else {
            LossVerdict::At(due)
        }
    }

    fn on_late(&mut self, packet: &Late) {
        let rtt = &packet.rtt;
        // A packet that is late by more than `longest` counts as lost, since no timer waits longer.
        let longest = rtt.smoothed.max(rtt.variation.saturating_mul(self.window));
        let extent = Extent { late: packet.late.min(longest), gap: packet.gap };
        self.reordering.add(packet.now, extent, self.half(rtt));
    }

    fn timeout(&self, rtt: &RttView) -> Duration {
        let variation = rtt.variation.saturating_mul(4).max(GRANULARITY);
        rtt.smoothed.saturating_add(variation).saturating_add(self.ack_delay)
    }

    fn timeout_is_congestion(&self) -> bool {
        self.timeout_cuts
    }
}

/// `duration` times `factor`, saturating.
fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
