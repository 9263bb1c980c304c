//! MPLOT, as it is best read for real links and as its paper ran it.

use anabranch_policy::Axis;

use super::{Profile, spec};

/// MPLOT (Sharma, Kar, Ramakrishnan, Kalyanaraman), with the recommended reading of every ambiguity.
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

/// MPLOT as its paper says, for comparisons with its figures: the literal reading.
///
/// Differences from [`profile`]: packets take one of the paper's sizes (§III-C); windows begin with one packet and
/// grow by packets acknowledged, whatever their size (§IV-D); a timeout is TCP's (§II-C), so it doubles up to a minute
/// and nothing leaves beyond the window of one packet; loss is smoothed at every packet (§III-A); the repairs of a
/// block are reckoned as it is created (§III-B); each acknowledgement reports on every path (§II-C); and the paper
/// knows nothing of paths that are suspected, or of what is in flight being sent elsewhere.
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

/// MPLOT in the paper's setting with readings that keep paths of small windows going, which the paper's words do not
/// allow: a packet counts as lost as soon as a later one of its path is acknowledged, and a path that timed out
/// restarts from eight packets without backing off, because after a timeout one packet in flight is lost as often as
/// not, and doubling the wait then has no finite mean. The rest is as in [`profile`].
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
