use super::{Profile, spec};

/// The plain case: lost symbols are sent again, CUBIC on every path.
pub(super) fn profile() -> Profile {
    Profile {
        name: "uncoded".to_owned(),
        summary: "no coding: CUBIC per path, lowest round-trip time first, lost symbols sent again"
            .to_owned(),
        congestion: spec("cubic", &[]),
        loss_detector: spec("packet-threshold", &[]),
        loss_estimator: spec("windowed", &[]),
        scheduler: spec("min-rtt", &[]),
        code: spec("none", &[]),
        redundancy: spec("none", &[]),
        recovery: spec("resend", &[]),
        ack: spec("same-path", &[]),
        custom: Default::default(),
    }
}
