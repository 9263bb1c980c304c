//! A victim, its client and unauthenticated senders, in virtual time and on a network without
//! delay.

use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::crypto::{
    Accepted, Crypto, CryptoError, InitiatorState, MacPurpose, PublicKey, Randomness,
};
use anabranch_core::endpoint::{Endpoint, EndpointConfig};
use anabranch_core::handshake::{Initiator, Opening, Permitted, Schedule};
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent, endpoint};
use anabranch_types::{PathId, Rng, Time};
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Longest step of virtual time.
const STEP: Duration = Duration::from_millis(1);
/// Indices of the client and the victim in the ends of the pair.
const CLIENT: usize = 0;
const VICTIM: usize = 1;

/// The key of the client that the victim serves.
pub fn client_key() -> PublicKey {
    NullCrypto::new([3; 32]).public_key()
}

/// Source address of a stranger. It differs for all numbers below 2^24.
pub fn stranger_address(number: u64) -> SocketAddr {
    let [.., a, b, c] = number.to_be_bytes();
    SocketAddr::from(([127, a, b, c], 9))
}

/// Number of cryptographic operations so far.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// First messages processed. Each takes two Diffie–Hellman operations with real cryptography.
    pub accepts: u64,
    /// MACs computed.
    pub macs: u64,
}

/// Number of datagrams and of their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub packets: u64,
    pub bytes: u64,
}

/// Counts costly operations.
#[derive(Debug)]
struct Counting {
    crypto: NullCrypto,
    counts: Arc<[AtomicU64; 2]>,
}

impl Crypto for Counting {
    fn public_key(&self) -> PublicKey {
        self.crypto.public_key()
    }

    fn randomness(&mut self) -> Box<dyn Randomness> {
        self.crypto.randomness()
    }

    fn initiate(
        &mut self,
        peer: &PublicKey,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Box<dyn InitiatorState>, CryptoError> {
        self.crypto.initiate(peer, payload, message)
    }

    fn accept(&mut self, header: &[u8], message: &[u8]) -> Result<Accepted, CryptoError> {
        self.counts[0].fetch_add(1, Relaxed);
        self.crypto.accept(header, message)
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

/// A sender that knows the victim's public key and has its own key.
pub struct Stranger {
    crypto: NullCrypto,
    initiator: Initiator,
}

impl Stranger {
    pub fn new(victim: PublicKey, number: u64) -> Self {
        let mut key = [0xee; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        Self::of(NullCrypto::new(key), victim, number, 0)
    }

    /// Creates attempt `number` of a stranger with this key, whose clock is `ahead` nanoseconds
    /// ahead.
    pub fn with_key(victim: PublicKey, key: [u8; 32], number: u64, ahead: u64) -> Self {
        let mut crypto = NullCrypto::new(key).with_random_numbers(Rng::new(number));
        // Each attempt has its own ephemeral key.
        for _ in 0..number {
            let _ = crypto.initiate(&victim, &[], &mut Vec::new());
        }
        Self::of(crypto, victim, number, ahead)
    }

    fn of(mut crypto: NullCrypto, victim: PublicKey, number: u64, ahead: u64) -> Self {
        let parameters = EndpointConfig::new(profile()).transport.parameters("anabranch").encode();
        let opening = Opening {
            peer: victim,
            local_id: number as u32,
            timestamp: (1 << 60) + ahead + number,
            parameters: &parameters,
        };
        let schedule = Schedule::default();
        let mut initiator = Initiator::new(&mut crypto, opening, schedule, Time::ZERO).unwrap();
        initiator.add_path(PathId(0), Time::ZERO);
        Stranger { crypto, initiator }
    }

    /// The first message, if it is due.
    pub fn send(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.initiator.poll(&self.crypto, PathId(0), now, &mut out).then_some(out)
    }

    /// The first message with the cookie of this reply, if the reply is for this stranger.
    pub fn on_cookie(&mut self, now: Time, reply: &[u8]) -> Option<Vec<u8>> {
        self.initiator.on_cookie_reply(&self.crypto, PathId(0), now, reply).ok()?;
        self.send(now)
    }
}

fn profile() -> Profile {
    Profile::named("anabranch").expect("it is built in")
}

/// A network that delivers everything at once and keeps the datagrams to strangers.
#[derive(Default)]
pub struct Streets {
    /// The client's first message, as captured by an eavesdropper.
    pub captured: Vec<u8>,
    /// Datagrams that the victim sent to strangers.
    pub to_strangers: Traffic,
    for_strangers: Vec<(SocketAddr, Vec<u8>)>,
    to_each: BTreeMap<SocketAddr, u64>,
}

impl Network for Streets {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        if self.captured.is_empty() {
            self.captured = sent.payload.to_vec();
        }
        Some((sent.now, Ecn::NotEct))
    }

    fn stray(&mut self, sent: &Sent<'_>) {
        self.to_strangers.packets += 1;
        self.to_strangers.bytes += sent.payload.len() as u64;
        *self.to_each.entry(sent.remote).or_default() += 1;
        self.for_strangers.push((sent.remote, sent.payload.to_vec()));
    }
}

/// The client, the victim, and counts of the victim's connections and work.
pub struct Scene {
    pub pair: Pair<Streets>,
    pub rng: Rng,
    /// Numbers of connections that the victim has created and removed.
    pub accepted: usize,
    pub gone: usize,
    counts: Arc<[AtomicU64; 2]>,
    handles: usize,
}

impl Scene {
    /// Creates a victim to which the holders of these keys may connect, and a client that is not
    /// connected.
    pub fn new(permitted: Permitted) -> Self {
        Self::with(permitted, |_| {})
    }

    /// Version of [`new`](Self::new) with other limits for the victim.
    pub fn with(permitted: Permitted, limits: impl FnOnce(&mut EndpointConfig)) -> Self {
        let mut config = EndpointConfig::new(profile());
        config.responder.permitted = permitted;
        limits(&mut config);
        let counts: Arc<[AtomicU64; 2]> = Arc::default();
        let crypto = NullCrypto::new([2; 32]);
        let crypto = Box::new(Counting { crypto, counts: Arc::clone(&counts) });
        let victim = Endpoint::new(config, crypto, Time::ZERO);
        let client = endpoint(3, EndpointConfig::new(profile()));
        let mut pair = Pair::of([client, victim], &profile(), Streets::default());
        pair.now = Time::from_secs(1);
        Scene { pair, rng: Rng::new(4), accepted: 0, gone: 0, counts, handles: 0 }
    }

    /// Replaces the client by one with the key and the random numbers of another seed.
    pub fn with_key(mut self, seed: u8) -> Self {
        self.pair.ends[CLIENT].endpoint = endpoint(seed, EndpointConfig::new(profile()));
        self
    }

    /// Creates a scene whose client is connected.
    pub fn with_client(permitted: Permitted) -> Self {
        let mut scene = Scene::new(permitted);
        scene.connect();
        scene.step(Duration::from_millis(100));
        assert!(scene.connected().is_some());
        scene
    }

    /// Lets the client open a connection.
    pub fn connect(&mut self) {
        self.pair.connect(1);
    }

    /// When the client's newest connection was established, if there is one.
    pub fn connected(&self) -> Option<Time> {
        self.pair.ends[CLIENT].opened
    }

    /// The endpoint under attack.
    pub fn victim(&self) -> &Endpoint {
        &self.pair.ends[VICTIM].endpoint
    }

    /// Gives the client's application this many more bytes to send.
    pub fn write(&mut self, bytes: u64) {
        self.pair.ends[CLIENT].unwritten += bytes;
    }

    /// Number of bytes that the victim has read from the client's stream.
    pub fn read(&self) -> u64 {
        self.pair.ends[VICTIM].read
    }

    /// Delivers a stranger's datagram to the victim.
    pub fn throw(&mut self, remote: SocketAddr, mut bytes: Vec<u8>) {
        self.pair.inject(VICTIM, 0, remote, Ecn::NotEct, &mut bytes);
        self.count();
        self.pair.send_from(VICTIM);
    }

    /// Takes the datagrams that the victim has sent to strangers since the last call.
    pub fn take_for_strangers(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        core::mem::take(&mut self.pair.network.for_strangers)
    }

    /// Number of datagrams to the stranger that got the most.
    pub fn most_to_one_stranger(&self) -> u64 {
        self.pair.network.to_each.values().copied().max().unwrap_or(0)
    }

    /// Number of cryptographic operations of the victim.
    pub fn work(&self) -> Work {
        let [accepts, macs] = &*self.counts;
        Work { accepts: accepts.load(Relaxed), macs: macs.load(Relaxed) }
    }

    /// Lets `time` pass.
    pub fn step(&mut self, time: Duration) {
        let end = self.pair.now + time;
        while self.pair.now < end {
            self.pair.round(STEP.min(end.since(self.pair.now)));
            self.count();
            // The sent datagrams have already arrived, and their answers are in flight.
            while self.pair.deliver_due() > 0 {
                self.count();
                self.pair.send();
            }
            self.pair.news();
            self.pair.read(VICTIM, usize::MAX);
        }
    }

    /// Updates the counts of the victim's connections.
    fn count(&mut self) {
        let handles = self.victim().handles().count();
        self.accepted += handles.saturating_sub(self.handles);
        self.gone += self.handles.saturating_sub(handles);
        self.handles = handles;
    }
}
