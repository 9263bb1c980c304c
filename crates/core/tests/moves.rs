//! Tests of paths that move: the state that they keep, the addresses to which they return, and
//! those that they do not follow.

use std::net::{Ipv4Addr, SocketAddr};

use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_types::Time;
use core::time::Duration;

const STEP: Duration = Duration::from_millis(1);

/// A network of 20 ms each way and 40 Mb/s, with ends that can send from any host.
struct Road {
    free_at: [Time; 2],
    host: u8,
    server: u8,
}

impl Network for Road {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        let free_at = &mut self.free_at[sent.side];
        *free_at = (*free_at).max(sent.now) + Duration::from_nanos(sent.payload.len() as u64 * 200);
        Some((*free_at + Duration::from_millis(20), sent.ecn))
    }

    fn source(&self, side: usize, _path: u32) -> SocketAddr {
        let (host, end) = if side == 0 { (self.host, 1) } else { (self.server, 2) };
        SocketAddr::from((Ipv4Addr::new(10, 0, host, end), 1000))
    }
}

/// Creates a pair whose server sends without end to a client at host 0.
fn download() -> Pair<Road> {
    let network = Road { free_at: [Time::ZERO; 2], host: 0, server: 0 };
    let mut pair = Pair::new(&Profile::named("anabranch").unwrap(), 1, network);
    pair.ends[0].unwritten = 1;
    pair.ends[1].unwritten = u64::MAX;
    run(&mut pair, 1000);
    pair
}

fn run(pair: &mut Pair<Road>, millis: u32) {
    for _ in 0..millis {
        pair.round(STEP);
    }
}

fn remote(pair: &mut Pair<Road>, side: usize) -> SocketAddr {
    pair.ends[side].connection().unwrap().stats().paths[0].address.remote
}

fn cwnd(pair: &mut Pair<Road>) -> u64 {
    pair.ends[1].connection().unwrap().stats().paths[0].cwnd
}

/// Runs until the server sends to the client's current host. Returns the time that this took.
fn follow(pair: &mut Pair<Road>) -> Duration {
    let begun = pair.now;
    let wanted = pair.network.source(0, 0);
    while remote(pair, 1) != wanted {
        assert!(pair.now.since(begun) < Duration::from_secs(5), "the server does not follow");
        pair.round(STEP);
    }
    pair.now.since(begun)
}

#[test]
fn a_client_that_comes_back_finds_its_window() {
    let mut pair = download();
    let before = cwnd(&mut pair);
    pair.network.host = 1;
    assert!(follow(&mut pair) < Duration::from_millis(100));
    assert!(cwnd(&mut pair) < before / 2, "what was learnt of one host does not hold for another");
    pair.round(STEP);
    pair.network.host = 0;
    follow(&mut pair);
    assert!(cwnd(&mut pair) >= before / 2, "{} of {before}", cwnd(&mut pair));
}

#[test]
fn a_server_returns_to_where_the_client_was_when_the_new_address_falls_silent() {
    let mut pair = download();
    pair.network.host = 1;
    follow(&mut pair);
    // No packet in flight shows that the client is back, and the client receives nothing that it
    // could answer.
    pair.network.host = 0;
    pair.flying.clear();
    let took = follow(&mut pair);
    assert!(took < Duration::from_millis(1500), "{took:?}");
    let read = pair.ends[0].read;
    run(&mut pair, 1000);
    assert!(pair.ends[0].read > read + 1_000_000);
}

#[test]
fn a_client_does_not_follow_copies_of_the_servers_packets() {
    let mut pair = download();
    let theirs = remote(&mut pair, 0);
    for _ in 0..200 {
        pair.round(STEP);
        let seen = pair.flying.iter().rev().find(|datagram| datagram.to == 0).cloned();
        let mut copy = seen.unwrap();
        copy.from = SocketAddr::from(([192, 0, 2, 1], 53));
        copy.arrives = pair.now;
        pair.flying.push_front(copy);
    }
    let read = pair.ends[0].read;
    run(&mut pair, 200);
    assert_eq!(remote(&mut pair, 0), theirs);
    assert!(pair.ends[0].read > read + 500_000);
}

/// Moves the server to another host. Returns its new address.
fn server_at(pair: &mut Pair<Road>, host: u8) -> SocketAddr {
    pair.network.server = host;
    pair.network.source(1, 0)
}

#[test]
fn a_client_follows_the_server_where_it_has_said_that_it_is() {
    let mut pair = download();
    pair.network.server = 7;
    let next = pair.network.source(1, 0);
    pair.network.server = 0;
    assert!(pair.ends[1].connection().unwrap().announce_address(next));
    run(&mut pair, 100);
    assert_eq!(pair.ends[0].connection().unwrap().peer_addresses(), [next]);
    server_at(&mut pair, 7);
    run(&mut pair, 200);
    assert_eq!(remote(&mut pair, 0), next);
    let read = pair.ends[0].read;
    run(&mut pair, 500);
    assert!(pair.ends[0].read > read + 1_000_000);
}

#[test]
fn a_client_looks_for_a_silent_server_where_it_may_be() {
    let mut pair = download();
    pair.network.server = 7;
    let next = pair.network.source(1, 0);
    pair.network.server = 0;
    assert!(pair.ends[1].connection().unwrap().announce_address(next));
    run(&mut pair, 100);
    // The server can be reached only at host 7, and sends nothing unasked.
    server_at(&mut pair, 7);
    pair.ends[1].unwritten = 0;
    pair.flying.clear();
    pair.ends[0].unwritten = 1000;
    run(&mut pair, 1500);
    assert_eq!(remote(&mut pair, 0), next);
}

#[test]
fn a_client_does_not_follow_a_server_that_has_said_nothing() {
    let mut pair = download();
    let before = remote(&mut pair, 0);
    server_at(&mut pair, 7);
    run(&mut pair, 1000);
    assert_eq!(remote(&mut pair, 0), before);
}
