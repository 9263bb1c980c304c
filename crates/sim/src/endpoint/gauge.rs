use core::time::Duration;

use anabranch_core::connection::BlockRecord;
use anabranch_types::Time;

/// Deliveries at the receiving end of a flow.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    /// Application bytes delivered in order, of all transfers.
    pub delivered: u64,
    /// When the last of them was.
    pub last_delivery: Time,
    /// From when on gaps count.
    pub gap_from: Time,
    /// The longest gap, in nanoseconds: there is one for every delivery.
    longest_gap: u64,
}

/// Progress since a log was last taken. Transfers are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// New ends of what was sent of a transfer, and when.
    pub sent: Vec<(u64, u64, Time)>,
    /// New ends of what was delivered of a transfer, and when.
    pub delivered: Vec<(u64, u64, Time)>,
    /// Slices of a transfer that became whole, and when.
    pub whole: Vec<(u64, u64, Time)>,
    /// Offsets of the data of a transfer that was in a packet that was lost.
    pub lost: Vec<(u64, u64)>,
    /// Source symbols of a connection: new ends of what was sent, and when.
    pub symbols_sent: Vec<(u64, Time)>,
    /// Source symbols of a connection that arrived or were decoded, and when.
    pub symbols_held: Vec<(u64, Time)>,
    /// Coding blocks of a connection of which all is known.
    pub blocks: Vec<BlockRecord>,
}

/// What a log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Bytes that a full packet carries, about.
    pub packet: u64,
    /// Whether it tells what was lost of blocks.
    pub losses: bool,
}

/// What is logged beside packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Bytes of the stream slices that are blocks.
    pub slice: u64,
    /// Of flows that code, the coding blocks instead of slices.
    pub coding_blocks: bool,
}

impl Gauge {
    /// `bytes` more are delivered now; none is no delivery.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.delivered += bytes;
        let since = self.last_delivery.max(self.gap_from);
        let gap = now.as_nanos().saturating_sub(since.as_nanos());
        self.longest_gap = self.longest_gap.max(gap);
        self.last_delivery = now;
    }

    /// The longest time without a delivery, from `gap_from` to the last delivery.
    pub fn longest_gap(&self) -> Duration {
        Duration::from_nanos(self.longest_gap)
    }
}
