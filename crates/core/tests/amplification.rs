//! Tests that an address that never answered gets at most three bytes for each byte received from
//! it, regardless of the peer's actions (RFC 9000 §8.1, §9.3).

#[path = "amplification/handshakes.rs"]
mod handshakes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anabranch_core::config::TransportConfig;
use anabranch_core::testing::{Heard, Rogue, Traffic, rogue_address, written};
use anabranch_core::wire::ControlFrame;
use anabranch_policy::view::TrafficClass;
use core::time::Duration;
use proptest::prelude::*;

/// Bytes of IP and UDP headers. The limit must hold both with and without them.
const HEADERS: u64 = 28;

#[derive(Clone, Debug)]
enum Step {
    /// The peer sends a packet with this much padding from one of the addresses, on one of the
    /// paths.
    Send { path: u32, from: u8, padding: usize },
    /// The peer sends a challenge from one of the addresses, on one of the paths.
    Ask { path: u32, from: u8 },
    /// The peer answers the newest challenge that was sent to `to`, from the same or another
    /// address.
    Answer { to: u8, from: u8 },
    /// The peer acknowledges the victim's packets, from the path's own address.
    Acknowledge { path: u32 },
    /// The next packets of the victim, of this number, are lost.
    Lose { packets: usize },
    /// A packet on the way to the victim is lost.
    Skip { path: u32 },
    /// The victim writes data.
    Write { bytes: usize },
    /// Time passes.
    Wait { millis: u64 },
    /// The victim closes the connection.
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (path, from) = (0_u32..3, 0_u8..6);
    let padding = prop_oneof![Just(0_usize), 0_usize..40, 1000_usize..1100];
    prop::collection::vec(
        prop_oneof![
            6 => (path.clone(), from.clone(), padding).prop_map(|(path, from, padding)| Step::Send { path, from, padding }),
            2 => (path.clone(), from.clone()).prop_map(|(path, from)| Step::Ask { path, from }),
            2 => (from.clone(), from.clone()).prop_map(|(to, from)| Step::Answer { to, from }),
            2 => path.clone().prop_map(|path| Step::Acknowledge { path }),
            2 => (1_usize..20).prop_map(|packets| Step::Lose { packets }),
            1 => path.prop_map(|path| Step::Skip { path }),
            2 => (1_usize..100_000).prop_map(|bytes| Step::Write { bytes }),
            3 => (0_u64..3000).prop_map(|millis| Step::Wait { millis }),
            1 => Just(Step::Close),
        ],
        1..80,
    )
}

/// The real addresses of the peer's paths, and then addresses that it only claims to have.
fn place(from: u8) -> SocketAddr {
    if from < 3 { rogue_address(from.into()) } else { SocketAddr::from(([192, 0, 2, from], 53)) }
}

struct World {
    rogue: Rogue,
    /// The newest challenge that was sent to each address, and its path.
    asked: BTreeMap<SocketAddr, (u32, [u8; 8])>,
    answered: BTreeSet<SocketAddr>,
}

impl World {
    fn new() -> World {
        let parameters = TransportConfig::default().parameters("uncoded");
        let rogue = Rogue::connect(TransportConfig::default(), "uncoded", &parameters);
        World { rogue, asked: BTreeMap::new(), answered: BTreeSet::from([place(0)]) }
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Send { path, from, padding } => {
                let frames = [vec![1], vec![0; padding]].concat();
                self.rogue.send_from(path, place(from), &frames);
            }
            Step::Ask { path, from } => {
                let question = ControlFrame::PathChallenge { data: [from; 8] };
                let frames = written(|writer| question.encode(writer).unwrap());
                self.rogue.send_from(path, place(from), &frames);
            }
            Step::Answer { to, from } => {
                if let Some((path, data)) = self.asked.get(&place(to)).copied() {
                    self.answered.insert(place(to));
                    self.rogue.respond(path, place(from), data);
                }
            }
            Step::Acknowledge { path } => self.rogue.acknowledge(path),
            Step::Lose { packets } => self.rogue.losses = packets,
            Step::Skip { path } => drop(self.rogue.prepare(path, &[1])),
            Step::Write { bytes } => {
                if let Some(connection) = self.rogue.connection()
                    && let Ok(stream) = connection.open_stream(TrafficClass::Bulk)
                {
                    let _ = connection.write(stream, &vec![7; bytes]);
                }
            }
            Step::Wait { millis } => self.rogue.advance(Duration::from_millis(millis)),
            Step::Close => {
                let now = self.rogue.now;
                if let Some(connection) = self.rogue.connection() {
                    connection.close(now, 300, &"a reason of some length".repeat(10));
                }
            }
        }
        self.rogue.listen();
        while let Some(Heard { remote, id, path, frames, number }) = self.rogue.take() {
            let heard = Heard { remote, id, path, frames, number };
            for data in heard.challenges() {
                self.asked.insert(remote, (path.0, data));
            }
        }
    }

    fn audit(&self) -> Result<(), TestCaseError> {
        audit(self.rogue.traffic(), &self.answered)
    }
}

/// Checks that an address that has not answered got at most three times the bytes received from it.
fn audit(
    traffic: &BTreeMap<SocketAddr, Traffic>,
    answered: &BTreeSet<SocketAddr>,
) -> Result<(), TestCaseError> {
    for (address, traffic) in traffic.iter().filter(|(address, _)| !answered.contains(address)) {
        let (got, sent) = (traffic.to_victim, traffic.from_victim);
        let wire = |bytes: u64, datagrams: u64| bytes + HEADERS * datagrams;
        prop_assert!(sent.bytes <= 3 * got.bytes, "{address}: {traffic:?}");
        let (sent, got) = (wire(sent.bytes, sent.datagrams), wire(got.bytes, got.datagrams));
        prop_assert!(sent <= 3 * got, "{address}: {traffic:?} with headers");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nobody_gets_three_times_what_they_sent(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.play(step);
            world.audit()?;
        }
    }

    #[test]
    fn nor_while_connections_are_opened(steps in handshakes::steps()) {
        let mut world = handshakes::World::new();
        for step in &steps {
            world.play(step);
            audit(&world.traffic, &world.answered)?;
        }
    }
}
