//! Tests of clocks that are wrong by accident or on purpose: which clients cannot connect, and for
//! how long.

use anabranch_core::crypto::Crypto;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{ConnectConfig, Datagram, Endpoint, EndpointConfig};
use anabranch_core::handshake::Permitted;
use anabranch_core::path::received::Ecn;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_types::Time;
use core::time::Duration;
use std::net::SocketAddr;

/// Start time of the tests in nanoseconds since 1970, and some durations in nanoseconds.
const TODAY: u64 = 1_700_000_000 * SECOND;
const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 365 * 86_400 * SECOND;
/// Number of attempts, more than the number of timestamps that a responder remembers.
const MANY: u32 = 100;
/// Pause between attempts, so that no rate limit is exceeded and half-open connections expire.
const PAUSE: Duration = Duration::from_secs(3);

/// Creates an endpoint with the key of this seed, whose next handshake follows this many others.
fn end(seed: u8, handshakes: u64, wall_clock: u64) -> Endpoint {
    let mut config = EndpointConfig::new(Profile::named("anabranch").unwrap());
    config.responder.permitted = Permitted::Anyone;
    config.wall_clock = wall_clock;
    let mut crypto = NullCrypto::new([seed; 32]);
    for _ in 0..handshakes {
        crypto.initiate(&crypto.public_key(), &[], &mut Vec::new()).unwrap();
    }
    Endpoint::new(config, Box::new(crypto), Time::ZERO)
}

/// Delivers the datagrams that one end sends to the other. Returns their number.
fn pass(now: Time, from: &mut Endpoint, to: &mut Endpoint, last: &mut Vec<u8>) -> usize {
    let remote = SocketAddr::from(([10, 0, 0, 1], 1));
    let (mut buffer, mut count) = ([0; 2048], 0);
    while let Some(transmit) = from.poll_transmit(now, &|_| true, &mut buffer) {
        let payload = &mut buffer[..transmit.len];
        *last = payload.to_vec();
        let (socket, ecn) = (SocketId(0), Ecn::NotEct);
        to.handle_datagram(now, Datagram { socket, remote, ecn, payload });
        count += 1;
    }
    count
}

/// A server and the current time.
struct Scene {
    server: Endpoint,
    now: Time,
    /// The newest Initiation that arrived.
    message: Vec<u8>,
}

impl Scene {
    fn new(wall_clock: u64) -> Self {
        Scene { server: end(9, 0, wall_clock), now: Time::ZERO, message: Vec::new() }
    }

    /// Whether the server answers a client whose clock showed `wall_clock` when the test started.
    /// All clients of a test use the same key.
    fn answers(&mut self, wall_clock: u64) -> bool {
        self.now += PAUSE;
        self.server.handle_timeout(self.now);
        let mut client = end(1, self.now.as_nanos() / SECOND, wall_clock);
        let remote = SocketAddr::from(([10, 0, 0, 2], 1));
        let config = ConnectConfig {
            peer: self.server.public_key(),
            paths: vec![PathAddress { socket: SocketId(0), remote }],
            profile: Profile::named("anabranch").unwrap(),
        };
        client.connect(self.now, config).unwrap();
        assert_eq!(pass(self.now, &mut client, &mut self.server, &mut self.message), 1);
        pass(self.now, &mut self.server, &mut client, &mut Vec::new()) > 0
    }

    /// Whether the server answers a replay of the last message 100 seconds later.
    fn answers_replay(&mut self) -> bool {
        self.now += Duration::from_secs(100);
        self.server.handle_timeout(self.now);
        let remote = SocketAddr::from(([10, 0, 0, 3], 1));
        let (socket, ecn, payload) = (SocketId(0), Ecn::NotEct, &mut self.message.clone()[..]);
        self.server.handle_datagram(self.now, Datagram { socket, remote, ecn, payload });
        let mut buffer = [0; 2048];
        self.server.poll_transmit(self.now, &|_| true, &mut buffer).is_some()
    }
}

#[test]
fn nobody_locks_out_another_holder_of_his_key_by_timestamps_of_years_to_come() {
    let mut scene = Scene::new(TODAY);
    for year in 1..=MANY {
        assert!(scene.answers(TODAY + u64::from(year) * YEAR), "in {year} years");
    }
    assert!(scene.answers(TODAY));
}

/// Two clients share a key. If the clock of one is as far ahead as is just allowed, the other
/// cannot connect for a few minutes.
#[test]
fn timestamps_a_little_ahead_lock_another_out_for_minutes_and_no_longer() {
    let mut scene = Scene::new(TODAY);
    for _ in 0..MANY {
        assert!(scene.answers(TODAY + 299 * SECOND));
    }
    assert!(!scene.answers(TODAY));
    scene.now += Duration::from_secs(300);
    assert!(scene.answers(TODAY));
}

/// The server has started without a battery-backed clock.
#[test]
fn a_server_whose_clock_is_years_behind_serves_everybody() {
    let mut scene = Scene::new(0);
    for _ in 0..MANY {
        assert!(scene.answers(TODAY));
    }
    assert!(!scene.answers_replay());
    // Another client with the same key, whose clock is slow.
    assert!(scene.answers(TODAY - 3600 * SECOND));
}

#[test]
fn a_replay_is_dropped_whatever_its_timestamp() {
    for ahead in [0, 200 * SECOND, 10 * YEAR] {
        let mut scene = Scene::new(TODAY);
        assert!(scene.answers(TODAY + ahead));
        assert!(!scene.answers_replay(), "{ahead} ns ahead");
    }
}

/// Timestamps must increase, as in WireGuard. A client whose clock is set back therefore has to
/// wait until the clock shows a later time than before.
#[test]
fn a_client_whose_clock_is_set_back_is_taken_for_a_replay() {
    let mut scene = Scene::new(TODAY);
    for _ in 0..MANY {
        assert!(scene.answers(TODAY));
    }
    assert!(!scene.answers(TODAY - 3600 * SECOND));
    scene.now += Duration::from_secs(3600);
    assert!(scene.answers(TODAY - 3500 * SECOND));
}
