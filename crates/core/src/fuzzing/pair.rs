//! Two honest endpoints over a network that does what a list of operations says.

use std::net::{Ipv4Addr, SocketAddr};

use anabranch_policy::view::TrafficClass;
use anabranch_types::{Rng, Time};
use core::time::Duration;

use super::{MOST_AT_ONCE, events};
use crate::config::TransportConfig;
use crate::connection::{CloseReason, Event};
use crate::crypto::null::NullCrypto;
use crate::endpoint::{ConnectConfig, Datagram, Endpoint, EndpointConfig, EndpointEvent, Handle};
use crate::handshake::Permitted;
use crate::path::received::Ecn;
use crate::path::{PathAddress, SocketId};
use crate::profiles::Profile;
use crate::stream::StreamEvent;
use crate::wire::codec::Reader;
use crate::wire::fuzzing::with_mutants;
use crate::wire::{CloseCode, StreamId};

const PATHS: u32 = 3;
/// Datagrams that the network holds at most; further ones are lost.
const QUEUE: usize = 512;

/// A datagram in the network.
#[derive(Clone, Debug)]
struct Flying {
    to_server: bool,
    path: u32,
    from: SocketAddr,
    bytes: Vec<u8>,
}

struct Pair {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    /// The client's connection, once it is open.
    ours: Option<(Handle, Option<StreamId>)>,
    theirs: Option<(Handle, Option<StreamId>)>,
    network: Vec<Flying>,
    ports: [u16; PATHS as usize],
    written: u64,
    read: u64,
}

fn server_address(path: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, path as u8, 2), 1000))
}

fn endpoint_of(key: u8, profile: &Profile) -> Endpoint {
    let mut config = EndpointConfig::new(profile.clone());
    config.transport = TransportConfig { receive_symbols: 100, ..TransportConfig::default() };
    config.transport.streams.max_stream_data = 20_000;
    config.responder.permitted = Permitted::Anyone;
    let crypto = Box::new(NullCrypto::new([key; 32]));
    Endpoint::new(config, crypto, Rng::new(key.into()), Time::ZERO)
}

impl Pair {
    fn new(choice: u8) -> Self {
        let profiles = Profile::all();
        let profile = profiles[usize::from(choice) % profiles.len()].clone();
        let mut pair = Pair {
            now: Time::from_millis(1),
            client: endpoint_of(1, &profile),
            server: endpoint_of(2, &profile),
            ours: None,
            theirs: None,
            network: Vec::new(),
            ports: [1000; PATHS as usize],
            written: 0,
            read: 0,
        };
        let address = |path| PathAddress { socket: SocketId(path), remote: server_address(path) };
        let peer = pair.server.public_key();
        let paths = (0..PATHS).map(address).collect();
        let config = ConnectConfig { peer, paths, profile };
        pair.client.connect(pair.now, config).expect("nothing speaks against it");
        pair
    }

    /// Both endpoints send what they have.
    fn exchange(&mut self) {
        let mut buffer = vec![0; 2048];
        for to_server in [true, false] {
            let endpoint = if to_server { &mut self.client } else { &mut self.server };
            let mut count = 0;
            while let Some(transmit) = endpoint.poll_transmit(self.now, &|_| true, &mut buffer) {
                count += 1;
                assert!(count < MOST_AT_ONCE, "an endpoint does not stop sending");
                let path = transmit.socket.0;
                let port = self.ports[path as usize];
                let client = SocketAddr::from((Ipv4Addr::new(10, 0, path as u8, 1), port));
                let lost = !to_server && transmit.remote != client;
                if self.network.len() < QUEUE && !lost {
                    let from = if to_server { client } else { server_address(path) };
                    let bytes = buffer[..transmit.len].to_vec();
                    self.network.push(Flying { to_server, path, from, bytes });
                }
            }
        }
    }

    fn deliver(&mut self, mut datagram: Flying) {
        let endpoint = if datagram.to_server { &mut self.server } else { &mut self.client };
        let (socket, remote) = (SocketId(datagram.path), datagram.from);
        let payload = datagram.bytes.as_mut_slice();
        endpoint.handle_datagram(self.now, Datagram { socket, remote, ecn: Ecn::Ect0, payload });
    }

    fn pick(&self, argument: u8) -> Option<usize> {
        (!self.network.is_empty()).then(|| usize::from(argument) % self.network.len())
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    fn news(&mut self) {
        for event in events(&mut self.client) {
            match event {
                EndpointEvent::Connected(handle) => self.ours = Some((handle, None)),
                EndpointEvent::Connection(_, Event::Closed(reason)) => self.check_end(&reason),
                _ => {}
            }
        }
        for event in events(&mut self.server) {
            match event {
                EndpointEvent::Accepted(handle) => self.theirs = Some((handle, None)),
                EndpointEvent::Connection(handle, Event::Stream(StreamEvent::Opened(stream))) => {
                    assert_eq!(self.theirs, Some((handle, None)), "a stream before its connection");
                    self.theirs = Some((handle, Some(stream)));
                }
                EndpointEvent::Connection(_, Event::Closed(reason)) => self.check_end(&reason),
                _ => {}
            }
        }
    }

    /// Honest endpoints find no fault with each other: a connection ends only in silence.
    fn check_end(&self, reason: &CloseReason) {
        let silent = [CloseCode::IDLE, CloseCode::ALL_PATHS_DOWN].contains(&reason.code);
        assert!(silent, "{reason:?}");
    }

    fn write(&mut self, length: u64) {
        let Some((handle, stream)) = self.ours else { return };
        let Some(connection) = self.client.connection(handle) else { return };
        let stream = stream.or_else(|| connection.open_stream(TrafficClass::Bulk).ok());
        self.ours = Some((handle, stream));
        let Some(stream) = stream else { return };
        let bytes: Vec<u8> = (self.written..self.written + length).map(pattern).collect();
        self.written += connection.write(stream, &bytes).unwrap_or(0) as u64;
        let _ = connection.send_datagram(&[9; 50], TrafficClass::Interactive);
    }

    fn read(&mut self) {
        let Some((handle, stream)) = self.theirs else { return };
        let Some(connection) = self.server.connection(handle) else { return };
        let mut buffer = [0; 4096];
        while connection.recv_datagram(&mut buffer).is_some() {}
        let Some(stream) = stream else { return };
        let Ok(outcome) = connection.read(stream, &mut buffer) else { return };
        for byte in &buffer[..outcome.n] {
            assert_eq!(*byte, pattern(self.read), "byte {}", self.read);
            self.read += 1;
        }
        assert!(self.read <= self.written);
    }

    fn step(&mut self, operation: u8, argument: u8) {
        match operation % 12 {
            0 => self.advance(Duration::from_millis(argument.into())),
            1 => self.advance(Duration::from_micros(u64::from(argument) * 16)),
            2 | 3 => {
                for _ in 0..=argument % 32 {
                    let Some(at) = self.pick(0) else { break };
                    let datagram = self.network.remove(at);
                    self.deliver(datagram);
                }
            }
            4 => {
                if let Some(at) = self.pick(argument) {
                    let datagram = self.network.remove(at);
                    self.deliver(datagram);
                }
            }
            5 => {
                if let Some(at) = self.pick(argument) {
                    let datagram = self.network[at].clone();
                    self.deliver(datagram);
                }
            }
            6 => drop(self.pick(argument).map(|at| self.network.swap_remove(at))),
            7 => {
                if let Some(at) = self.pick(argument) {
                    let mut datagram = self.network[at].clone();
                    let place = usize::from(argument) * 7 % datagram.bytes.len();
                    datagram.bytes[place] ^= 1 << (argument % 8);
                    self.deliver(datagram);
                }
            }
            8 => self.write(u64::from(argument) * 64),
            9 => self.read(),
            10 => self.ports[usize::from(argument) % PATHS as usize] += 1,
            _ => self.network.truncate(usize::from(argument)),
        }
    }

    /// A perfect network for a while: everything that was written arrives, unless silence ended it all.
    fn settle(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            self.exchange();
            for datagram in core::mem::take(&mut self.network) {
                self.deliver(datagram);
            }
            self.news();
            self.read();
            if self.read == self.written {
                return;
            }
            self.advance(Duration::from_millis(10));
            if self.ours.is_some_and(|(handle, _)| self.client.connection(handle).is_none()) {
                return;
            }
        }
        panic!("{} of {} bytes arrived", self.read, self.written);
    }
}

fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Two endpoints over a network that delivers, loses, repeats, reorders and damages as `data` says: what
/// is read is what was written, and once the network behaves, all of it arrives.
pub fn endpoint(data: &[u8]) {
    let mut script = Reader::new(data);
    let Ok(choice) = script.u8() else { return };
    let mut pair = Pair::new(choice);
    while let (Ok(operation), Ok(argument)) = (script.u8(), script.u8()) {
        pair.exchange();
        pair.step(operation, argument);
        pair.news();
    }
    pair.settle();
}

/// Inputs for [`endpoint`].
pub fn endpoint_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for profile in 0..3 {
        let mut seed = vec![profile, 2, 31, 2, 31];
        let rounds = [8, 200, 2, 31, 1, 100, 9, 0, 2, 15, 6, 3, 5, 9, 7, 77, 0, 20];
        seed.extend(rounds.repeat(6));
        seed.extend([10, 0, 10, 1, 10, 2, 0, 200, 8, 255, 11, 0, 0, 250, 0, 250]);
        seed.extend(rounds.repeat(3));
        seeds.push(seed);
    }
    with_mutants(seeds)
}
