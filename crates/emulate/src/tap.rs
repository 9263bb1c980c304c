use anabranch_sim::link::DropCause;
use anabranch_types::{Ecn, Time};

/// Sees what leaves a link. Called on the thread that carries packets, which it blocks meanwhile.
pub trait Tap: Send {
    /// A packet left the link at `time`, since the links were started: it arrived at the far end with this codepoint,
    /// whatever its header still says, or it was dropped.
    fn left(&mut self, time: Time, packet: &[u8], ecn: Ecn, dropped: Option<DropCause>);
}
