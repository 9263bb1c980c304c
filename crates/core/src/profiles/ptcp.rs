use anabranch_policy::Axis;

use super::{Profile, spec};

/// pTCP (Hsieh and Sivakumar) on the real transport: what its §3 says of striping and of blackouts, with Reno as its
/// TCP-v unless a path is given another controller.
///
/// A symbol is bound to the path whose window opens next. A cut of a window unbinds what waits
/// beyond it. A timeout unbinds all but the oldest packet, of which another path gets a copy.
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
