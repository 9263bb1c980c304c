//! ECN validation (RFC 9000 §13.4.2): whether the ECN marks of sent packets reach the peer.

/// Number of marked packets that must have been sent and acknowledged before marking may be given
/// up.
const SAMPLE: u64 = 10;

/// Counts of marked packets, from which ECN validation decides.
#[derive(Debug, Default)]
pub struct EcnValidation {
    failed: bool,
    sent: u64,
    /// Largest totals that the peer reported.
    ect0: u64,
    ce: u64,
    /// Packets from this number on took the current route.
    first: u64,
    /// How many packets on the current route were acknowledged.
    acked: u64,
    /// Marked packets sent on earlier routes.
    sent_before: u64,
    /// Marks reported before a packet on the current route was acknowledged.
    reported_before: u64,
}

impl EcnValidation {
    /// Whether packets are marked, which holds until validation fails.
    pub fn is_capable(&self) -> bool {
        !self.failed
    }

    /// Number of packets sent with ECT(0).
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Numbers of packets that the peer has reported with ECT(0) and with CE.
    pub fn reported(&self) -> (u64, u64) {
        (self.ect0, self.ce)
    }

    /// Counts a packet sent with ECT(0).
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Counts an acknowledged ack-eliciting packet.
    pub fn on_acked(&mut self, number: u64) {
        self.acked += u64::from(number >= self.first);
    }

    /// Processes the totals of an acknowledgement after its packets were counted. Returns how many
    /// more packets with CE it reports than the acknowledgements before it.
    pub fn on_report(&mut self, ect0: u64, ce: u64) -> u64 {
        let marks = ce.saturating_sub(self.ce);
        self.ect0 = self.ect0.max(ect0);
        self.ce = self.ce.max(ce);
        let reported = self.ect0.saturating_add(self.ce);
        if self.acked == 0 {
            self.reported_before = reported;
        }
        let sent = self.sent - self.sent_before;
        self.failed |= sent >= SAMPLE && self.acked >= SAMPLE && reported == self.reported_before;
        marks
    }

    /// Restarts validation because packets from number `next` on take another route. The peer does
    /// not reset its totals.
    pub fn start_over(&mut self, next: u64) {
        self.failed = false;
        self.first = next;
        self.acked = 0;
        self.sent_before = self.sent;
        self.reported_before = self.ect0.saturating_add(self.ce);
    }
}
