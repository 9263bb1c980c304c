//! What is measured at the receiving end of any flow, and the logs that delays are reckoned from.

use core::time::Duration;

use anabranch_types::Time;

use crate::engine::PortId;

/// What was seen at a receiving end.
#[derive(Clone, Debug, Default)]
pub(super) struct Gauge {
    /// Bytes on the wire that arrived, for each port in the order of the paths.
    pub arrived: Vec<(PortId, u64)>,
    /// Bytes delivered in order, of all transfers.
    pub delivered: u64,
    pub last_delivery: Time,
    /// The longest time without a delivery, from `gap_from` on.
    pub longest_gap: Duration,
    pub gap_from: Time,
}

/// Progress since a log was last taken. Transfers are numbered from 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// New ends of what was sent of a transfer, and when.
    pub sent: Vec<(u64, u64, Time)>,
    /// New ends of what was delivered of a transfer, and when.
    pub delivered: Vec<(u64, u64, Time)>,
    /// Slices of a transfer that became whole, and when.
    pub whole: Vec<(u64, u64, Time)>,
}

impl Gauge {
    /// Of an agent whose gaps are measured from `gap_from` on.
    pub(super) fn new(gap_from: Time) -> Self {
        Gauge { gap_from, ..Gauge::default() }
    }

    /// A port was attached.
    pub(super) fn attach(&mut self, port: PortId) {
        self.arrived.push((port, 0));
    }

    /// A packet of `size` bytes arrived at `port`.
    pub(super) fn arrive(&mut self, port: PortId, size: u32) {
        if let Some((_, bytes)) = self.arrived.iter_mut().find(|(known, _)| *known == port) {
            *bytes += u64::from(size);
        }
    }

    /// `delivered` bytes have been delivered in all by now.
    pub(super) fn deliver(&mut self, now: Time, delivered: u64) {
        if delivered <= self.delivered {
            return;
        }
        self.delivered = delivered;
        let since = self.last_delivery.max(self.gap_from);
        self.longest_gap = self.longest_gap.max(now.since(since));
        self.last_delivery = now;
    }
}
