//! Recovers losses by sending the same symbol again.

use anabranch_types::Time;

use crate::recovery::{RecoveryAction, RecoveryEvent, RecoveryPolicy};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "resend",
    summary: "sends a lost symbol again; a silent path's load moves to others",
    source: "MPLOT §II-A, its alternative; RFC 8684 §3.3.6; pTCP §4.5 and §4.6",
    options: &[
        option(
            "timeout",
            "after a timeout: move everything (reinject), copy the oldest (copy), or nothing",
            "reinject",
        ),
        option(
            "stale",
            "timeouts in a row from which on everything is moved, whatever timeout says; 0: never",
            "0",
        ),
        option(
            "cut",
            "after a cut of the congestion window: keep what is assigned to the path; take back what exceeds the window \
             (unbind), or of that only what is not sent yet or has met silence (unsent)",
            "keep",
        ),
    ],
};

#[derive(Clone, Copy, Debug)]
enum OnTimeout {
    Reinject,
    Copy,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
enum OnCut {
    Keep,
    Unsent,
    Unbind,
}

/// Retransmission, with pTCP's unbinding and its copy after a timeout as options.
#[derive(Clone, Copy, Debug)]
pub struct Resend {
    timeout: OnTimeout,
    stale: u32,
    cut: OnCut,
}

impl Resend {
    /// The policy with the defaults of its options.
    pub(super) fn plain() -> Self {
        Resend { timeout: OnTimeout::Reinject, stale: 0, cut: OnCut::Keep }
    }
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RecoveryPolicy>, PolicyError> {
    let timeouts = [
        ("reinject", OnTimeout::Reinject),
        ("copy", OnTimeout::Copy),
        ("nothing", OnTimeout::Nothing),
    ];
    let cuts = [("keep", OnCut::Keep), ("unsent", OnCut::Unsent), ("unbind", OnCut::Unbind)];
    Ok(Box::new(Resend {
        timeout: options.choice("timeout", &timeouts)?,
        stale: options.integer("stale", 0..=1000)? as u32,
        cut: options.choice("cut", &cuts)?,
    }))
}

impl RecoveryPolicy for Resend {
    fn on_event(
        &mut self,
        _now: Time,
        event: RecoveryEvent,
        _paths: &[PathView],
    ) -> RecoveryAction {
        match event {
            RecoveryEvent::Lost { .. } => RecoveryAction::Resend,
            RecoveryEvent::Timeout { path, alternatives: true, consecutive } => {
                match self.timeout {
                    _ if self.stale > 0 && consecutive >= self.stale => {
                        RecoveryAction::Reinject(path)
                    }
                    OnTimeout::Reinject => RecoveryAction::Reinject(path),
                    OnTimeout::Copy => RecoveryAction::Copy(path),
                    OnTimeout::Nothing => RecoveryAction::Nothing,
                }
            }
            RecoveryEvent::CwndReduced { path, cwnd, silent } => match self.cut {
                OnCut::Keep => RecoveryAction::Nothing,
                OnCut::Unsent if !silent => RecoveryAction::TakeBackQueued(path, cwnd),
                OnCut::Unsent | OnCut::Unbind => RecoveryAction::TakeBack(path, cwnd),
            },
            RecoveryEvent::PathDown(path) => RecoveryAction::Reinject(path),
            RecoveryEvent::Timeout { .. } | RecoveryEvent::PathUp(_) => RecoveryAction::Nothing,
        }
    }

    fn resends(&self) -> bool {
        true
    }
}
