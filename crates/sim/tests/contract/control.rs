//! A congestion window that does not grow, so that cases know how much fits. Losses and timeouts
//! may reduce it, and penalties do.

use anabranch_policy::CongestionController;
use anabranch_policy::congestion::{AckEvent, TimeoutEvent};
use anabranch_policy::view::PathView;

#[derive(Debug)]
pub struct Fixed {
    packet: u64,
    bytes: u64,
    /// Whether losses and timeouts leave the window as it is.
    still: bool,
    cut: bool,
}

impl Fixed {
    pub fn new(packets: u64, packet: u64) -> Self {
        Fixed { packet, bytes: packets * packet, still: false, cut: false }
    }

    /// A window that neither losses nor timeouts cut.
    pub fn still(packets: u64, packet: u64) -> Self {
        Fixed { still: true, ..Fixed::new(packets, packet) }
    }
}

impl CongestionController for Fixed {
    fn on_ack(&mut self, event: &AckEvent, _: &[PathView]) {
        if event.lost_packets > 0 && !self.still && !core::mem::replace(&mut self.cut, true) {
            self.bytes = (self.bytes / 4).max(self.packet);
        }
    }

    fn on_timeout(&mut self, _: &TimeoutEvent) {
        if !self.still {
            self.bytes = self.packet;
        }
    }

    fn penalise(&mut self) {
        self.bytes = (self.bytes / 2).max(self.packet);
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.bytes = self.bytes / self.packet * bytes;
        self.packet = bytes;
    }

    fn cwnd(&self) -> u64 {
        self.bytes
    }

    fn phase(&self) -> &'static str {
        "fixed"
    }
}
