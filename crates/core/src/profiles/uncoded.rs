use anabranch_policy::Axis;

use super::{Profile, spec};

/// Transport without coding: lost symbols are sent again, and every path runs CUBIC.
pub(super) fn profile() -> Profile {
    let summary =
        "no coding: CUBIC per path, lowest round-trip time first, lost symbols sent again";
    Profile::built_in("uncoded", summary, |axis| match axis {
        Axis::Congestion => spec("cubic", &[]),
        Axis::LossDetector => spec("packet-threshold", &[]),
        Axis::LossEstimator => spec("windowed", &[]),
        Axis::Scheduler => spec("min-rtt", &[]),
        Axis::Code => spec("none", &[]),
        Axis::Redundancy => spec("none", &[]),
        Axis::Recovery => spec("resend", &[]),
        Axis::Ack => spec("same-path", &[]),
    })
}
