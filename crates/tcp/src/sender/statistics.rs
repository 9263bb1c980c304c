use core::time::Duration;

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStatistics {
    /// Segments with payload or FIN sent, retransmissions included.
    pub data_segments: u64,
    /// Of those, segments sent before.
    pub retransmissions: u64,
    /// Payload bytes sent, retransmissions included.
    pub data_bytes: u64,
    /// Retransmission timeouts, those of a SYN included.
    pub timeouts: u64,
    /// Fast recoveries entered.
    pub recoveries: u64,
    /// Times the window was cut for loss, mark or timeout.
    pub cwnd_reductions: u64,
    /// Times the window was cut for a congestion mark.
    pub ecn_responses: u64,
    /// Acknowledgements taken in.
    pub acks: u64,
    /// Of those, duplicates in the sense of RFC 5681 §2.
    pub duplicate_acks: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Time in which a shut window kept the sender waiting with nothing in flight. Only waits that
    /// have ended are counted.
    pub persist_time: Duration,
    /// Tail loss probes sent (RFC 8985).
    pub tail_probes: u64,
    /// Congestion-window cuts undone because the presumed loss proved spurious.
    pub undone_cuts: u64,
    /// Notices of corruption that led to a retransmission.
    pub loss_notices: u64,
}

impl core::ops::AddAssign for SenderStatistics {
    fn add_assign(&mut self, other: Self) {
        self.data_segments += other.data_segments;
        self.retransmissions += other.retransmissions;
        self.data_bytes += other.data_bytes;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.cwnd_reductions += other.cwnd_reductions;
        self.ecn_responses += other.ecn_responses;
        self.acks += other.acks;
        self.duplicate_acks += other.duplicate_acks;
        self.window_probes += other.window_probes;
        self.persist_time += other.persist_time;
        self.tail_probes += other.tail_probes;
        self.undone_cuts += other.undone_cuts;
        self.loss_notices += other.loss_notices;
    }
}

impl core::iter::Sum for SenderStatistics {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(SenderStatistics::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}
