use anabranch_policy::Axis;

use super::{Profile, spec};

/// The profile `anabranch`, the default for real links.
pub(super) fn profile() -> Profile {
    let summary = "the default for real links: loss-compensated delay-bounded control, earliest \
                   in-order completion, redundancy within a byte budget";
    Profile::built_in("anabranch", summary, |axis| match axis {
        Axis::Congestion => spec("compensated", &[]),
        Axis::LossDetector => spec("packet-threshold", &[]),
        Axis::LossEstimator => spec("windowed", &[]),
        Axis::Scheduler => spec("earliest", &[]),
        Axis::Code => spec("reed-solomon", &[]),
        Axis::Redundancy => spec("budget", &[]),
        Axis::Recovery => spec("fresh-repairs", &[("open", "resend")]),
        Axis::Ack => spec("quicker-path", &[]),
    })
}
