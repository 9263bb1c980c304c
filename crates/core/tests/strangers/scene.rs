//! A victim, a client that it serves, and strangers, in virtual time on a network without delay.

use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::crypto::{Accepted, Crypto, CryptoError, Initiator, MacPurpose, PublicKey};
use anabranch_core::endpoint::{
    ConnectConfig, Datagram, Endpoint, EndpointConfig, EndpointEvent, Handle,
};
use anabranch_core::handshake::{Initiating, Opening, Permitted, Schedule};
use anabranch_core::path::received::Ecn;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_core::wire::StreamId;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{PathId, Rng, Time};
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Time goes on in steps of this length at most.
const STEP: Duration = Duration::from_millis(1);

const VICTIM: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1);
const CLIENT: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 1);

/// The key of the one whom the victim serves.
pub fn client_key() -> PublicKey {
    NullCrypto::new([3; 32]).public_key()
}

/// Another source for every number below 2^24.
pub fn stranger_address(number: u64) -> SocketAddr {
    let [.., a, b, c] = number.to_be_bytes();
    SocketAddr::from(([127, a, b, c], 9))
}

/// Cryptographic operations so far.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// First messages read: two Diffie–Hellman operations each, with real cryptography.
    pub accepts: u64,
    /// MACs made.
    pub macs: u64,
}

/// Datagrams and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub packets: u64,
    pub bytes: u64,
}

/// Counts what costs something.
#[derive(Debug)]
struct Counting {
    crypto: NullCrypto,
    counts: Arc<[AtomicU64; 2]>,
}

impl Crypto for Counting {
    fn public_key(&self) -> PublicKey {
        self.crypto.public_key()
    }

    fn initiate(
        &mut self,
        peer: &PublicKey,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Box<dyn Initiator>, CryptoError> {
        self.crypto.initiate(peer, payload, message)
    }

    fn accept(&mut self, message: &[u8]) -> Result<Accepted, CryptoError> {
        self.counts[0].fetch_add(1, Relaxed);
        self.crypto.accept(message)
    }

    fn mac(&self, purpose: MacPurpose<'_>, data: &[u8]) -> [u8; 16] {
        self.counts[1].fetch_add(1, Relaxed);
        self.crypto.mac(purpose, data)
    }

    fn seal_cookie(&self, cookie: &[u8; 16], nonce: &[u8; 24], mac1: &[u8; 16]) -> [u8; 32] {
        self.crypto.seal_cookie(cookie, nonce, mac1)
    }

    fn open_cookie(
        &self,
        peer: &PublicKey,
        sealed: &[u8; 32],
        nonce: &[u8; 24],
        mac1: &[u8; 16],
    ) -> Result<[u8; 16], CryptoError> {
        self.crypto.open_cookie(peer, sealed, nonce, mac1)
    }
}

/// Somebody who knows the victim's public key and has a key of his own.
pub struct Stranger {
    crypto: NullCrypto,
    initiating: Initiating,
}

impl Stranger {
    pub fn new(victim: PublicKey, number: u64) -> Self {
        let mut key = [0xee; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        let mut crypto = NullCrypto::new(key);
        let parameters = EndpointConfig::new(profile()).transport.parameters("anabranch").encode();
        let opening = Opening {
            peer: victim,
            local_id: number as u32,
            timestamp: 1 << 60,
            parameters: &parameters,
        };
        let (schedule, rng) = (Schedule::default(), Rng::new(number));
        let mut initiating =
            Initiating::new(&mut crypto, opening, schedule, Time::ZERO, rng).unwrap();
        initiating.add_path(PathId(0), Time::ZERO);
        Stranger { crypto, initiating }
    }

    /// The first message, if it is due.
    pub fn send(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.initiating.poll(&self.crypto, PathId(0), now, &mut out).then_some(out)
    }

    /// The first message with the cookie of this reply, if it is one for this stranger.
    pub fn on_cookie(&mut self, now: Time, reply: &[u8]) -> Option<Vec<u8>> {
        self.initiating.on_cookie_reply(&self.crypto, PathId(0), now, reply).ok()?;
        self.send(now)
    }
}

fn profile() -> Profile {
    Profile::named("anabranch").expect("it is built in")
}

/// Everybody.
pub struct Scene {
    pub victim: Endpoint,
    pub now: Time,
    pub rng: Rng,
    /// The client's first message, as an eavesdropper has it.
    pub captured: Vec<u8>,
    /// What the victim sent to others than the client.
    pub to_strangers: Traffic,
    /// Bytes that the victim has read of the client's stream.
    pub read: usize,
    /// When the client's connection, the newest if there are several, was open.
    pub connected: Option<Time>,
    /// Connections that the victim has made, and forgotten.
    pub accepted: usize,
    pub gone: usize,
    client: Endpoint,
    handle: Option<Handle>,
    stream: Option<StreamId>,
    unwritten: usize,
    counts: Arc<[AtomicU64; 2]>,
    for_strangers: Vec<(SocketAddr, Vec<u8>)>,
    to_each: BTreeMap<SocketAddr, u64>,
    handles: usize,
    config: EndpointConfig,
}

impl Scene {
    /// A victim to which these may connect, and a client that has not connected.
    pub fn new(permitted: Permitted) -> Self {
        let mut config = EndpointConfig::new(profile());
        config.responder.permitted = permitted;
        let counts: Arc<[AtomicU64; 2]> = Arc::default();
        let ours = Box::new(NullCrypto::new([3; 32]));
        Scene {
            victim: victim(config.clone(), &counts),
            now: Time::from_secs(1),
            rng: Rng::new(4),
            captured: Vec::new(),
            to_strangers: Traffic::default(),
            read: 0,
            connected: None,
            accepted: 0,
            gone: 0,
            client: Endpoint::new(EndpointConfig::new(profile()), ours, Rng::new(3), Time::ZERO),
            handle: None,
            stream: None,
            unwritten: 0,
            counts,
            for_strangers: Vec::new(),
            to_each: BTreeMap::new(),
            handles: 0,
            config,
        }
    }

    /// The same with the client connected.
    pub fn with_client(permitted: Permitted) -> Self {
        let mut scene = Scene::new(permitted);
        scene.connect();
        scene.step(Duration::from_millis(100));
        assert!(scene.connected.is_some());
        scene
    }

    /// Connections of the victim do not end by silence.
    pub fn without_idle_timeout(&mut self) {
        self.config.transport.idle_timeout = None;
        self.victim = victim(self.config.clone(), &self.counts);
    }

    /// The victim has at most so many connections with one key.
    pub fn limit_per_peer(&mut self, most: usize) {
        self.config.max_per_peer = most;
        self.victim = victim(self.config.clone(), &self.counts);
    }

    /// The client opens a connection.
    pub fn connect(&mut self) {
        let path = PathAddress { socket: SocketId(0), remote: VICTIM };
        let peer = self.victim.public_key();
        let config = ConnectConfig { peer, paths: vec![path], profile: profile() };
        self.client.connect(self.now, config).unwrap();
    }

    /// The client's application has so many bytes more to send.
    pub fn write(&mut self, bytes: usize) {
        self.unwritten += bytes;
    }

    /// A stranger's datagram reaches the victim.
    pub fn throw(&mut self, remote: SocketAddr, mut bytes: Vec<u8>) {
        let (socket, ecn) = (SocketId(0), Ecn::NotEct);
        self.victim
            .handle_datagram(self.now, Datagram { socket, remote, ecn, payload: &mut bytes });
        self.count();
        self.victim_sends();
    }

    /// What the victim has sent to strangers since it was last asked for.
    pub fn take_for_strangers(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        core::mem::take(&mut self.for_strangers)
    }

    /// Datagrams to the stranger who got most.
    pub fn most_to_one_stranger(&self) -> u64 {
        self.to_each.values().copied().max().unwrap_or(0)
    }

    /// What the victim has had to compute.
    pub fn work(&self) -> Work {
        let [accepts, macs] = &*self.counts;
        Work { accepts: accepts.load(Relaxed), macs: macs.load(Relaxed) }
    }

    /// Time goes on.
    pub fn step(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + STEP);
            self.client.handle_timeout(self.now);
            self.victim.handle_timeout(self.now);
            self.count();
            self.client_writes();
            while self.client_sends() | self.victim_sends() {
                self.count();
            }
            self.victim_reads();
        }
    }

    fn client_sends(&mut self) -> bool {
        let (mut buffer, mut any) = (vec![0; 2048], false);
        while let Some(transmit) = self.client.poll_transmit(self.now, &|_| true, &mut buffer) {
            any = true;
            let payload = &mut buffer[..transmit.len];
            if self.captured.is_empty() {
                self.captured = payload.to_vec();
            }
            let (socket, ecn) = (SocketId(0), Ecn::NotEct);
            self.victim
                .handle_datagram(self.now, Datagram { socket, remote: CLIENT, ecn, payload });
        }
        any
    }

    fn victim_sends(&mut self) -> bool {
        let (mut buffer, mut any) = (vec![0; 2048], false);
        while let Some(transmit) = self.victim.poll_transmit(self.now, &|_| true, &mut buffer) {
            any = true;
            let payload = &mut buffer[..transmit.len];
            if transmit.remote == CLIENT {
                let (socket, ecn) = (SocketId(0), Ecn::NotEct);
                self.client
                    .handle_datagram(self.now, Datagram { socket, remote: VICTIM, ecn, payload });
            } else {
                self.to_strangers.packets += 1;
                self.to_strangers.bytes += payload.len() as u64;
                *self.to_each.entry(transmit.remote).or_default() += 1;
                self.for_strangers.push((transmit.remote, payload.to_vec()));
            }
        }
        any
    }

    fn client_writes(&mut self) {
        while let Some(event) = self.client.poll_event() {
            if let EndpointEvent::Connected(handle) = event {
                self.handle = Some(handle);
                self.connected = Some(self.now);
            }
        }
        if self.unwritten == 0 {
            return;
        }
        let Some(connection) = self.handle.and_then(|handle| self.client.connection(handle)) else {
            return;
        };
        let stream = self.stream;
        let stream = stream.unwrap_or_else(|| connection.open_stream(TrafficClass::Bulk).unwrap());
        self.stream = Some(stream);
        let written = connection.write(stream, &vec![7; self.unwritten.min(100_000)]).unwrap();
        self.unwritten -= written;
    }

    /// Follows how many connections the victim has.
    fn count(&mut self) {
        let handles = self.victim.handles().count();
        self.accepted += handles.saturating_sub(self.handles);
        self.gone += self.handles.saturating_sub(handles);
        self.handles = handles;
    }

    fn victim_reads(&mut self) {
        while self.victim.poll_event().is_some() {}
        let Some(stream) = self.stream else { return };
        let mut buffer = vec![0; 1 << 16];
        let handles: Vec<Handle> = self.victim.handles().collect();
        for handle in handles {
            let Some(connection) = self.victim.connection(handle) else { continue };
            while let Ok(outcome) = connection.read(stream, &mut buffer) {
                self.read += outcome.n;
                if outcome.n == 0 {
                    break;
                }
            }
        }
    }
}

fn victim(config: EndpointConfig, counts: &Arc<[AtomicU64; 2]>) -> Endpoint {
    let crypto = NullCrypto::new([2; 32]);
    let crypto = Box::new(Counting { crypto, counts: Arc::clone(counts) });
    Endpoint::new(config, crypto, Rng::new(2), Time::ZERO)
}
