//! Recovers losses with repairs that have never been sent.

use anabranch_types::Time;

use crate::recovery::{RecoveryAction, RecoveryEvent, RecoveryPolicy};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "fresh-repairs",
    summary: "as many fresh repairs as the block still needs; a silent path's load moves to others",
    source: "MPLOT §II-A; FMTCP §IV-A",
    options: &[
        option(
            "timeout",
            "after a timeout, send what the path carried elsewhere (reinject), or wait (nothing)",
            "reinject",
        ),
        option(
            "open",
            "for a loss of a block that still fills, wait until repairs can be made, or resend the symbol",
            "wait",
        ),
        option(
            "silence",
            "a path that is silent beyond chance is left until it answers (avoid), or used on (ignore)",
            "avoid",
        ),
    ],
};

/// Any symbol helps as much as the lost one, so lost symbols are sent again only if the option
/// `open` says so, and only while their block is filling: a block has no repairs until it closes,
/// and sending the symbol itself is never wasted.
#[derive(Clone, Copy, Debug)]
pub struct FreshRepairs {
    reinject: bool,
    resend_open: bool,
    avoid_silent: bool,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RecoveryPolicy>, PolicyError> {
    let reinject = options.choice("timeout", &[("reinject", true), ("nothing", false)])?;
    let resend_open = options.choice("open", &[("wait", false), ("resend", true)])?;
    let avoid_silent = options.choice("silence", &[("avoid", true), ("ignore", false)])?;
    Ok(Box::new(FreshRepairs { reinject, resend_open, avoid_silent }))
}

impl RecoveryPolicy for FreshRepairs {
    fn on_event(
        &mut self,
        _now: Time,
        event: RecoveryEvent,
        _paths: &[PathView],
    ) -> RecoveryAction {
        match event {
            RecoveryEvent::Lost { open: true, .. } if self.resend_open => RecoveryAction::Resend,
            RecoveryEvent::Lost { .. } => RecoveryAction::Repair,
            RecoveryEvent::Timeout { path, alternatives: true, .. } if self.reinject => {
                RecoveryAction::Reinject(path)
            }
            RecoveryEvent::PathDown(path) => RecoveryAction::Reinject(path),
            RecoveryEvent::Timeout { .. }
            | RecoveryEvent::CwndReduced { .. }
            | RecoveryEvent::PathUp(_) => RecoveryAction::Nothing,
        }
    }

    fn resends(&self) -> bool {
        false
    }

    fn avoids_silent_paths(&self) -> bool {
        self.avoid_silent
    }
}
