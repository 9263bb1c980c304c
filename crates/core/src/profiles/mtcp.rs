use anabranch_policy::Axis;

use super::{Profile, spec};

/// M-TCP (Chen, Xu and Gerla) on the real transport: a copy of every packet on each of two paths (§III-B), those on
/// which it arrives first, and disjoint ones before others (§III-A).
///
/// The copy waits up to 2 ms, two transmissions of a packet at 12 Mb/s, as the paper's routing layer has copies wait
/// for the original to leave. Every path has a Reno of its own. Acknowledgements go on all paths; the paper copies
/// data alone.
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
