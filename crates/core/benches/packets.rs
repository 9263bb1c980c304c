//! What the core does for each packet, without sockets and without cryptography: two endpoints in one
//! loop of virtual time, one stream, 5 % repairs. It is run under `valgrind --tool=callgrind`, which
//! counts instructions: unlike time, no other process on the machine can change them.

use std::net::{Ipv4Addr, SocketAddr};

use anabranch_core::connection::Event;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{
    ConnectConfig, Datagram, Endpoint, EndpointConfig, EndpointEvent, Handle,
};
use anabranch_core::handshake::Permitted;
use anabranch_core::path::received::Ecn;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{Rng, Time};
use core::time::Duration;

/// Virtual time between rounds; each carries one batch at most, as one call to the system would.
const ROUND: Duration = Duration::from_micros(80);
const BATCH: usize = 44;
const ROOM: usize = 1500;
/// Packets sent before counting starts, and counted.
const WARM_UP: u64 = 20_000;
const COUNTED: u64 = 100_000;

/// What one side has sent in a round; it arrives in the next.
struct Batch {
    bytes: Vec<u8>,
    packets: Vec<(usize, Ecn)>,
}

/// Two endpoints and the batches on their way between them.
struct Pair {
    now: Time,
    ends: [Endpoint; 2],
    handles: [Option<Handle>; 2],
    streams: [Option<StreamId>; 2],
    flying: [Batch; 2],
    piece: Vec<u8>,
    /// Packets by direction.
    packets: [u64; 2],
    read: u64,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, end as u8), 1000))
}

fn endpoint(key: u8, profile: &Profile) -> Endpoint {
    let mut config = EndpointConfig::new(profile.clone());
    config.responder.permitted = Permitted::Anyone;
    Endpoint::new(config, Box::new(NullCrypto::new([key; 32])), Rng::new(key.into()), Time::ZERO)
}

impl Pair {
    fn new(profile: Profile) -> Self {
        let mut ends = [endpoint(0, &profile), endpoint(1, &profile)];
        let paths = vec![PathAddress { socket: SocketId(0), remote: address(1) }];
        let config = ConnectConfig { peer: ends[1].public_key(), paths, profile };
        ends[0].connect(Time::ZERO, config).unwrap();
        Pair {
            now: Time::ZERO,
            ends,
            handles: [None; 2],
            streams: [None; 2],
            flying: [(); 2].map(|()| Batch { bytes: vec![0; BATCH * ROOM], packets: Vec::new() }),
            piece: vec![7; 128 << 10],
            packets: [0; 2],
            read: 0,
        }
    }

    fn round(&mut self) {
        self.now += ROUND;
        for side in 0..2 {
            self.deliver(1 - side);
        }
        for side in 0..2 {
            if self.ends[side].next_timeout().is_some_and(|(time, _)| time <= self.now) {
                self.ends[side].handle_timeout(self.now);
            }
            self.news(side);
            self.application(side);
            self.send(side);
        }
    }

    fn send(&mut self, side: usize) {
        let batch = &mut self.flying[side];
        let mut end = 0;
        while batch.packets.len() < BATCH {
            let room = &mut batch.bytes[end..end + ROOM];
            let Some(sent) = self.ends[side].poll_transmit(self.now, &|_| true, room) else {
                break;
            };
            end += sent.len;
            batch.packets.push((sent.len, sent.ecn));
        }
        self.packets[side] += batch.packets.len() as u64;
    }

    /// Hands over what `from` has sent.
    fn deliver(&mut self, from: usize) {
        let batch = &mut self.flying[from];
        let mut rest = &mut batch.bytes[..];
        for (len, ecn) in batch.packets.drain(..) {
            let (payload, tail) = rest.split_at_mut(len);
            let datagram = Datagram { socket: SocketId(0), remote: address(from), ecn, payload };
            self.ends[1 - from].handle_datagram(self.now, datagram);
            rest = tail;
        }
    }

    fn news(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            match event {
                EndpointEvent::Connected(handle) | EndpointEvent::Accepted(handle) => {
                    self.handles[side] = Some(handle);
                }
                EndpointEvent::Connection(_, Event::Stream(StreamEvent::Opened(id))) => {
                    self.streams[side] = Some(id);
                }
                EndpointEvent::Connection(_, Event::Closed(why)) => panic!("{why:?}"),
                _ => {}
            }
        }
    }

    fn application(&mut self, side: usize) {
        let Some(handle) = self.handles[side] else { return };
        let Some(connection) = self.ends[side].connection(handle) else { return };
        match self.streams[side] {
            None if side == 0 => {
                self.streams[side] = Some(connection.open_stream(TrafficClass::Bulk).unwrap());
            }
            Some(stream) if side == 0 => {
                connection.write(stream, &self.piece).unwrap();
            }
            Some(stream) => {
                while let Ok(outcome) = connection.read(stream, &mut self.piece)
                    && outcome.n > 0
                {
                    self.read += outcome.n as u64;
                }
            }
            None => {}
        }
    }

    fn run(&mut self, packets: u64) {
        let end = self.packets[0] + packets;
        while self.packets[0] < end {
            self.round();
        }
    }
}

fn main() {
    let mut profile = Profile::named("anabranch").unwrap();
    profile.set("redundancy", "fixed:share=0.05").unwrap();
    let mut pair = Pair::new(profile);
    pair.run(WARM_UP);
    let (before, read, virtually) = (pair.packets, pair.read, pair.now);
    pair.run(COUNTED);
    println!(
        "{} packets of data and {} others in {} rounds: {} MB read",
        pair.packets[0] - before[0],
        pair.packets[1] - before[1],
        pair.now.since(virtually).as_micros() / ROUND.as_micros(),
        (pair.read - read) / 1_000_000,
    );
}
