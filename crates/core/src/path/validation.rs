//! Proof that the peer receives at a path's address (RFC 9000 §8).

use anabranch_types::Time;

/// Bytes that may be sent for each received before the address is proven (RFC 9000 §8.1).
const AMPLIFICATION: u64 = 3;
/// Bytes that count as received from an address that this side chose itself: nobody can aim a flood by that choice.
const OWN_CHOICE: u64 = u16::MAX as u64 * 16;

/// Bytes that have to come from an address before this many may be sent there.
pub fn price(bytes: u64) -> u64 {
    bytes.div_ceil(AMPLIFICATION)
}

/// The question that is open, and what may be sent until it is answered.
#[derive(Debug, Default)]
pub struct AddressValidation {
    /// The challenge without an answer, and when it is repeated.
    challenge: Option<([u8; 8], Time)>,
    received: u64,
    sent: u64,
}

impl AddressValidation {
    /// Bytes that may leave before the address is proven, IP and UDP headers included. The headers
    /// of received packets are not counted, so that the limit holds with and without headers.
    pub fn room(&self) -> u64 {
        (AMPLIFICATION * self.received).saturating_sub(self.sent)
    }

    /// A packet with this many bytes of payload arrived from the address.
    pub fn on_received(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// Counts bytes sent to the address, IP and UDP headers included.
    pub fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// The address is this side's own choice.
    pub fn trust(&mut self) {
        self.received = OWN_CHOICE;
    }

    /// The challenge to send now and to repeat at `again`. One that is repeated stays the same: the answer
    /// may take longer than the wait before asking again.
    pub fn challenge(&mut self, again: Time, fresh: impl FnOnce() -> [u8; 8]) -> [u8; 8] {
        let data = self.challenge.map_or_else(fresh, |(data, _)| data);
        self.challenge = Some((data, again));
        data
    }

    /// When the challenge is repeated.
    pub fn due(&self) -> Option<Time> {
        self.challenge.map(|(_, again)| again)
    }

    /// Whether this is the answer to the challenge.
    pub fn is_answer(&self, data: [u8; 8]) -> bool {
        self.challenge.is_some_and(|(sent, _)| sent == data)
    }

    /// Nothing is asked any more: the address is proven, or of no interest.
    pub fn end(&mut self) {
        self.challenge = None;
    }
}
