use anabranch_policy::Axis;

use super::{Profile, spec};

/// pTCP (Hsieh and Sivakumar) on the real transport: striping and the handling of blackouts as in
/// §3 of its paper. Its TCP-v is Reno unless another controller is set for a path.
///
/// A symbol is bound to the path whose window opens next. If a window is reduced, the waiting
/// symbols beyond it are unbound. A timeout unbinds all symbols except those of the oldest packet,
/// of which another path gets a copy.
pub(super) fn profile() -> Profile {
    let summary = "pTCP: symbols bound as windows open, unbound as windows shrink, the oldest packet \
                   copied to another path on a timeout; no coding, a controller per path, not coupled";
    Profile::built_in("ptcp", summary, |axis| match axis {
        Axis::Congestion => spec("reno", &[]),
        Axis::LossDetector => spec("packet-threshold", &[("timeout", "cut")]),
        Axis::LossEstimator => spec("windowed", &[]),
        Axis::Scheduler => spec("blind", &[]),
        Axis::Code => spec("none", &[]),
        Axis::Redundancy => spec("none", &[]),
        Axis::Recovery => spec("resend", &[("timeout", "copy"), ("cut", "unsent")]),
        Axis::Ack => spec("same-path", &[]),
    })
}
