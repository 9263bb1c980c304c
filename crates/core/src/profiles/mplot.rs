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
        code: "reed-solomon".to_owned(),
        redundancy: spec("mean-sigma", &[]),
        recovery: spec("fresh-repairs", &[]),
        ack: spec("random-path", &[("every", "1")]),
    }
}
