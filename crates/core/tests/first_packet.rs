//! The Response asks its receiver to show that it receives there, and the first packet answers: a responder need not wait
//! for another round trip before it may send.

use std::net::SocketAddr;

use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent, address};
use anabranch_types::Time;
use core::time::Duration;

/// One way.
const DELAY: Duration = Duration::from_millis(50);
/// Of virtual time.
const STEP: Duration = Duration::from_millis(1);
/// First byte of a Response, and how far from its end the challenge begins.
const RESPONSE: u8 = 2;
const CHALLENGE: usize = 16;

/// A network that loses nothing, with a translator before the initiator that changes its port once.
struct Translated {
    now: Time,
    changes: Time,
}

impl Network for Translated {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        self.now = sent.now;
        Some((sent.now + DELAY, sent.ecn))
    }

    fn source(&self, side: usize, path: u32) -> SocketAddr {
        let mut address = address(side, path);
        if side == 0 && self.now >= self.changes {
            address.set_port(4321);
        }
        address
    }
}

/// Round trips until the initiator has the responder's first bytes, which both write as soon as they can. `alter` may change
/// what is under way.
fn round_trips(changes: Time, mut alter: impl FnMut(&mut [u8])) -> u64 {
    let network = Translated { now: Time::ZERO, changes };
    let mut pair = Pair::new(&Profile::named("anabranch").unwrap(), 1, network);
    pair.ends[0].unwritten = 1000;
    pair.ends[1].unwritten = 1000;
    let begun = pair.now;
    while pair.ends[0].read < 1000 {
        pair.round(STEP);
        pair.flying.iter_mut().for_each(|datagram| alter(datagram.payload()));
        assert!(pair.now < Time::from_secs(2), "nothing has arrived");
    }
    let took = pair.now.since(begun);
    (took.as_micros() / (2 * DELAY).as_micros()) as u64
}

/// Puts something else in place of the challenge in Responses.
fn without_challenge(by: [u8; 8]) -> impl FnMut(&mut [u8]) {
    move |payload| {
        if payload.first() == Some(&RESPONSE) {
            let at = payload.len() - CHALLENGE;
            payload[at..at + 8].copy_from_slice(&by);
        }
    }
}

#[test]
fn the_responder_answers_the_first_request_at_once() {
    assert_eq!(round_trips(Time::MAX, |_| ()), 2);
}

/// One more round trip, for the challenge of the old way.
#[test]
fn a_response_without_the_challenge_or_with_another_will_do() {
    for by in [[0; 8], [1; 8]] {
        assert_eq!(round_trips(Time::MAX, without_challenge(by)), 3, "{by:?}");
    }
}

/// The answer to the challenge that one address got proves nothing about another.
#[test]
fn a_first_packet_from_elsewhere_proves_nothing() {
    // The Response is there after 100 ms.
    assert_eq!(round_trips(Time::from_millis(102), |_| ()), 3);
}

/// Nothing is added to the round trip by an acknowledgement that waits.
#[test]
fn both_ends_know_the_round_trip_of_the_first_path() {
    let network = Translated { now: Time::ZERO, changes: Time::MAX };
    let mut pair = Pair::new(&Profile::named("uncoded").unwrap(), 1, network);
    for _ in 0..500 {
        pair.round(STEP);
    }
    for end in &mut pair.ends {
        let stats = end.connection().unwrap().stats();
        assert_eq!(stats.paths[0].rtt.smoothed, DELAY * 2);
    }
}
