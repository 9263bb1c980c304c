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

/// MPLOT in the setting of its paper's simulations, for comparisons with its figures.
///
/// Readings that differ from [`profile`]: packets take one of the paper's sizes (§III-C), windows begin
/// with one packet and grow by packets acknowledged, whatever their size (§IV-D); a packet counts
/// as lost as soon as a later one of its path is acknowledged, because the paper's links keep the order
/// of packets and windows of a few packets rarely see three later ones arrive at its loss rates; and a
/// path that timed out restarts from eight packets without backing off, because after a timeout one
/// packet in flight is lost as often as not, and doubling the wait then has no finite mean.
pub(super) fn paper_profile() -> Profile {
    let summary = "MPLOT as its paper simulated it: packets of three sizes, a packet lost once a \
                   later one of its path arrives, eight packets after a timeout";
    let mplot = profile();
    Profile::built_in("mplot-paper", summary, |axis| match axis {
        Axis::Congestion => {
            spec("ecn-reno", &[("initial", "1"), ("restart", "8"), ("growth", "packets")])
        }
        Axis::LossDetector => spec("dupack", &[("packets", "1"), ("backoff", "0")]),
        Axis::Redundancy => spec("mean-sigma", &[("sizes", "paper")]),
        other => mplot.policy(other).clone(),
    })
}
