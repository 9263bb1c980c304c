//! A budget for the work of decoding blocks. It grows with the packets that arrive, so that a peer cannot make a
//! receiver solve large blocks of short symbols all the time.

/// Units of work that each byte of a packet earns. A RaptorQ solve takes 1500 units plus one per
/// byte for each symbol. So 64-byte symbols that fill packets earn the work of their own decoding,
/// and 1400-byte symbols more than ten times theirs.
const FOR_EACH_BYTE: u64 = 24;
/// Bytes that the network adds to a packet (UDP and IPv6 headers are 48). With these bytes, a
/// symbol of one byte that is alone in its packet earns its decoding too.
const OVERHEAD: u64 = 40;
/// Units of work that a connection begins with: enough to solve a block of a hundred short symbols
/// after a failed attempt, and about what a handshake takes, a millisecond.
const AT_FIRST: u64 = 1 << 18;

/// The work that may still be done, in units of about 16 instructions.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    most: u64,
}

impl Budget {
    /// Starts a budget that accumulates at most the work of the `dearest` recovery.
    pub(super) fn new(dearest: u64) -> Self {
        Budget { left: AT_FIRST.min(dearest), most: dearest }
    }

    /// Adds the work that a packet of this many bytes earns.
    #[inline]
    pub(super) fn earn(&mut self, bytes: usize) {
        let earned = (bytes as u64).saturating_add(OVERHEAD).saturating_mul(FOR_EACH_BYTE);
        self.left = self.left.saturating_add(earned).min(self.most);
    }

    /// Spends this work. Returns false and spends nothing if too little is left.
    #[must_use]
    pub(super) fn spend(&mut self, work: u64) -> bool {
        match self.left.checked_sub(work) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}
