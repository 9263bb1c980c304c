//! Proof that the peer receives at a path's address (RFC 9000 §8).

use anabranch_types::Time;

/// Bytes that may be sent for each received byte before the address is proven (RFC 9000 §8.1).
const AMPLIFICATION: u64 = 3;
/// Bytes that count as received from an address that this side chose itself. An attacker cannot use
/// such an address for amplification.
const OWN_CHOICE: u64 = u16::MAX as u64 * 16;

/// Number of bytes that must be received from an address before `bytes` may be sent to it.
pub fn price(bytes: u64) -> u64 {
    bytes.div_ceil(AMPLIFICATION)
}

/// The open challenge, and the bytes that may be sent until it is answered.
#[derive(Debug, Default)]
pub struct AddressValidation {
    /// The unanswered challenge, and when it is repeated.
    challenge: Option<([u8; 8], Time)>,
    received: u64,
    sent: u64,
}

impl AddressValidation {
    /// Bytes that may still be sent before the address is proven, IP and UDP headers included. The
    /// headers of received packets do not count, so that the limit holds with and without headers.
    pub fn room(&self) -> u64 {
        (AMPLIFICATION * self.received).saturating_sub(self.sent)
    }

    /// Counts a packet with this many bytes of payload from the address.
    pub fn on_received(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Counts bytes sent to the address, IP and UDP headers included.
    pub fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Notes that this side chose the address itself.
    pub fn trust(&mut self) {
        self.received = OWN_CHOICE;
    }

    /// The challenge to send now and to repeat at `again`. A repeated challenge has the same data,
    /// because its answer may arrive after the repetition.
    pub fn challenge(&mut self, again: Time, fresh: impl FnOnce() -> [u8; 8]) -> [u8; 8] {
        let data = self.challenge.map_or_else(fresh, |(data, _)| data);
        self.challenge = Some((data, again));
        data
    }

    /// When the challenge is repeated.
    pub fn due(&self) -> Option<Time> {
        self.challenge.map(|(_, again)| again)
    }

    /// Whether `data` answers the challenge.
    pub fn is_answer(&self, data: [u8; 8]) -> bool {
        self.challenge.is_some_and(|(sent, _)| sent == data)
    }

    /// Ends the challenge because the address is proven or no longer needed.
    pub fn end(&mut self) {
        self.challenge = None;
    }
}
