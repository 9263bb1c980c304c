use anabranch_policy::Axis;

use super::{Profile, spec};

/// FMTCP (Cui, Wang, Wang, Wang and Wang): its blocks, its provisioning of repairs and its
/// allocation over paths, each of which runs TCP SACK-Reno.
///
/// Windows, losses and timeouts follow TCP, separately on each path. A lost symbol is not sent
/// again; its block needs one more symbol, which is sent on the path with the earliest expected
/// arrival. Every packet is acknowledged, as by ns-2's receivers.
pub(super) fn profile() -> Profile {
    let summary = "FMTCP: fountain-coded blocks that are complete but for a small chance, symbols by expected arrival, \
                   a SACK-Reno per path, not coupled";
    Profile::built_in("fmtcp", summary, |axis| match axis {
        Axis::Congestion => spec("reno", &[("growth", "acks"), ("halve", "flight")]),
        Axis::LossDetector => spec("dupack", &[]),
        Axis::LossEstimator => spec("windowed", &[("half-life", "5s"), ("rtts", "20")]),
        Axis::Scheduler => spec("expected-arrival", &[]),
        Axis::Code => spec("raptorq", &[]),
        Axis::Redundancy => spec("delta-complete", &[]),
        Axis::Recovery => spec("fresh-repairs", &[]),
        Axis::Ack => spec("same-path", &[("every", "1")]),
    })
}
