//! What the handshake's Response proves: that packets pass both ways where it came from, and, by the answer to the challenge
//! in it, that the initiator receives where it went to (`docs/spec/wire-0.md`, Response).

use anabranch_types::Time;
use core::time::Duration;

use super::Connection;
use super::paths::PathIndex;
use crate::handshake::message::Response;
use crate::path::PathAddress;

/// What is kept of the Response.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// At the initiator: the one that was authenticated, without its challenge.
    authentic: Vec<u8>,
    /// At the responder: the challenges in those that were sent, until a path begins at that address.
    challenges: Vec<(PathAddress, [u8; 8])>,
    /// Whether the packet being read is to answer one of them.
    awaited: bool,
}

impl Responses {
    pub(super) fn new(challenges: Vec<(PathAddress, [u8; 8])>) -> Self {
        Responses { challenges, ..Responses::default() }
    }
}

impl Connection {
    /// The handshake's response came back from this address: packets pass both ways there, so data need
    /// not wait for the challenge. (The initiator chose the address itself and may send to it anyway.) The
    /// challenge in it is answered with the first packet.
    pub fn path_answered(&mut self, now: Time, address: PathAddress, response: &[u8]) {
        if self.response.authentic != Response::common(response) {
            return;
        }
        let unproven = self.paths.find(|path| path.address == address && !path.is_proven());
        let Some(slot) = unproven else { return };
        self.validated(now, slot);
        if let Ok(Response { challenge: Some(data), .. }) = Response::parse(response) {
            self.on_challenge(slot, address, data);
        }
    }

    /// The response that was authenticated, to recognise its copies on other paths.
    pub(crate) fn remember_response(&mut self, response: &[u8]) {
        self.response.authentic = Response::common(response).to_vec();
    }

    /// Asks the peer to prove that it receives at the address of a new path, unless the Response has done so: then the first
    /// packet is to answer, which is being read, and [`settle_first_challenge`](Self::settle_first_challenge) follows.
    pub(super) fn challenge_first(&mut self, now: Time, slot: PathIndex) {
        let address = self.paths[slot].address;
        let challenges = &mut self.response.challenges;
        match challenges.iter().position(|(to, _)| *to == address) {
            Some(at) => {
                let (_, data) = challenges.swap_remove(at);
                self.paths[slot].validation.challenge(now, || data);
                self.response.awaited = true;
            }
            None => self.challenge(now, slot),
        }
    }

    /// If the first packet of a path has answered the challenge of the Response, measures the round trip, and acknowledges
    /// the packet at once, so that the peer can measure it as well. Repeats the challenge if it has not.
    pub(super) fn settle_first_challenge(&mut self, now: Time, slot: PathIndex) {
        if !core::mem::take(&mut self.response.awaited) {
            return;
        }
        if self.paths[slot].is_proven() {
            self.paths[slot].rtt.on_sample(now, self.started, Duration::ZERO);
            self.report(now, slot);
        } else {
            self.challenge(now, slot);
        }
    }
}
