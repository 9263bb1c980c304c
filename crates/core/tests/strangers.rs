//! Tests of attacks by unauthenticated senders on an endpoint that serves a client. The client must
//! not be affected. The tests run in virtual time; `cargo xtask abuse` measures the same over real
//! sockets.

#[path = "strangers/scene.rs"]
mod scene;

use anabranch_core::crypto::Crypto;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::handshake::{Permitted, message};
use anabranch_types::{Rng, Time};
use core::time::Duration;
use scene::{Scene, Stranger, stranger_address};

/// Number of first messages in each flood, and their number in each millisecond.
const FLOOD: u64 = 100_000;
const PER_MILLISECOND: u64 = 100;
const BYTES: u64 = 3_000_000;

/// Creates the n-th message of a flood.
type Forge = fn(&mut Scene, u64) -> Vec<u8>;

fn noise(scene: &mut Scene, _: u64) -> Vec<u8> {
    let mut bytes = vec![0; 250];
    scene.rng.fill(&mut bytes);
    bytes[..4].copy_from_slice(&[message::INITIATION, message::VERSION, 0, 0]);
    bytes
}

fn unknown_keys(scene: &mut Scene, number: u64) -> Vec<u8> {
    Stranger::new(scene.victim().public_key(), number).send(scene.pair.now).expect("it is due")
}

fn replays(scene: &mut Scene, _: u64) -> Vec<u8> {
    scene.pair.network.captured.clone()
}

/// Runs a transfer, during a flood if one is given. Returns the time at which the transfer was
/// complete, and the scene.
fn transfer(flood: Option<(Forge, u16)>) -> (Time, Scene) {
    let mut scene = Scene::with_client(Permitted::Only([scene::client_key()].into()));
    scene.write(BYTES);
    let mut done = Time::MAX;
    for millisecond in 0..FLOOD / PER_MILLISECOND {
        if let Some((forge, sources)) = flood {
            for number in 0..PER_MILLISECOND {
                let number = millisecond * PER_MILLISECOND + number;
                let bytes = forge(&mut scene, number);
                scene.throw(stranger_address(number % u64::from(sources)), bytes);
            }
        }
        scene.step(Duration::from_millis(1));
        if scene.read() == BYTES {
            done = done.min(scene.pair.now);
        }
    }
    assert_eq!(scene.read(), BYTES);
    (done, scene)
}

/// Most events that a limit of `rate` per second with a burst of `rate` allows during a flood, plus
/// one that is just due.
fn most(rate: u64) -> u64 {
    rate + rate * (FLOOD / PER_MILLISECOND) / 1000 + 1
}

#[test]
fn noise_costs_one_mac_and_gets_no_answer() {
    let (undisturbed, _) = transfer(None);
    let (done, scene) = transfer(Some((noise, 1000)));
    assert_eq!(done, undisturbed);
    assert_eq!((scene.pair.network.to_strangers.packets, scene.work().accepts), (0, 1));
    assert!(scene.work().macs <= FLOOD + 100, "{} MACs", scene.work().macs);
    assert_eq!(scene.victim().handles().count(), 1);
}

#[test]
fn messages_under_unknown_keys_are_held_to_the_rate_whatever_their_source() {
    let (undisturbed, _) = transfer(None);
    for sources in [1, 1000, 50_000] {
        let (done, scene) = transfer(Some((unknown_keys, sources)));
        assert_eq!(done, undisturbed, "{sources} sources");
        let accepts = scene.work().accepts;
        assert!(accepts <= 1 + most(50), "{sources} sources: {accepts} operations");
        // The victim sends only cookies, few in total, and to each source no more than its
        // allowance.
        let cookies = scene.pair.network.to_strangers;
        assert_eq!(cookies.bytes, cookies.packets * message::COOKIE_REPLY_LEN as u64);
        assert!(cookies.packets <= most(2500), "{cookies:?}");
        assert!(scene.most_to_one_stranger() <= most(50), "{sources} sources");
        assert_eq!(scene.victim().handles().count(), 1);
    }
}

#[test]
fn replays_get_few_answers_and_make_no_connection() {
    let (undisturbed, _) = transfer(None);
    let (done, scene) = transfer(Some((replays, 1000)));
    assert_eq!(done, undisturbed);
    assert!(
        scene.pair.network.to_strangers.packets <= 128,
        "{:?}",
        scene.pair.network.to_strangers
    );
    assert_eq!(scene.work().accepts, 1);
    assert_eq!(scene.victim().handles().count(), 1);
}

/// Anyone may connect. One source requests connections without end, each with a new key, and proves
/// its address whenever it is asked to. Another client must still be able to connect soon.
#[test]
fn a_noisy_source_locks_nobody_out() {
    let mut scene = Scene::new(Permitted::Anyone);
    let noisy = stranger_address(0);
    let mut asked = Vec::new();
    for number in 0..2000 {
        for part in 0..10 {
            let mut stranger = Stranger::new(scene.victim().public_key(), number * 10 + part);
            let message = stranger.send(scene.pair.now).unwrap();
            scene.throw(noisy, message);
            asked.push(stranger);
        }
        scene.step(Duration::from_millis(1));
        for (_, cookie) in scene.take_for_strangers() {
            let again =
                asked.iter_mut().find_map(|stranger| stranger.on_cookie(scene.pair.now, &cookie));
            if let Some(again) = again {
                scene.throw(noisy, again);
            }
        }
        asked.drain(..asked.len().saturating_sub(100));
        if number == 1000 {
            scene.connect();
        }
    }
    let connected = scene.connected().expect("it connects in spite of the noise");
    assert!(connected < Time::from_millis(2100), "asked at 2 s, connected at {connected}");
    // Two allowances of the source, without and with proof of its address, and one connection of
    // the client.
    assert!(scene.work().accepts <= 2 * (20 + 2 * 20) + 2, "{:?}", scene.work());
    assert!(scene.victim().handles().count() <= 1 + 16);
}

/// Many sources open connections and leave them half open.
#[test]
fn half_open_connections_are_bounded_and_end() {
    let mut scene = Scene::with(Permitted::Anyone, |config| config.transport.idle_timeout = None);
    let mut most = 0;
    for number in 0..10_000 {
        let message = unknown_keys(&mut scene, number);
        scene.throw(stranger_address(number), message);
        scene.step(Duration::from_millis(1));
        most = most.max(scene.victim().handles().count());
        if number == 5000 {
            scene.connect();
        }
    }
    // From half of the bound on, addresses must be proven, which is impossible for forged
    // addresses.
    assert!((200..=257).contains(&most), "{most}");
    let connected = scene.connected().expect("it connects in spite of the crowd");
    assert!(connected < Time::from_millis(6100), "asked at 6 s, connected at {connected}");
    scene.step(Duration::from_secs(31));
    assert_eq!(scene.victim().handles().count(), 1, "strangers' connections do not stay");
    assert_eq!(scene.gone, scene.accepted - 1);
}

/// With cookies too, there are no more half-open connections than allowed. A new client must be
/// able to connect although many others wait for each free slot.
#[test]
fn a_crowd_that_proves_its_addresses_fills_no_more_than_the_bound() {
    for seed in 3..19 {
        let mut scene = Scene::new(Permitted::Anyone).with_key(seed);
        for number in 0..1700 {
            let mut stranger = Stranger::new(scene.victim().public_key(), number);
            let from = stranger_address(number);
            let message = stranger.send(scene.pair.now).unwrap();
            scene.throw(from, message);
            scene.step(Duration::from_micros(2500));
            for (to, reply) in scene.take_for_strangers() {
                if let Some(again) = stranger.on_cookie(scene.pair.now, &reply) {
                    assert_eq!(to, from);
                    scene.throw(from, again);
                }
            }
            assert!(scene.victim().handles().count() <= 512 + 1);
            if number == 1600 {
                assert!(scene.victim().handles().count() > 400, "the crowd gets in");
                scene.connect();
            }
        }
        assert!(scene.connected().is_some(), "and so does another, whose seed is {seed}");
    }
}

/// A thousand sources prove their addresses and send requests at their full allowance, with keys
/// that are not permitted. A new client must still be able to connect soon.
#[test]
fn a_crowd_of_proven_addresses_locks_no_newcomer_out() {
    const SOURCES: u64 = 1000;
    for seed in 3..11 {
        let permitted = Permitted::Only([NullCrypto::new([seed; 32]).public_key()].into());
        let mut scene = Scene::new(permitted).with_key(seed);
        let mut messages = Vec::new();
        for number in 0..SOURCES {
            let mut stranger = Stranger::new(scene.victim().public_key(), number);
            let mut message = stranger.send(scene.pair.now).unwrap();
            scene.throw(stranger_address(number), message.clone());
            scene.step(Duration::from_millis(1));
            for (_, reply) in scene.take_for_strangers() {
                message = stranger.on_cookie(scene.pair.now, &reply).unwrap_or(message);
            }
            messages.push(message);
        }
        let mut asked = Time::MAX;
        // Each source sends twenty requests per second.
        for turn in 0..160_000 {
            if scene.connected().is_some() {
                break;
            }
            if turn == 20_000 {
                scene.connect();
                asked = scene.pair.now;
            }
            let number = turn % SOURCES;
            scene.throw(stranger_address(number), messages[number as usize].clone());
            scene.step(Duration::from_micros(50));
        }
        let connected = scene.connected();
        let soon = connected.is_some_and(|at| at.since(asked) < Duration::from_secs(7));
        assert!(soon, "seed {seed}: asked at {asked}, connected at {connected:?}");
    }
}

/// The holder of one permitted key requests connections from many addresses and completes none.
#[test]
fn half_open_connections_of_one_key_leave_room_for_others() {
    let mut scene = Scene::new(Permitted::Anyone);
    for number in 0..2000 {
        let mut stranger = Stranger::with_key(scene.victim().public_key(), [7; 32], number, 0);
        let message = stranger.send(Time::ZERO).unwrap();
        scene.throw(stranger_address(number), message);
        scene.step(Duration::from_millis(20));
        let handles = scene.victim().handles().count();
        assert!(handles <= 16 + 1, "{handles} connections of one key");
        if number == 1000 {
            scene.connect();
        }
    }
    assert!(scene.connected().is_some());
}

/// Two clients share a key, and the clock of one is an hour ahead. They connect repeatedly and at
/// the same time, and each gets its own connections.
#[test]
fn two_holders_of_one_key_have_connections_of_their_own() {
    const HOUR: u64 = 3_600_000_000_000;
    let mut scene = Scene::new(Permitted::Only([NullCrypto::new([7; 32]).public_key()].into()));
    for number in 0..7 {
        for (holder, ahead) in [(1, HOUR), (2, 0)] {
            let attempt = 2 * number + holder;
            let victim = scene.victim().public_key();
            let mut stranger = Stranger::with_key(victim, [7; 32], attempt, ahead);
            scene.throw(stranger_address(holder), stranger.send(Time::ZERO).unwrap());
        }
        scene.step(Duration::from_millis(100));
        assert_eq!(scene.victim().handles().count(), 2 * number as usize + 2);
    }
}

#[test]
fn one_key_has_so_many_connections_and_no_more() {
    let mut scene = Scene::with(Permitted::Anyone, |config| config.max_per_peer = 5);
    for _ in 0..8 {
        scene.connect();
        scene.step(Duration::from_millis(100));
    }
    assert_eq!(scene.victim().handles().count(), 5);
    // Another key is not affected.
    let message = unknown_keys(&mut scene, 1);
    scene.throw(stranger_address(1), message);
    assert_eq!(scene.victim().handles().count(), 6);
}

#[test]
fn one_key_takes_half_of_the_connections_at_most() {
    let mut scene = Scene::with(Permitted::Anyone, |config| config.max_connections = 8);
    for _ in 0..12 {
        scene.connect();
        scene.step(Duration::from_millis(100));
    }
    assert_eq!(scene.victim().handles().count(), 4);
    let message = unknown_keys(&mut scene, 1);
    scene.throw(stranger_address(1), message);
    assert_eq!(scene.victim().handles().count(), 5);
}

/// Random bytes of all lengths are sent to an endpoint that serves a client.
#[test]
fn no_datagram_of_a_stranger_leaves_a_trace() {
    let mut scene = Scene::with_client(Permitted::Only([scene::client_key()].into()));
    let mut rng = Rng::new(5);
    for number in 0..50_000 {
        let mut bytes = vec![0; rng.below(1500) as usize];
        rng.fill(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first = [0x01, 0x02, 0x03, 0x40, *first][number as usize % 5];
        }
        scene.throw(stranger_address(number), bytes);
    }
    scene.write(BYTES);
    scene.step(Duration::from_secs(2));
    assert_eq!((scene.read(), scene.pair.network.to_strangers.packets), (BYTES, 0));
}
