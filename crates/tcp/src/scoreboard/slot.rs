//! A segment on the scoreboard.

use anabranch_types::Time;

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) start: u64,
    /// When the segment was last sent.
    pub(crate) sent: Time,
    /// Payload bytes.
    pub(crate) len: u32,
    pub(super) state: u8,
}

pub(super) const SACKED: u8 = 1;
/// The segment was declared lost. The bit stays set when the segment is retransmitted.
pub(super) const LOST: u8 = 1 << 1;
/// A retransmission is in flight.
pub(super) const RESENT: u8 = 1 << 2;
/// The segment was retransmitted at some time.
pub(super) const EVER_RESENT: u8 = 1 << 3;
/// The segment ends the stream, and its FIN takes one more offset.
pub(super) const FIN: u8 = 1 << 4;
/// An explicit notice said that the segment was lost by corruption.
pub(super) const NOTICED: u8 = 1 << 5;

impl Slot {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.is(FIN))
    }

    pub(super) fn is(&self, bit: u8) -> bool {
        self.state & bit != 0
    }

    pub(crate) fn ends_stream(&self) -> bool {
        self.is(FIN)
    }

    pub(crate) fn ever_resent(&self) -> bool {
        self.is(EVER_RESENT)
    }

    /// Bytes that the segment counts in the pipe (RFC 6675 §4, SetPipe).
    pub(super) fn in_pipe(&self) -> u64 {
        if self.is(SACKED) {
            return 0;
        }
        let copies = u64::from(!self.is(LOST)) + u64::from(self.is(RESENT));
        copies * u64::from(self.len)
    }

    pub(super) fn waits_for_resending(&self) -> bool {
        self.state & (SACKED | LOST | RESENT) == LOST
    }
}
