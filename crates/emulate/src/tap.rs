use anabranch_sim::link::DropCause;
use anabranch_types::{Ecn, Time};

/// Observes the packets that leave a link. It is called on the thread that carries all packets, and
/// blocks that thread until it returns.
pub trait Tap: Send {
    /// Reports that a packet left the link at `time` (since the links were started). If `dropped`
    /// is `None`, the packet arrived at the far end with the codepoint `ecn`, which may differ from
    /// the one in the header in `packet`.
    fn left(&mut self, time: Time, packet: &[u8], ecn: Ecn, dropped: Option<DropCause>);
}
