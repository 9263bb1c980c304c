use super::{Profile, spec};

/// The default for real links.
pub(super) fn profile() -> Profile {
    Profile {
        name: "anabranch".to_owned(),
        summary: "the default for real links: loss-compensated delay-bounded control, earliest \
                  in-order completion, redundancy within a byte budget"
            .to_owned(),
        congestion: spec("compensated", &[]),
        loss_detector: spec("packet-threshold", &[]),
        loss_estimator: spec("windowed", &[]),
        scheduler: spec("earliest", &[]),
        code: spec("reed-solomon", &[]),
        redundancy: spec("budget", &[]),
        recovery: spec("fresh-repairs", &[("open", "resend")]),
        ack: spec("best-path", &[]),
        custom: Default::default(),
    }
}
