use anabranch_types::Probability;

/// Counters of a link since it was made.
///
/// Every packet that was offered is finally counted exactly once, as delivered or under one cause
/// of drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to the link.
    pub packets_in: u64,
    /// Bytes offered to the link.
    pub bytes_in: u64,
    /// Packets handed over at the far end.
    pub packets_delivered: u64,
    /// Bytes handed over at the far end.
    pub bytes_delivered: u64,
    /// Packets whose last bit left the transmitter, lost ones included.
    pub packets_serialised: u64,
    /// Bytes of the packets in `packets_serialised`.
    pub bytes_serialised: u64,
    /// Packets dropped because the buffer was full.
    pub dropped_full: u64,
    /// Packets dropped by RED before the buffer was full, or by CoDel on their way out.
    pub dropped_early: u64,
    /// Packets dropped because of a blackout.
    pub dropped_blackout: u64,
    /// Packets dropped because they were longer than the MTU.
    pub dropped_too_long: u64,
    /// Packets dropped because they came faster than the policer allows.
    pub dropped_policed: u64,
    /// Packets lost at random after serialisation.
    pub lost_random: u64,
    /// Packets that the queue marked CE.
    pub ecn_marks: u64,
}

impl LinkCounters {
    /// Packets dropped by the queue: `dropped_full` plus `dropped_early`.
    pub const fn dropped_by_queue(&self) -> u64 {
        self.dropped_full + self.dropped_early
    }

    /// Realised random loss: lost packets divided by serialised packets; zero before the first
    /// packet.
    pub fn realised_loss(&self) -> Probability {
        match self.packets_serialised {
            0 => Probability::ZERO,
            n => Probability::clamped(self.lost_random as f64 / n as f64),
        }
    }
}
