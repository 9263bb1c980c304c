//! Reno with explicit loss notification: losses that the network reports as damage cut nothing.

use crate::congestion::reno::{self, Reno};
use crate::congestion::{AckEvent, CongestionController, SentEvent, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError};
use crate::view::PathView;

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    axis: "congestion",
    name: "eln",
    summary: "Reno that does not answer losses which the network reported as damage",
    source: "Balakrishnan and Katz 1998; pTCP §6.5",
    options: reno::ENTRY.options,
};

/// TCP-ELN's window rule. What is damaged is sent again like any loss, but only losses beyond the reported
/// ones, marks and timeouts cut the window.
#[derive(Clone, Debug)]
pub struct Eln {
    reno: Reno,
}

/// Makes it from its options.
pub fn build(
    options: &Options<'_>,
    packet_size: u64,
) -> Result<Box<dyn CongestionController>, PolicyError> {
    Ok(Box::new(Eln { reno: reno::from_options(options, packet_size)? }))
}

impl CongestionController for Eln {
    fn on_sent(&mut self, event: &SentEvent) {
        self.reno.on_sent(event);
    }

    fn on_ack(&mut self, event: &AckEvent, siblings: &[PathView]) {
        let lost_packets = event.lost_packets.saturating_sub(event.corrupted_packets);
        self.reno.on_ack(&AckEvent { lost_packets, ..*event }, siblings);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.reno.on_timeout(event);
    }

    fn penalise(&mut self) {
        self.reno.penalise();
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.reno.set_packet_size(bytes);
    }

    fn window(&self) -> u64 {
        self.reno.window()
    }

    fn ssthresh(&self) -> u64 {
        self.reno.ssthresh()
    }

    fn phase(&self) -> &'static str {
        self.reno.phase()
    }
}
