//! MPLOT, as it is best read for real links and as its paper ran it.

use super::{Profile, spec};

/// MPLOT (Sharma, Kar, Ramakrishnan, Kalyanaraman), with the recommended reading of every ambiguity.
pub(super) fn profile() -> Profile {
    Profile {
        name: "mplot".to_owned(),
        summary: "MPLOT: Reno on ECN only, rank mapping, Reed-Solomon blocks with proactive and \
                  reactive repair, acknowledgements on random paths"
            .to_owned(),
        congestion: spec("ecn-reno", &[]),
        loss_detector: spec("dupack", &[]),
        loss_estimator: spec("per-block", &[]),
        scheduler: spec("rank", &[]),
        code: spec("reed-solomon", &[]),
        redundancy: spec("mean-sigma", &[]),
        recovery: spec("fresh-repairs", &[]),
        ack: spec("random-path", &[("every", "1")]),
        custom: Default::default(),
    }
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
    Profile {
        name: "mplot-paper".to_owned(),
        summary: "MPLOT as its paper simulated it: packets of three sizes, a packet lost once a \
                  later one of its path arrives, eight packets after a timeout"
            .to_owned(),
        congestion: spec("ecn-reno", &[("initial", "1"), ("restart", "8"), ("growth", "packets")]),
        loss_detector: spec("dupack", &[("packets", "1"), ("backoff", "0")]),
        redundancy: spec("mean-sigma", &[("sizes", "paper")]),
        ..profile()
    }
}
