//! Two honest endpoints over a network that follows a list of operations.

use std::net::SocketAddr;

use anabranch_policy::Axis;
use anabranch_policy::view::TrafficClass;
use anabranch_types::Time;
use core::time::Duration;

use crate::config::TransportConfig;
use crate::endpoint::EndpointConfig;
use crate::path::received::Ecn;
use crate::profiles::Profile;
use crate::testing::{Flying, Network, Pair, Sent, address};
use crate::wire::codec::Reader;
use crate::wire::fuzzing::with_mutants;

const PATHS: u32 = 3;
/// Bit of the first byte that makes symbols short, so that they share packets.
const SHARED_PACKETS: u8 = 0x10;
/// Most datagrams that the network holds; further ones are lost.
const QUEUE: usize = 512;
/// Bytes that the server reads at once.
const READ: usize = 4096;
/// Rounds in which a perfect network delivers everything.
const PATIENCE: usize = 20_000;

/// Holds datagrams until an operation decides their fate.
struct Held {
    /// Source addresses of both ends on each path; the client's as an address translator rewrites
    /// it.
    sources: [[SocketAddr; PATHS as usize]; 2],
}

impl Network for Held {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        (sent.flying < QUEUE).then_some((Time::MAX, Ecn::Ect0))
    }

    fn source(&self, side: usize, path: u32) -> SocketAddr {
        self.sources[side][path as usize]
    }
}

/// Address with the same port on the next host.
fn next_host(address: SocketAddr) -> SocketAddr {
    let SocketAddr::V4(v4) = address else { return address };
    let [a, b, c, host] = v4.ip().octets();
    SocketAddr::from(([a, b, c, host.wrapping_add(16)], v4.port()))
}

fn pair(choice: u8) -> Pair<Held> {
    let profiles = Profile::all();
    let mut profile = profiles[usize::from(choice) % profiles.len()].clone();
    if choice & SHARED_PACKETS != 0 {
        let known =
            profile.set(Axis::Redundancy, "fixed:share=0.3,sources=6,symbol=200,together=5");
        known.expect("the registry has it");
    }
    let mut config = EndpointConfig::new(profile);
    config.transport = TransportConfig { receive_symbols: 100, ..TransportConfig::default() };
    config.transport.streams.max_stream_data = 20_000;
    let sources = [0, 1].map(|side| [0, 1, 2].map(|path| address(side, path)));
    Pair::with(config, PATHS, Held { sources })
}

impl Pair<Held> {
    fn pick(&self, argument: u8) -> Option<usize> {
        (!self.flying.is_empty()).then(|| usize::from(argument) % self.flying.len())
    }

    fn take(&mut self, argument: u8) -> Option<Flying> {
        self.pick(argument).and_then(|at| self.flying.remove(at))
    }

    fn copy(&self, argument: u8) -> Option<Flying> {
        self.pick(argument).map(|at| self.flying[at].clone())
    }

    fn speak(&mut self, length: u64) {
        if self.ends[0].connection().is_none() {
            return;
        }
        self.write(0, length);
        if self.ends[0].stream.is_some()
            && let Some(connection) = self.ends[0].connection()
        {
            let _ = connection.send_datagram(&[9; 50], TrafficClass::Interactive);
        }
    }

    fn listen(&mut self) {
        let mut buffer = [0; READ];
        if let Some(connection) = self.ends[1].connection() {
            while connection.recv_datagram(&mut buffer).is_some() {}
        }
        self.read(1, READ);
    }

    /// Checks the count of buffers that both ends hold.
    fn audit(&mut self) {
        for side in 0..2 {
            if let Some(connection) = self.ends[side].connection() {
                let [sent, received] = connection.symbols_held();
                assert!(connection.memory() >= 1000 * (sent + received) as u64);
            }
        }
    }

    /// Gives the client another port or another host on a path, or the server another host, which
    /// the server announces before it sends from there.
    fn relocate(&mut self, argument: u8) {
        let (path, way) = (argument % PATHS as u8, argument / PATHS as u8 % 3);
        let [client, server] = &mut self.network.sources;
        let (client, server) = (&mut client[usize::from(path)], &mut server[usize::from(path)]);
        match way {
            0 => client.set_port(client.port().wrapping_add(1)),
            1 => *client = next_host(*client),
            _ => {
                *server = next_host(*server);
                let announced = *server;
                if let Some(connection) = self.ends[1].connection() {
                    connection.announce_address(announced);
                }
            }
        }
    }

    fn step(&mut self, operation: u8, argument: u8) {
        match operation % 12 {
            0 => self.advance(Duration::from_millis(argument.into())),
            1 => self.advance(Duration::from_micros(u64::from(argument) * 16)),
            2 | 3 => {
                for _ in 0..=argument % 32 {
                    let Some(datagram) = self.take(0) else { break };
                    self.deliver(datagram);
                }
            }
            4 => drop(self.take(argument).map(|datagram| self.deliver(datagram))),
            5 => drop(self.copy(argument).map(|datagram| self.deliver(datagram))),
            6 => drop(self.pick(argument).map(|at| self.flying.swap_remove_back(at))),
            7 => {
                if let Some(mut datagram) = self.copy(argument) {
                    let bytes = datagram.payload();
                    bytes[usize::from(argument) * 7 % bytes.len()] ^= 1 << (argument % 8);
                    self.deliver(datagram);
                }
            }
            8 => self.speak(u64::from(argument) * 64),
            9 => self.listen(),
            10 => self.relocate(argument),
            _ => self.flying.truncate(usize::from(argument)),
        }
    }

    /// Runs a perfect network for a while. All written data arrives, unless the connection ended by
    /// a timeout.
    fn settle(&mut self) {
        for _ in 0..PATIENCE {
            self.send();
            for datagram in core::mem::take(&mut self.flying) {
                self.deliver(datagram);
            }
            self.news();
            self.listen();
            if self.ends[1].read == self.ends[0].written {
                return;
            }
            self.advance(Duration::from_millis(10));
            if self.ends[0].handle.is_some() && self.ends[0].connection().is_none() {
                return;
            }
        }
        panic!("{} of {} bytes arrived", self.ends[1].read, self.ends[0].written);
    }
}

/// Two endpoints over a network that delivers, loses, repeats, reorders and damages datagrams as
/// `data` says. The data read equals the data written, and once the network is perfect, all of it
/// arrives.
pub fn endpoint(data: &[u8]) {
    let mut script = Reader::new(data);
    let Ok(choice) = script.u8() else { return };
    let mut pair = pair(choice);
    while let (Ok(operation), Ok(argument)) = (script.u8(), script.u8()) {
        pair.send();
        pair.step(operation, argument);
        pair.audit();
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
        // A client on another host, and a server that moves on two of the three paths.
        seed.extend([10, 3, 2, 31, 1, 100, 10, 6, 0, 200, 10, 7, 8, 255, 0, 250]);
        seed.extend(rounds.repeat(3));
        seeds.push(seed);
    }
    with_mutants(seeds)
}
