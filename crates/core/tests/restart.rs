//! Tests of peers that restart or only seem to. The client must notice a restart within a few round
//! trips, and nobody can fake one.

use anabranch_core::connection::TimeoutReason;
use anabranch_core::endpoint::EndpointConfig;
use anabranch_core::handshake::Permitted;
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent, endpoint};
use anabranch_core::wire::CloseCode;
use anabranch_types::Time;
use core::time::Duration;

const STEP: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(20);
/// First bytes of handshake messages.
const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;

/// A network that loses the datagrams for which `loses` returns true, and keeps copies of handshake
/// messages.
struct Road {
    loses: fn(&Sent<'_>) -> bool,
    handshakes: Vec<(usize, Vec<u8>)>,
    /// Additional delay each way.
    slow: Duration,
}

impl Network for Road {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        if [INITIATION, RESPONSE].contains(&sent.payload[0]) {
            self.handshakes.push((sent.side, sent.payload.to_vec()));
        }
        (!(self.loses)(sent)).then(|| (sent.now + DELAY + self.slow, sent.ecn))
    }
}

fn config() -> EndpointConfig {
    let mut config = EndpointConfig::new(Profile::named("anabranch").unwrap());
    config.transport.notice_silence = true;
    config.transport.idle_timeout = Some(Duration::from_secs(300));
    config.responder.permitted = Permitted::Anyone;
    config
}

/// Creates a client that has sent data to a server over two paths and got answers.
fn pair() -> Pair<Road> {
    let network = Road { loses: |_| false, handshakes: Vec::new(), slow: Duration::ZERO };
    let mut pair = Pair::with(config(), 2, network);
    pair.ends[0].unwritten = 100_000;
    run(&mut pair, 1000);
    assert_eq!(pair.ends[1].read, 100_000);
    pair
}

fn run(pair: &mut Pair<Road>, millis: u64) {
    for _ in 0..millis {
        pair.round(STEP);
    }
}

/// Restarts the server with the same key and without any connections.
fn restart(pair: &mut Pair<Road>) {
    let end = &mut pair.ends[1];
    end.endpoint = endpoint(2, EndpointConfig { wall_clock: 1, ..config() });
    (end.handle, end.stream, end.closed) = (None, None, None);
}

/// Runs until the client's connection has ended. Returns the time that this took.
fn until_closed(pair: &mut Pair<Road>, most: u64) -> Option<Duration> {
    let begun = pair.now;
    for _ in 0..most {
        pair.round(STEP);
        if let Some(closed) = &pair.ends[0].closed {
            assert_eq!((closed.code, closed.by_peer), (CloseCode::UNKNOWN_TO_PEER, false));
            return Some(pair.now.since(begun));
        }
    }
    None
}

#[test]
fn a_restart_is_noticed_within_a_few_round_trips() {
    let mut pair = pair();
    restart(&mut pair);
    pair.ends[0].unwritten = 1000;
    let took = until_closed(&mut pair, 5000).expect("it is noticed");
    assert!(took < Duration::from_millis(800), "{took:?}");
    assert_eq!(pair.ends[1].endpoint.handles().count(), 0, "asking opens no connection");
}

#[test]
fn a_server_that_comes_back_after_minutes_is_found_within_a_second() {
    let mut pair = pair();
    pair.network.loses = |_| true;
    pair.ends[0].unwritten = 1000;
    run(&mut pair, 120_000);
    restart(&mut pair);
    pair.network.loses = |_| false;
    let took = until_closed(&mut pair, 5000).expect("it is noticed");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn an_idle_client_with_a_heartbeat_notices_by_itself() {
    let mut pair = pair();
    let client = pair.ends[0].connection().unwrap();
    client.set_heartbeat(Some(Duration::from_secs(1)));
    run(&mut pair, 60_000);
    restart(&mut pair);
    let took = until_closed(&mut pair, 5000).expect("it is noticed");
    assert!(took < Duration::from_millis(1800), "{took:?}");
}

#[test]
fn a_heartbeat_costs_one_packet_and_its_answer() {
    let mut pair = pair();
    pair.ends[0].connection().unwrap().set_heartbeat(Some(Duration::from_secs(1)));
    run(&mut pair, 10_000);
    let before = [pair.ends[0].packets, pair.ends[1].packets];
    run(&mut pair, 60_000);
    let after = [pair.ends[0].packets, pair.ends[1].packets];
    for side in 0..2 {
        let beats = after[side] - before[side];
        assert!((50..=130).contains(&beats), "end {side}: {beats} packets in 60 s");
    }
}

/// The client checks the peer before the peer counts as silent, and before a second timeout, which
/// is twice as long.
#[test]
fn a_peer_is_asked_as_soon_as_every_path_has_timed_out() {
    let mut pair = pair();
    run(&mut pair, 1000);
    pair.network.loses = |_| true;
    pair.network.handshakes.clear();
    let timeouts = |pair: &mut Pair<Road>| -> Vec<u64> {
        let stats = pair.ends[0].connection().unwrap().stats();
        stats.paths.iter().map(|path| path.counters.timeouts).collect()
    };
    let before = timeouts(&mut pair);
    pair.ends[0].connection().unwrap().ask_for_signs(pair.now);
    pair.send();
    let mut until = |happens: &dyn Fn(&mut Pair<Road>) -> bool| {
        let begun = pair.now;
        while !happens(&mut pair) {
            pair.round(STEP);
            assert!(pair.now < begun + Duration::from_secs(2), "it does not happen");
        }
        pair.now.since(begun)
    };
    let all_have =
        |pair: &mut Pair<Road>| timeouts(pair).iter().zip(&before).all(|(now, old)| now > old);
    let first = until(&all_have);
    let asked = until(&|pair| !pair.network.handshakes.is_empty());
    assert!(asked <= STEP * 2, "{first:?}, and after {asked:?} more");
    let silent = until(&|pair| pair.ends[0].connection().unwrap().silent_since().is_some()) + asked;
    assert!(silent + STEP * 2 >= first && silent <= first + STEP * 2, "{first:?}, {silent:?}");
}

/// Packets may have arrived so shortly before the timeouts that the timeouts alone cause no check.
#[test]
fn a_silent_peer_has_been_asked_whenever_it_was_last_heard() {
    for heard_for in (0..300).step_by(10) {
        let mut pair = pair();
        run(&mut pair, 1000);
        pair.network.loses = |sent| sent.side == 0;
        pair.network.handshakes.clear();
        pair.ends[0].unwritten = 1000;
        for _ in 0..heard_for {
            let now = pair.now;
            pair.ends[1].connection().unwrap().ask_for_signs(now);
            pair.round(STEP);
        }
        pair.network.loses = |_| true;
        while pair.ends[0].connection().unwrap().silent_since().is_none() {
            pair.round(STEP);
            assert!(pair.now < Time::from_secs(9), "it is not noticed");
        }
        run(&mut pair, 2);
        let asked = pair.network.handshakes.iter().any(|(side, _)| *side == 0);
        assert!(asked, "heard for {heard_for} ms");
    }
}

/// After lost packets the client checks the peer. The peer answers that it has the connection, and
/// no event is reported to the application.
#[test]
fn a_timeout_alone_is_no_silence() {
    let mut pair = pair();
    run(&mut pair, 1000);
    pair.network.handshakes.clear();
    pair.network.loses = |sent| ![INITIATION, RESPONSE].contains(&sent.payload[0]);
    pair.ends[0].unwritten = 1000;
    while pair.network.handshakes.iter().all(|(side, _)| *side == 0) {
        pair.round(STEP);
        assert!(pair.now < Time::from_secs(5), "no answer");
    }
    pair.network.loses = |_| false;
    run(&mut pair, 1000);
    assert_eq!((pair.ends[1].read, &pair.ends[0].closed), (101_000, &None));
    assert_eq!(pair.ends[0].connection().unwrap().silent_since(), None);
}

/// A long round-trip time makes the first timeout long. The client checks the peer after this
/// timeout, not after two more.
#[test]
fn after_a_long_timeout_the_news_comes_soon() {
    let network =
        Road { loses: |_| false, handshakes: Vec::new(), slow: Duration::from_millis(400) };
    let mut pair = Pair::with(config(), 2, network);
    pair.ends[0].unwritten = 2_000_000;
    run(&mut pair, 4000);
    pair.network.slow = Duration::ZERO;
    restart(&mut pair);
    pair.ends[0].unwritten = 1000;
    let took = until_closed(&mut pair, 8000).expect("it is noticed");
    // The timeout is 1.5 s.
    assert!(took < Duration::from_millis(2400), "{took:?}");
}

/// The peer opens a path and crashes before it has proven its address on this path. The challenge
/// is repeated at shorter intervals than the backed-off timeout; the repetitions must not postpone
/// the timeout for ever.
#[test]
fn a_path_that_was_never_proven_hides_no_silence() {
    let network = Road { loses: |_| false, handshakes: Vec::new(), slow: Duration::ZERO };
    let mut pair = Pair::with(config(), 2, network);
    pair.ends[0].unwritten = 100_000;
    let paths = |pair: &mut Pair<Road>| {
        pair.ends[1].connection().map_or(0, |connection| connection.stats().paths.len())
    };
    while paths(&mut pair) < 2 {
        assert!(pair.now < Time::from_millis(1000), "the second path does not come");
        pair.round(STEP);
    }
    pair.network.loses = |_| true;
    // Packets in flight arrive.
    run(&mut pair, 100);
    let now = pair.now;
    pair.ends[1].connection().unwrap().ask_for_signs(now);
    run(&mut pair, 1300);
    assert!(pair.ends[1].connection().unwrap().silent_since().is_some(), "it is not noticed");
}

#[test]
fn an_outage_breaks_nothing() {
    let mut pair = pair();
    pair.network.loses = |_| true;
    pair.ends[0].unwritten = 1_000_000;
    run(&mut pair, 30_000);
    assert!(pair.ends[0].connection().unwrap().silent_since().is_some());
    pair.network.loses = |_| false;
    run(&mut pair, 3000);
    assert_eq!(pair.ends[1].read, 1_100_000, "the connection goes on");
    assert_eq!(pair.ends[0].closed, None);
    assert_eq!(pair.ends[0].connection().unwrap().silent_since(), None);
    assert_eq!(pair.ends[1].endpoint.handles().count(), 1);
}

/// An attacker drops every packet of the connection and lets handshakes pass. This must have no
/// effect, because the server answers that it still has the connection.
#[test]
fn who_drops_packets_makes_nobody_believe_in_a_restart() {
    let mut pair = pair();
    pair.network.loses = |sent| ![INITIATION, RESPONSE].contains(&sent.payload[0]);
    pair.ends[0].unwritten = 1000;
    run(&mut pair, 60_000);
    let checks = pair.network.handshakes.iter().filter(|(side, _)| *side == 1).count();
    assert!(checks > 10, "{checks} answers");
    pair.network.loses = |_| false;
    run(&mut pair, 2000);
    assert_eq!((pair.ends[1].read, &pair.ends[0].closed), (101_000, &None));
}

/// Copies of all earlier handshake messages, sent to a silent client and to the server, must have
/// no effect.
#[test]
fn who_repeats_old_handshakes_makes_nobody_believe_in_a_restart() {
    let mut pair = pair();
    // A real restart first, so that there is an answer "unknown" to copy.
    restart(&mut pair);
    pair.ends[0].unwritten = 1000;
    until_closed(&mut pair, 5000).expect("it is noticed");
    let end = &mut pair.ends[0];
    (end.closed, end.handle, end.stream, end.written) = (None, None, None, 0);
    pair.ends[1].read = 0;
    pair.connect(2);
    run(&mut pair, 1000);
    assert!(pair.ends[0].closed.is_none() && pair.ends[0].connection().is_some());
    pair.network.loses = |_| true;
    pair.ends[0].unwritten = 1000;
    run(&mut pair, 10_000);
    assert!(pair.ends[0].connection().unwrap().silent_since().is_some());
    let known = pair.network.handshakes.clone();
    for _ in 0..20 {
        for (side, bytes) in &known {
            let from = pair.network.source(*side, 0);
            pair.inject(1 - side, 0, from, Ecn::NotEct, &mut bytes.clone());
        }
        run(&mut pair, 100);
    }
    assert_eq!(pair.ends[0].closed, None);
    pair.network.loses = |_| false;
    run(&mut pair, 2000);
    assert_eq!(pair.ends[0].closed, None);
}

/// Under heavy loss, sometimes no packet arrives for a whole timeout, and the peer is checked. Such
/// checks must be rare.
#[test]
fn a_peer_that_is_heard_is_seldom_asked() {
    let mut pair = pair();
    // One path is dead, and the other loses a third of its packets.
    pair.network.loses = |sent| {
        let byte = sent.payload.last().copied().unwrap_or_default();
        sent.path == 1 || byte % 3 == 0
    };
    pair.network.handshakes.clear();
    let mut longest = Duration::ZERO;
    for _ in 0..2000 {
        pair.ends[0].unwritten += 5000;
        run(&mut pair, 10);
        let now = pair.now;
        longest = longest.max(now.since(pair.ends[0].connection().unwrap().last_heard()));
    }
    let asked = pair.network.handshakes.iter().filter(|(side, _)| *side == 0).count();
    // Two copies of each message, and more if one was lost.
    assert!(asked <= 50, "{asked} messages in 20 s, with silence of {longest:?} at most");
    assert_eq!(pair.ends[0].closed, None);
    // The last check may not be answered yet.
    pair.network.loses = |_| false;
    run(&mut pair, 1000);
    let due = pair.ends[0].endpoint.next_timeout();
    assert!(due.is_some_and(|(_, reason)| reason != TimeoutReason::Handshake), "{due:?}");
}

/// With a loss of one packet in twenty, the peer must not be checked.
#[test]
fn nothing_is_asked_of_a_peer_that_is_heard() {
    let mut pair = pair();
    pair.network.loses = |sent| sent.payload.last().copied().unwrap_or_default() % 20 == 0;
    pair.network.handshakes.clear();
    for _ in 0..2000 {
        pair.ends[0].unwritten += 5000;
        run(&mut pair, 10);
    }
    assert!(pair.network.handshakes.is_empty(), "{} messages", pair.network.handshakes.len());
}

/// Packets that the peer sent before the probe do not count as an answer to it, even if they arrive
/// late.
#[test]
fn only_an_answer_is_a_sign_of_life() {
    let mut pair = pair();
    pair.ends[0].unwritten = 10_000_000;
    run(&mut pair, 100);
    let now = pair.now;
    let server = pair.ends[1].connection().unwrap();
    server.ask_for_signs(now);
    let before = server.last_heard();
    // The client has gone, but its packets are still in flight.
    pair.network.loses = |sent| sent.side == 0 || sent.payload[0] == INITIATION;
    run(&mut pair, 15);
    let server = pair.ends[1].connection().unwrap();
    assert!(server.last_heard() > before && !server.has_given_sign());
    pair.network.loses = |_| false;
    run(&mut pair, 1000);
    assert!(pair.ends[1].connection().unwrap().has_given_sign());
}
