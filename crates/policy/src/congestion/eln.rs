//! Reno with explicit loss notification: losses that the network reports as damage do not reduce the window.

use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::reno::{self, Reno};
use crate::congestion::{AckEvent, CongestionController, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "eln",
    summary: "Reno that does not answer losses which the network reported as damage",
    source: "Balakrishnan and Katz 1998; pTCP §6.5",
    options: reno::ENTRY.options,
};

/// TCP-ELN: Reno whose sender uses loss notices. Damaged packets are sent again like lost ones, but
/// only other losses, marks and timeouts cut the window.
#[derive(Clone, Debug)]
pub struct Eln {
    reno: Reno,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    Ok(Box::new(Eln { reno: reno::from_options(options)? }))
}

impl CwndRule for Eln {
    fn additive(&self) -> &AdditiveCwnd {
        self.reno.additive()
    }

    fn additive_mut(&mut self) -> &mut AdditiveCwnd {
        self.reno.additive_mut()
    }

    fn acked(&mut self, event: &AckEvent, siblings: &[PathView]) {
        self.reno.acked(event, siblings);
    }

    fn timed_out(&mut self, event: &TimeoutEvent) {
        self.reno.timed_out(event);
    }

    fn excuses_damage(&self) -> bool {
        true
    }
}
