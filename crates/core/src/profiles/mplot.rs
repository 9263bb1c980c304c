//! Variants of MPLOT: for real links, and as its paper describes it.

use anabranch_policy::Axis;

use super::{Profile, spec};

/// MPLOT (Sharma, Kar, Ramakrishnan, Kalyanaraman), with the recommended interpretation of every
/// ambiguity in its paper.
pub(super) fn profile() -> Profile {
    let summary = "MPLOT: Reno on ECN only, rank mapping, Reed-Solomon blocks with proactive and \
                   reactive repair, acknowledgements on random paths";
    Profile::built_in("mplot", summary, |axis| match axis {
        Axis::Congestion => spec("ecn-reno", &[]),
        Axis::LossDetector => spec("dupack", &[]),
        Axis::LossEstimator => spec("per-block", &[]),
        Axis::Scheduler => spec("rank", &[]),
        Axis::Code => spec("reed-solomon", &[]),
        Axis::Redundancy => spec("mean-sigma", &[]),
        Axis::Recovery => spec("fresh-repairs", &[]),
        Axis::Ack => spec("random-path", &[("every", "1")]),
    })
}

/// MPLOT as its paper literally describes it, for comparisons with the paper's figures.
///
/// Differences from [`profile`]: packets have one of the paper's sizes (§III-C); windows start with
/// one packet and grow with the number of acknowledged packets, regardless of their size (§IV-D);
/// timeouts follow TCP (§II-C), so they double up to one minute and nothing is sent beyond the
/// window of one packet; loss is smoothed at every packet (§III-A); the repairs of a block are
/// computed when it is created (§III-B); each acknowledgement reports on every path (§II-C). Paths
/// are never suspected, and packets in flight are not sent again on other paths, since the paper
/// has neither.
pub(super) fn paper_profile() -> Profile {
    let summary = "MPLOT as its paper says: packets of three sizes, three later packets make a loss, \
                   TCP's timeouts, reports on every path, no suspicion";
    let mplot = profile();
    Profile::built_in("mplot-paper", summary, |axis| match axis {
        Axis::Congestion => spec("ecn-reno", &[("initial", "1"), ("growth", "packets")]),
        Axis::LossDetector => spec("dupack", &[("max", "60s"), ("probes", "0")]),
        Axis::LossEstimator => spec("per-ack", &[]),
        Axis::Redundancy => spec("mean-sigma", &[("sizes", "paper"), ("reckoned", "opened")]),
        Axis::Recovery => spec("fresh-repairs", &[("timeout", "nothing"), ("silence", "ignore")]),
        Axis::Ack => spec("random-path", &[("every", "1"), ("about", "all")]),
        other => mplot.policy(other).clone(),
    })
}

/// MPLOT in the paper's setting, with two changes, which the paper does not allow, that keep paths
/// with small windows running. A packet counts as lost as soon as a later one of its path is
/// acknowledged. A path that timed out restarts with eight packets and without back-off; with a
/// single packet in flight, which is lost in about half of all cases, the mean of a doubling
/// timeout would be infinite. The rest is as in [`profile`].
pub(super) fn tuned_profile() -> Profile {
    let summary = "MPLOT in the paper's setting, tuned: packets of three sizes, a packet lost once a \
                   later one of its path arrives, eight packets after a timeout";
    let mplot = profile();
    Profile::built_in("mplot-tuned", summary, |axis| match axis {
        Axis::Congestion => {
            spec("ecn-reno", &[("initial", "1"), ("restart", "8"), ("growth", "packets")])
        }
        Axis::LossDetector => spec("dupack", &[("packets", "1"), ("backoff", "0")]),
        Axis::Redundancy => spec("mean-sigma", &[("sizes", "paper")]),
        other => mplot.policy(other).clone(),
    })
}
