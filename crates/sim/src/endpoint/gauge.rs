use core::time::Duration;

use anabranch_core::connection::BlockRecord;
use anabranch_types::Time;

/// Deliveries at the receiving end of a flow.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    /// Application bytes delivered in order, of all transfers.
    pub delivered: u64,
    /// Time of the last delivery.
    pub last_delivery: Time,
    /// Time from which gaps count.
    pub gap_from: Time,
    /// The longest gap, nanoseconds. It is a plain integer for speed, because every delivery
    /// updates it.
    longest_gap: u64,
}

/// Progress since a log was last taken. Transfers are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// A transfer, the number of its bytes sent so far, and when.
    pub sent: Vec<(u64, u64, Time)>,
    /// A transfer, the number of its bytes delivered so far, and when; `u64::MAX` bytes mean that
    /// it is complete.
    pub delivered: Vec<(u64, u64, Time)>,
    /// A transfer, the number of a slice that has now arrived completely, and when.
    pub whole: Vec<(u64, u64, Time)>,
    /// A transfer, and the offset of the data in a lost packet.
    pub lost: Vec<(u64, u64)>,
    /// The number of source symbols sent so far on a connection, and when.
    pub symbols_sent: Vec<(u64, Time)>,
    /// A source symbol of a connection that arrived or was decoded, and when.
    pub symbols_held: Vec<(u64, Time)>,
    /// Recovered coding blocks of a connection, once the fate of all their packets is known.
    pub blocks: Vec<BlockRecord>,
}

/// Packet size of a log, and whether the log includes losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Approximate number of bytes that a full packet carries.
    pub packet: u64,
    /// Whether the log includes the losses of blocks.
    pub losses: bool,
}

/// Selection of what is logged in addition to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Length of the stream slices that count as blocks, bytes.
    pub slice: u64,
    /// Whether coding blocks replace slices for flows that code.
    pub coding_blocks: bool,
}

impl Gauge {
    /// Counts `bytes` delivered at `now`; zero bytes are no delivery.
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
