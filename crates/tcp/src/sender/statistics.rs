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
    pub window_cuts: u64,
    /// Times the window was cut for a congestion mark.
    pub ecn_responses: u64,
    /// Acknowledgements taken in.
    pub acks: u64,
    /// Of those, duplicates in the sense of RFC 5681 §2.
    pub duplicate_acks: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Tail loss probes sent (RFC 8985).
    pub tail_probes: u64,
    /// Notices of corruption that led to a retransmission.
    pub loss_notices: u64,
}
