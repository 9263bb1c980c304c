use anabranch_policy::Axis;

use super::{Profile, spec};

/// M-TCP (Chen, Xu and Gerla) on the real transport. Each of two paths carries a copy of every
/// packet (§III-B): the paths with the earliest expected arrival, with a preference for disjoint
/// paths (§III-A).
///
/// The second copy is delayed by up to 2 ms, the transmission time of two packets at 12 Mb/s,
/// because the paper's routing layer sends a copy after the original. Each path has its own Reno
/// instance. Acknowledgements are sent on all paths, whereas the paper copies only data.
pub(super) fn profile() -> Profile {
    let summary = "M-TCP: a copy of every symbol on two paths, the later one within 2 ms; the first arrival counts; \
                   no coding, a Reno per path";
    Profile::built_in("mtcp", summary, |axis| match axis {
        Axis::Congestion => spec("reno", &[]),
        Axis::LossDetector => spec("packet-threshold", &[]),
        Axis::LossEstimator => spec("windowed", &[]),
        Axis::Scheduler => spec("redundant", &[("paths", "2"), ("jitter", "2ms")]),
        Axis::Code => spec("none", &[]),
        Axis::Redundancy => spec("none", &[]),
        Axis::Recovery => spec("resend", &[]),
        Axis::Ack => spec("all-paths", &[]),
    })
}
