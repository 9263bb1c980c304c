//! Tests of key renewal during a transfer: it neither delays nor loses packets, and a peer cannot
//! abuse it.

use anabranch_core::config::TransportConfig;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{Endpoint, EndpointConfig};
use anabranch_core::handshake::Permitted;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Heard, Network, Pair, Rogue, Sent, written};
use anabranch_core::wire::{CloseCode, ControlFrame, Frame, Frames};
use anabranch_types::{Rng, Time};
use core::time::Duration;

const STEP: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(20);

/// Transmission time of each datagram on a path.
const SERVICE: Duration = Duration::from_micros(500);

/// A network that loses the fraction `loss` of the datagrams and delays the others by up to
/// `jitter` in addition to the path's delay.
fn road(loss: f64, jitter: Duration) -> impl Network {
    road_of(7, loss, jitter)
}

/// Version of [`road`] whose losses depend on a seed.
fn road_of(seed: u64, loss: f64, jitter: Duration) -> impl Network {
    let mut rng = Rng::new(seed);
    let mut free = [[Time::ZERO; 2]; 2];
    move |sent: &Sent<'_>| {
        let free = &mut free[sent.side][sent.path as usize];
        *free = sent.now.max(*free) + SERVICE;
        let late = jitter.mul_f64(rng.uniform());
        let lost = rng.chance(loss) || *free > sent.now + DELAY;
        (!lost).then(|| (*free + DELAY * (sent.path + 1) + late, sent.ecn))
    }
}

fn config() -> EndpointConfig {
    let mut config = EndpointConfig::new(Profile::named("anabranch").unwrap());
    config.transport.idle_timeout = None;
    config.transport.keepalive = None;
    config.responder.permitted = Permitted::Anyone;
    config
}

/// Creates a pair that is connected over two paths and whose keys must be renewed after `limit`
/// packets.
fn pair<N: Network>(limit: u64, network: N) -> Pair<N> {
    let profile = Profile::named("anabranch").unwrap();
    let ends = [1, 2].map(|seed| {
        let crypto = NullCrypto::new([seed; 32]).with_key_limit(limit);
        Endpoint::new(config(), Box::new(crypto), Time::ZERO)
    });
    let mut pair = Pair::of(ends, &profile, network);
    pair.connect(2);
    pair
}

fn run<N: Network>(pair: &mut Pair<N>, step: Duration, time: Duration) {
    let end = pair.now + time;
    while pair.now < end {
        pair.round(step);
        assert!(pair.ends.iter().all(|end| end.closed.is_none()), "{:?}", pair.ends[0].closed);
    }
}

fn renewals<N: Network>(pair: &mut Pair<N>) -> [u64; 2] {
    pair.ends.each_mut().map(|end| end.connection().unwrap().stats().key_renewals)
}

#[test]
fn keys_in_use_are_renewed_every_two_minutes_over_lossy_paths() {
    let mut pair = pair(u64::MAX, road(0.3, Duration::from_millis(50)));
    let mut before = [0; 2];
    for minute in 0..20 {
        for side in [0, 1] {
            pair.ends[side].unwritten = 200_000;
        }
        run(&mut pair, STEP * 5, Duration::from_secs(60));
        let after = renewals(&mut pair);
        for side in [0, 1] {
            assert_eq!(pair.ends[side].read, (minute + 1) * 200_000, "side {side}");
            assert!(after[side] - before[side] <= 1, "not more often");
        }
        before = after;
    }
    let [client, server] = renewals(&mut pair);
    assert!(client >= 9 && server >= 9, "{client} and {server} in 20 minutes");
    let dropped = pair.ends.each_mut().map(|end| end.connection().unwrap().stats().dropped);
    assert!(dropped.iter().all(|dropped| dropped.unopened == 0), "{dropped:?}");
}

#[test]
fn worn_keys_are_renewed_whoever_sends() {
    // The bytes of one run vary by 4 % with the seed of the losses, so the ratio of the sums over
    // 32 runs varies by 0.7 %.
    let [mut with, mut without] = [0, 0];
    for (sender, seed) in
        [0, 1].into_iter().flat_map(|sender| (0..16).map(move |seed| (sender, seed)))
    {
        let mut limited = pair(4000, road_of(seed, 0.01, Duration::ZERO));
        let mut unlimited = pair(u64::MAX, road_of(seed, 0.01, Duration::ZERO));
        for pair in [&mut limited, &mut unlimited] {
            pair.ends[sender].unwritten = u64::MAX;
            run(pair, STEP, Duration::from_secs(20));
        }
        let [client, server] = renewals(&mut limited);
        assert!(client >= 5 && server >= 5, "{client} and {server}");
        with += limited.ends[1 - sender].read;
        without += unlimited.ends[1 - sender].read;
    }
    println!("{with} bytes, without renewals {without}");
    assert!(with as f64 > 0.98 * without as f64, "{with} bytes, without renewals {without}");
}

#[test]
fn an_idle_connection_renews_its_keys_once_and_is_silent_then() {
    let mut pair = pair(u64::MAX, road(0.0, Duration::ZERO));
    pair.ends[0].unwritten = 100_000;
    run(&mut pair, STEP, Duration::from_secs(10));
    run(&mut pair, STEP * 100, Duration::from_secs(120));
    assert_eq!(renewals(&mut pair), [1, 1], "what was sent is protected");
    let packets = |pair: &Pair<_>| [0, 1].map(|side| pair.ends[side].packets);
    let before = packets(&pair);
    run(&mut pair, STEP * 100, Duration::from_secs(3600));
    assert_eq!((renewals(&mut pair), packets(&pair)), ([1, 1], before));
    pair.ends[1].unwritten = 100_000;
    run(&mut pair, STEP, Duration::from_secs(10));
    assert_eq!(renewals(&mut pair), [2, 2], "keys so old are renewed at once");
    assert_eq!((pair.ends[0].read, pair.ends[1].read), (100_000, 100_000));
}

/// With a peer that never starts an exchange, the connection lasts until a key reaches its usage
/// limit.
#[test]
fn a_key_that_may_seal_no_more_ends_the_connection() {
    let limit = 100;
    let mut pair = pair(limit, road(0.0, Duration::ZERO));
    pair.ends[0].unwritten = 1000;
    run(&mut pair, STEP, Duration::from_millis(200));
    // Send all packets at once, before an exchange may start.
    pair.ends[0].unwritten = u64::MAX;
    for _ in 0..700 {
        pair.round(STEP);
    }
    let reason = pair.ends[0].closed.clone().expect("it sends faster than keys can be made");
    assert_eq!((reason.code, reason.by_peer), (CloseCode::KEY_LIMIT, false));
    let told = pair.ends[1].closed.clone().expect("the peer is told");
    assert_eq!((told.code, told.by_peer), (CloseCode::KEY_LIMIT, true));
}

fn question(rogue: &mut Rogue, epoch: u64) -> Vec<u8> {
    let message = rogue.session.rekey.ask().unwrap();
    rekey(epoch, message)
}

fn rekey(epoch: u64, message: [u8; 48]) -> Vec<u8> {
    written(|writer| ControlFrame::Rekey { epoch, message }.encode(writer).unwrap())
}

fn rogue() -> Rogue {
    let parameters = TransportConfig::default().parameters("anabranch");
    let mut rogue = Rogue::connect(TransportConfig::default(), "anabranch", &parameters);
    rogue.send(0, &[1]);
    rogue.advance(Duration::from_secs(2));
    while rogue.take().is_some() {}
    rogue
}

/// Takes all answers of the victim that have arrived, and counts the rekey frames in them.
fn answers(rogue: &mut Rogue) -> usize {
    rogue.listen();
    let mut count = 0;
    while let Some(Heard { frames, .. }) = rogue.take() {
        let frames = Frames::new(&frames).map_while(Result::ok);
        count += frames
            .filter(|frame| matches!(frame, Frame::Control(ControlFrame::Rekey { .. })))
            .count();
    }
    count
}

fn assert_broken(rogue: &Rogue) {
    let reason = rogue.closed().expect("the connection is closed");
    assert_eq!((reason.code, reason.by_peer), (CloseCode::PROTOCOL_VIOLATION, false));
}

#[test]
fn a_copy_of_a_question_is_not_answered_again() {
    let mut rogue = rogue();
    let frame = question(&mut rogue, 1);
    rogue.send(0, &frame);
    assert_eq!(answers(&mut rogue), 1);
    rogue.acknowledge(0);
    for _ in 0..100 {
        rogue.send(0, &frame);
    }
    assert_eq!((answers(&mut rogue), rogue.closed()), (0, None));
}

#[test]
fn a_peer_cannot_make_work_by_exchanges() {
    // The victim has answered a request, but the rogue does not use the new keys.
    let mut unused = rogue();
    let frame = question(&mut unused, 1);
    unused.send(0, &frame);
    unused.advance(Duration::from_secs(10));
    unused.send(0, &rekey(2, [0; 48]));
    assert_broken(&unused);
    // A request that skips an epoch, a forged request, and a request too soon after the handshake.
    let mut ahead = rogue();
    let frame = question(&mut ahead, 2);
    ahead.send(0, &frame);
    assert_broken(&ahead);
    let mut forged = rogue();
    forged.send(0, &rekey(1, [7; 48]));
    assert_broken(&forged);
    let parameters = TransportConfig::default().parameters("anabranch");
    let mut early = Rogue::connect(TransportConfig::default(), "anabranch", &parameters);
    let frame = question(&mut early, 1);
    early.send(0, &frame);
    assert_broken(&early);
}
