//! ECN validation (RFC 9000 §13.4.2): whether the marks of what is sent arrive.

/// Marked packets that have to be sent and acknowledged before marks are given up.
const SAMPLE: u64 = 10;

/// The fate of the congestion marks on the way to the peer.
#[derive(Debug, Default)]
pub struct EcnValidation {
    failed: bool,
    sent: u64,
    /// Largest totals that the peer reported.
    ect0: u64,
    ce: u64,
    /// Packets from this number on took the present way.
    first: u64,
    /// How many of them were acknowledged.
    acked: u64,
    /// Marked packets sent before them.
    sent_before: u64,
    /// Marks reported before any of them was acknowledged.
    reported_before: u64,
}

impl EcnValidation {
    /// Whether packets are marked: nothing has shown so far that marks do not arrive.
    pub fn is_capable(&self) -> bool {
        !self.failed
    }

    /// Packets sent with ECT(0).
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Packets that the peer has reported: with ECT(0), and with CE.
    pub fn reported(&self) -> (u64, u64) {
        (self.ect0, self.ce)
    }

    /// A packet with ECT(0) left.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// An ack-eliciting packet was acknowledged.
    pub fn on_acked(&mut self, number: u64) {
        self.acked += u64::from(number >= self.first);
    }

    /// Takes the totals of an acknowledgement, after its packets were counted; returns how many
    /// packets have arrived with CE since the last.
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

    /// Starts validation over: packets from number `next` on take another way. The peer's totals go on.
    pub fn start_over(&mut self, next: u64) {
        self.failed = false;
        self.first = next;
        self.acked = 0;
        self.sent_before = self.sent;
        self.reported_before = self.ect0.saturating_add(self.ce);
    }
}
