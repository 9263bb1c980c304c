//! Unproven addresses to which the peer may have moved (RFC 9000 §9.3).

use anabranch_types::Time;

use super::PathAddress;
use super::validation::{AddressValidation, price};

/// Most candidates at a time. One more replaces the candidate with the fewest packets. Copies of
/// packets that an attacker sends from many addresses thus cannot displace the peer's real address.
const MOST: usize = 8;
/// Number of unanswered challenges after which an address is dropped. Further packets from the
/// address bring it back.
const MOST_ASKED: u8 = 3;

/// An address to which the path may move.
#[derive(Debug)]
pub struct Candidate {
    /// The address.
    pub address: PathAddress,
    validation: AddressValidation,
    packets: u64,
    newest: u64,
    /// Whether the challenge has to be sent.
    asks: bool,
    asked: u8,
    /// The data of a challenge from this address, which must be answered at this address.
    answer: Option<[u8; 8]>,
}

/// Contents of a packet to a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inquiry {
    /// The challenge that the candidate must answer.
    pub challenge: Option<[u8; 8]>,
    /// The answer to the candidate's own challenge.
    pub response: Option<[u8; 8]>,
}

/// The candidates of one path.
#[derive(Debug, Default)]
pub struct Candidates(Vec<Candidate>);

impl Candidates {
    /// Processes a packet with this number and this many bytes of payload from an address to which
    /// the peer may have moved.
    pub fn heard(&mut self, address: PathAddress, bytes: u64, number: u64) {
        let candidate = self.entry(address);
        candidate.newest = candidate.newest.max(number);
        candidate.packets += 1;
        candidate.validation.on_received(bytes);
        if candidate.validation.due().is_none() {
            candidate.asks = true;
        }
    }

    /// Challenges an address that was proven before, because the peer may be there again.
    pub fn ask_again(&mut self, address: PathAddress) {
        let candidate = self.entry(address);
        candidate.validation.trust();
        candidate.asks = true;
    }

    /// Challenges an address that the peer has announced but not used, in packets of `wire` bytes
    /// on the wire. The address may be a third party's. The amplification limit is therefore
    /// charged to `heard`, the bytes received from the peer: they count as if they had come from
    /// the address.
    pub fn ask_announced(&mut self, address: PathAddress, wire: u64, heard: &mut u64) {
        let room = self.find(address).map_or(0, |candidate| candidate.validation.room());
        if room < wire {
            let price = price(wire * u64::from(MOST_ASKED));
            let Some(rest) = heard.checked_sub(price) else { return };
            *heard = rest;
            self.entry(address).validation.on_received(price);
        }
        self.entry(address).asks = true;
    }

    /// Processes a challenge from an address. Returns whether the address is a candidate.
    pub fn on_challenge(&mut self, address: PathAddress, data: [u8; 8]) -> bool {
        let candidate = self.find(address);
        candidate.map(|candidate| candidate.answer = Some(data)).is_some()
    }

    fn find(&mut self, address: PathAddress) -> Option<&mut Candidate> {
        self.0.iter_mut().find(|candidate| candidate.address == address)
    }

    fn entry(&mut self, address: PathAddress) -> &mut Candidate {
        let found = self.0.iter().position(|candidate| candidate.address == address);
        let at = found.unwrap_or_else(|| {
            if self.0.len() == MOST {
                let least = self.0.iter().enumerate().min_by_key(|(_, other)| other.packets);
                let least = least.map_or(0, |(at, _)| at);
                self.0.remove(least);
            }
            self.0.push(Candidate {
                address,
                validation: AddressValidation::default(),
                packets: 0,
                newest: 0,
                asks: false,
                asked: 0,
                answer: None,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// The index and the address of the first candidate that has a packet to send and whose
    /// amplification limit allows `bytes` on the wire.
    pub fn next(&self, bytes: u64) -> Option<(usize, PathAddress)> {
        let ready = |candidate: &Candidate| {
            (candidate.asks || candidate.answer.is_some()) && candidate.validation.room() >= bytes
        };
        let at = self.0.iter().position(ready)?;
        Some((at, self.0[at].address))
    }

    /// Takes the contents of a packet to the candidate at index `at`. The packet has `bytes` bytes
    /// on the wire; the challenge is repeated at `again`.
    pub fn take(
        &mut self,
        at: usize,
        bytes: u64,
        again: Time,
        fresh: impl FnOnce() -> [u8; 8],
    ) -> Inquiry {
        let Some(candidate) = self.0.get_mut(at) else { return Inquiry::default() };
        candidate.validation.on_sent(bytes);
        let challenge = core::mem::take(&mut candidate.asks).then(|| {
            candidate.asked += 1;
            candidate.validation.challenge(again, fresh)
        });
        Inquiry { challenge, response: candidate.answer.take() }
    }

    /// The address whose challenge `data` answers.
    pub fn proven_by(&self, data: [u8; 8]) -> Option<PathAddress> {
        let answered = |candidate: &&Candidate| candidate.validation.is_answer(data);
        self.0.iter().find(answered).map(|candidate| candidate.address)
    }

    /// Removes a candidate to whose address the path has moved. Returns the highest packet number
    /// that came from the address.
    pub fn remove(&mut self, address: PathAddress) -> Option<u64> {
        let at = self.0.iter().position(|candidate| candidate.address == address)?;
        Some(self.0.remove(at).newest)
    }

    /// When the next challenge is repeated or given up.
    pub fn due(&self) -> Option<Time> {
        self.0
            .iter()
            .filter(|candidate| !candidate.asks)
            .filter_map(|one| one.validation.due())
            .min()
    }

    /// Repeats challenges that are due, and drops addresses that never answer.
    pub fn on_timer(&mut self, now: Time) {
        self.0.retain_mut(|candidate| {
            if candidate.asks || candidate.validation.due().is_none_or(|again| again > now) {
                return true;
            }
            candidate.asks = candidate.asked < MOST_ASKED;
            candidate.asks
        });
    }

    /// Removes all candidates.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
