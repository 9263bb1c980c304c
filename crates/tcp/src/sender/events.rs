/// Event that a sender reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The SYN was answered.
    Connected,
    /// Fast recovery began at this stream offset, the first missing one.
    Recovery(u64),
    /// The retransmission timer fired; everything from this offset on waits to be sent again.
    Timeout(u64),
    /// The congestion window shrank to this many bytes, for whatever reason.
    CwndReduced(u64),
    /// The last cut was undone because the presumed loss proved spurious; the window has this many bytes now.
    CutUndone(u64),
    /// Everything written has been acknowledged.
    Drained,
    /// The connection was given up after too many timeouts in a row.
    GaveUp,
}
