//! OTIAS: each symbol is assigned to the path where it is expected to arrive first, even if it must
//! wait there for the congestion window.

use anabranch_types::PathId;
use core::time::Duration;

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::unblock;
use crate::scheduler::work::{NOTHING, carrier, carriers, first_in_line, send};
use crate::scheduler::{Pick, Pull, Scheduler};
use crate::view::{PathView, SchedulerView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "otias",
    summary: "the path on which a symbol arrives first, queued there ahead of the window",
    source: "Yang, Wang and Amer 2014; the MPTCP implementation for Linux, its otias patch",
    options: &[unblock::OPTION],
};

/// The OTIAS scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Otias;

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    unblock::wrap(options, Otias)
}

/// Expected time until the next symbol queued on `path` arrives: the whole round trips that it
/// waits for the window, and then half a round trip.
fn arrival(path: &PathView) -> Duration {
    let size = path.packet_size.max(1);
    let space = path.cwnd.saturating_sub(path.bytes_in_flight) / size;
    let rounds = (path.bytes_queued / size).saturating_sub(space) / path.cwnd_packets();
    path.rtt.smoothed * rounds as u32 + path.rtt.smoothed / 2
}

impl Scheduler for Otias {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        if let Err(idle) = carrier(view, path) {
            return idle;
        }
        let Some(work) = first_in_line(view) else { return NOTHING };
        let first = carriers(view).min_by_key(|other| (arrival(other), other.id));
        match first {
            Some(first) if first.id != path => {
                send(picks, first.id, work, "arrives first on another path, queued there")
            }
            _ => send(picks, path, work, "arrives first on this path"),
        }
    }
}
