//! Handshakes from forged and real addresses, over a network that loses, repeats and truncates
//! their messages.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anabranch_core::config::TransportConfig;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{Datagram, Endpoint, EndpointConfig};
use anabranch_core::handshake::{Established, Initiator, Opening, Permitted, Schedule};
use anabranch_core::path::SocketId;
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Traffic, endpoint, sealed};
use anabranch_core::wire::ConnectionId;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{PathId, Time};
use core::time::Duration;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub enum Step {
    /// A new peer requests a connection.
    Ask { from: u8 },
    /// The newest message of an asker, with its cookie if it has one, arrives from the address of
    /// `from`.
    Repeat { asker: usize, from: u8 },
    /// The first `length` bytes of an asker's newest message arrive.
    Cut { asker: usize, from: u8, length: usize },
    /// An asker that was answered sends a packet of its connection.
    Speak { asker: usize, from: u8, padding: usize },
    /// The victim's application writes on all its connections.
    Write { bytes: usize },
    /// The next datagrams of the victim, of this number, are lost.
    Lose { datagrams: usize },
    /// Time passes.
    Wait { millis: u64 },
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (asker, from) = (0_usize..8, 0_u8..5);
    let padding = prop_oneof![Just(0_usize), 0_usize..40, 1000_usize..1100];
    let repeat = (asker.clone(), from.clone());
    let cut = (asker.clone(), from.clone(), 0_usize..400);
    let speak = (asker, from.clone(), padding);
    prop::collection::vec(
        prop_oneof![
            4 => from.prop_map(|from| Step::Ask { from }),
            6 => repeat.prop_map(|(asker, from)| Step::Repeat { asker, from }),
            1 => cut.prop_map(|(asker, from, length)| Step::Cut { asker, from, length }),
            5 => speak.prop_map(|(asker, from, padding)| Step::Speak { asker, from, padding }),
            2 => (1_usize..100_000).prop_map(|bytes| Step::Write { bytes }),
            2 => (1_usize..10).prop_map(|datagrams| Step::Lose { datagrams }),
            3 => (0_u64..2000).prop_map(|millis| Step::Wait { millis }),
        ],
        1..80,
    )
}

/// A peer that has requested a connection.
struct Asker {
    crypto: NullCrypto,
    initiator: Initiator,
    message: Vec<u8>,
    /// The address at which the asker received the cookie in its message.
    cookie_at: Option<SocketAddr>,
    /// The addresses at which the asker received an answer.
    answers_at: BTreeSet<SocketAddr>,
    established: Option<Established>,
    next_number: u64,
}

pub struct World {
    victim: Endpoint,
    now: Time,
    askers: Vec<Asker>,
    losses: usize,
    pub traffic: BTreeMap<SocketAddr, Traffic>,
    /// Addresses at which peers have proven that they receive.
    pub answered: BTreeSet<SocketAddr>,
}

fn place(from: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, from], 53))
}

impl World {
    /// Creates a victim that requires cookies after four first messages per second.
    pub fn new() -> World {
        let mut config = EndpointConfig::new(Profile::named("anabranch").unwrap());
        config.responder.permitted = Permitted::Anyone;
        config.responder.unproven_rate = 4;
        World {
            victim: endpoint(2, config),
            now: Time::from_secs(1),
            askers: Vec::new(),
            losses: 0,
            traffic: BTreeMap::new(),
            answered: BTreeSet::new(),
        }
    }

    pub fn play(&mut self, step: &Step) {
        match *step {
            Step::Ask { from } => {
                let asker = Asker::new(&self.victim, self.askers.len(), self.now);
                let message = asker.message.clone();
                self.askers.push(asker);
                self.deliver(place(from), message);
            }
            Step::Repeat { asker, from } => {
                let Some(asker) = self.askers.get(asker) else { return };
                if asker.cookie_at == Some(place(from)) {
                    self.answered.insert(place(from));
                }
                let message = asker.message.clone();
                self.deliver(place(from), message);
            }
            Step::Cut { asker, from, length } => {
                let Some(asker) = self.askers.get(asker) else { return };
                let message = asker.message[..length.min(asker.message.len())].to_vec();
                self.deliver(place(from), message);
            }
            Step::Speak { asker, from, padding } => {
                let Some(asker) = self.askers.get_mut(asker) else { return };
                let Some(packet) = asker.packet(padding) else { return };
                if asker.answers_at.contains(&place(from)) {
                    self.answered.insert(place(from));
                }
                self.deliver(place(from), packet);
            }
            Step::Write { bytes } => self.write(bytes),
            Step::Lose { datagrams } => self.losses = datagrams,
            Step::Wait { millis } => self.wait(Duration::from_millis(millis)),
        }
        self.listen();
    }

    fn deliver(&mut self, from: SocketAddr, mut payload: Vec<u8>) {
        self.traffic.entry(from).or_default().to_victim.add(payload.len());
        let (socket, ecn, payload) = (SocketId(0), Ecn::NotEct, &mut payload[..]);
        self.victim.handle_datagram(self.now, Datagram { socket, remote: from, ecn, payload });
        while self.victim.poll_event().is_some() {}
    }

    fn write(&mut self, bytes: usize) {
        for handle in self.victim.handles().collect::<Vec<_>>() {
            if let Some(connection) = self.victim.connection(handle)
                && let Ok(stream) = connection.open_stream(TrafficClass::Bulk)
            {
                let _ = connection.write(stream, &vec![7; bytes]);
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let next = self.victim.next_timeout().map_or(end, |(time, _)| time.min(end));
            self.now = self.now.max(next);
            self.victim.handle_timeout(self.now);
            self.listen();
        }
    }

    /// Takes the datagrams that the victim sends. Datagrams that are not lost reach all askers.
    fn listen(&mut self) {
        let mut buffer = vec![0; 2048];
        while let Some(transmit) = self.victim.poll_transmit(self.now, &|_| true, &mut buffer) {
            self.traffic.entry(transmit.remote).or_default().from_victim.add(transmit.len);
            if self.losses > 0 {
                self.losses -= 1;
                continue;
            }
            for asker in &mut self.askers {
                asker.hear(self.now, transmit.remote, &buffer[..transmit.len]);
            }
        }
    }
}

impl Asker {
    fn new(victim: &Endpoint, number: usize, now: Time) -> Asker {
        let mut crypto = NullCrypto::new([100 + number as u8; 32]);
        let parameters = TransportConfig::default().parameters("anabranch").encode();
        let opening = Opening {
            peer: victim.public_key(),
            local_id: number as u32,
            timestamp: 1 << 60,
            parameters: &parameters,
        };
        let schedule = Schedule::default();
        let mut initiator = Initiator::new(&mut crypto, opening, schedule, now).unwrap();
        initiator.add_path(PathId(0), now);
        let mut message = Vec::new();
        assert!(initiator.poll(&crypto, PathId(0), now, &mut message));
        Asker {
            crypto,
            initiator,
            message,
            cookie_at: None,
            answers_at: BTreeSet::new(),
            established: None,
            next_number: 0,
        }
    }

    fn hear(&mut self, now: Time, at: SocketAddr, bytes: &[u8]) {
        if self.initiator.on_cookie_reply(&self.crypto, PathId(0), now, bytes).is_ok() {
            self.message.clear();
            self.initiator.poll(&self.crypto, PathId(0), now, &mut self.message);
            self.cookie_at = Some(at);
        } else if let Ok(established) = self.initiator.on_response(&self.crypto, bytes) {
            self.answers_at.insert(at);
            self.established.get_or_insert(established);
        }
    }

    /// The next packet of the asker's connection, if it has one.
    fn packet(&mut self, padding: usize) -> Option<Vec<u8>> {
        let Established { session, remote_id, .. } = self.established.as_mut()?;
        let frames = [vec![1], vec![0; padding]].concat();
        self.next_number += 1;
        Some(sealed(session, ConnectionId(*remote_id), (0, self.next_number - 1), &frames))
    }
}
