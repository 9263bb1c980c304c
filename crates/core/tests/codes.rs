//! Tests of transfers with each erasure code, between ends that know the code and ends that do not.

use anabranch_core::connection::ConnectionStats;
use anabranch_core::endpoint::EndpointConfig;
use anabranch_core::handshake::Permitted;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent, endpoint};
use anabranch_policy::view::TrafficClass;
use anabranch_policy::{Axis, code};
use anabranch_types::{Rng, Time};
use core::time::Duration;

const BYTES: u64 = 600_000;

/// A network with a delay of 10 ms each way that loses the datagrams of the first end with
/// probability `loss`.
fn network(loss: f64) -> impl Network {
    let mut rng = Rng::new(5);
    move |sent: &Sent<'_>| {
        let lost = sent.side == 0 && rng.chance(loss);
        (!lost).then(|| (sent.now + Duration::from_millis(10), sent.ecn))
    }
}

fn profile(axes: &[(Axis, &str)]) -> Profile {
    let mut profile = Profile::named("anabranch").unwrap();
    for (axis, choice) in axes {
        profile.set(*axis, choice).unwrap();
    }
    profile
}

/// Runs a complete transfer. Returns the statistics of both ends.
fn transfer<N: Network>(mut pair: Pair<N>) -> [ConnectionStats; 2] {
    pair.ends[0].unwritten = BYTES;
    while pair.ends[1].read < BYTES {
        pair.round(Duration::from_millis(1));
        assert!(pair.now < Time::from_secs(60), "{} bytes in a minute", pair.ends[1].read);
    }
    [0, 1].map(|side| pair.ends[side].connection().unwrap().stats())
}

#[test]
fn every_code_recovers_what_is_lost() {
    for (entry, _) in code::TABLE {
        let choice = profile(&[(Axis::Code, entry.name)]);
        let repairs = code::build(choice.policy(Axis::Code)).unwrap().limits().repairs;
        let [sender, receiver] = transfer(Pair::new(&choice, 1, network(0.1)));
        assert_eq!(sender.sent.repairs > 0, repairs, "{}", entry.name);
        assert_eq!(receiver.decoded > 0, repairs, "{}", entry.name);
    }
}

/// The blocks are longer than those of any code with byte-sized symbol numbers.
#[test]
fn blocks_of_many_symbols_are_recovered() {
    let axes = [
        (Axis::Code, "random-linear:sources=1024"),
        (Axis::Redundancy, "fixed:sources=600,share=0.2"),
    ];
    let [sender, receiver] = transfer(Pair::new(&profile(&axes), 1, network(0.1)));
    assert!(sender.sent.sources > 400 && sender.sent.blocks < 4, "{:?}", sender.sent);
    assert!(receiver.decoded > 0);
}

/// Repairs are sent before the data ends, and blocks are long, so nearly all losses are repaired
/// during the transfer.
#[test]
fn sliding_repairs_do_not_wait_for_the_block() {
    let axes = [
        (Axis::Code, "sliding-window"),
        (Axis::Redundancy, "sliding:every=4,reach=64,sources=255"),
    ];
    let [sender, receiver] = transfer(Pair::new(&profile(&axes), 1, network(0.05)));
    let due = sender.sent.sources / 4;
    assert!(sender.sent.repairs >= due, "{:?}", sender.sent);
    assert!(sender.sent.repairs <= due + due / 4, "{:?}", sender.sent);
    assert!(receiver.decoded > 0);
}

/// A slow writer always pauses after one symbol.
#[test]
fn a_slow_writer_gets_sliding_repairs_at_their_rate() {
    let axes = [
        (Axis::Code, "sliding-window"),
        (Axis::Redundancy, "sliding:every=10,reach=64,sources=64"),
    ];
    let mut pair = Pair::new(&profile(&axes), 1, network(0.0));
    for _ in 0..200 {
        pair.ends[0].unwritten += 500;
        (0..40).for_each(|_| pair.round(Duration::from_millis(1)));
    }
    assert_eq!(pair.ends[1].read, 200 * 500);
    let sent = pair.ends[0].connection().unwrap().stats().sent;
    assert!((sent.sources / 10..=sent.sources / 10 + 1).contains(&sent.repairs), "{sent:?}");
}

/// The sender's code is used, and each side may have another one.
#[test]
fn sides_may_differ_in_their_codes() {
    let config = |axes: &[(Axis, &str)]| {
        let mut config = EndpointConfig::new(profile(axes));
        config.responder.permitted = Permitted::Anyone;
        config
    };
    let (first, second) = (config(&[(Axis::Code, "random-linear")]), config(&[]));
    let client = first.profile.clone();
    let mut pair = Pair::of([endpoint(1, first), endpoint(2, second)], &client, network(0.1));
    pair.connect(1);
    let [sender, receiver] = transfer(pair);
    assert!(sender.sent.repairs > 0 && receiver.decoded > 0);
}

/// Blocks are planned with short symbols if little data fits into a round trip. Datagrams may be
/// longer.
#[test]
fn datagrams_longer_than_the_planned_symbols_arrive() {
    let mut pair = Pair::new(&Profile::named("mplot").unwrap(), 1, network(0.0));
    pair.ends[0].unwritten = 200_000;
    while pair.ends[1].connection().is_none() {
        pair.round(Duration::from_millis(1));
    }
    let mut arrived = Vec::new();
    for number in 0..40 {
        let datagram = vec![number; 900];
        let connection = pair.ends[0].connection().unwrap();
        connection.send_datagram(&datagram, TrafficClass::Interactive).unwrap();
        for _ in 0..20 {
            pair.round(Duration::from_millis(1));
            let mut buffer = [0; 1500];
            let connection = pair.ends[1].connection().unwrap();
            while let Some(length) = connection.recv_datagram(&mut buffer) {
                assert_eq!(length, 900);
                arrived.push(buffer[0]);
            }
        }
    }
    assert_eq!(arrived, (0..40).collect::<Vec<u8>>());
}
