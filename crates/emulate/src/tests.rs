//! Every test sends to a relay over real sockets on 127.0.0.1.
//!
//! Deadlines are generous, so only a failing test reaches one. Where an overflowing kernel buffer
//! on a busy machine would change the outcome, traffic is paced and the test may try several times.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use anabranch_sim::link::{Link, LinkConfig, LinkOutput};
use anabranch_types::{Ecn, Time};
use nix::sys::socket::{setsockopt, sockopt::RcvBuf};

use super::*;
use crate::egress::Egress;
use crate::ingress::Ingress;
use crate::socket::Socket;

const DEADLINE: Duration = Duration::from_secs(20);

fn relay(paths: &[&str], receiver: SocketAddr) -> Relay {
    let paths: Vec<PathConfig> =
        paths.iter().map(|text| text.parse().expect("a valid path")).collect();
    Relay::start(&paths, receiver, 1).expect("a relay on loopback")
}

fn plain() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    setsockopt(&socket, RcvBuf, &(4 << 20)).expect("a size hint");
    let address = socket.local_addr().expect("bound");
    (socket, address)
}

#[allow(clippy::disallowed_methods, reason = "deadlines of tests over real sockets")]
fn clock() -> Instant {
    Instant::now()
}

/// Waits until `done` returns true; panics after the deadline.
fn wait_until(mut done: impl FnMut() -> bool) {
    let start = clock();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "nothing more happened within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A payload of `len` bytes: the first four are its number, and the rest follow from it.
fn payload(number: u32, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|i| (i as u32 * 31 + number) as u8).collect();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Sends `count` datagrams in small bursts so that no socket buffer overflows.
fn send_paced(socket: &UdpSocket, to: SocketAddr, count: u32, len: usize, per_milli: u32) {
    for n in 0..count {
        socket.send_to(&payload(n, len), to).expect("sent");
        if n % per_milli == per_milli - 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The next `count` datagrams of `socket`, or fewer if none comes for several seconds.
fn receive(socket: &UdpSocket, count: usize) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut buffer = [0; 65_536];
    let mut out = Vec::new();
    let mut silences = 0;
    while out.len() < count && silences < 15 {
        match socket.recv_from(&mut buffer) {
            Ok((len, from)) => {
                out.push((buffer[..len].to_vec(), from));
                silences = 0;
            }
            Err(_) => silences += 1,
        }
    }
    out
}

/// Whether `socket` receives nothing for 200 ms.
fn is_silent(socket: &UdpSocket) -> bool {
    socket.recv_from(&mut [0; 65_536]).is_err()
}

/// Whether one of five attempts succeeds.
fn eventually(mut attempt: impl FnMut() -> bool) -> bool {
    (0..5).any(|_| attempt())
}

/// The length of datagram `n` in the test below.
fn mixed_length(n: u32) -> usize {
    4 + (n as usize * 37) % 1_400
}

/// Sends 500 datagrams from `socket` to `to` and returns what `far` receives.
fn exchange(socket: &UdpSocket, to: SocketAddr, far: &UdpSocket) -> Vec<(Vec<u8>, SocketAddr)> {
    for n in 0..500 {
        socket.send_to(&payload(n, mixed_length(n)), to).expect("sent");
        if n % 20 == 19 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    receive(far, 500)
}

#[test]
fn a_lossless_path_keeps_order_and_content_both_ways() {
    let (receiver, address) = plain();
    let relay = relay(&["rate=200mbit,delay=2ms,buffer=8MB"], address);
    let (sender, _) = plain();
    let expected: Vec<Vec<u8>> = (0..500).map(|n| payload(n, mixed_length(n))).collect();
    let contents = |got: &[(Vec<u8>, SocketAddr)]| -> Vec<Vec<u8>> {
        got.iter().map(|(bytes, _)| bytes.clone()).collect()
    };
    let got = exchange(&sender, relay.addresses()[0], &receiver);
    assert_eq!(contents(&got), expected);
    let replies = exchange(&receiver, got[0].1, &sender);
    assert_eq!(contents(&replies), expected);
    assert!(replies.iter().all(|(_, from)| *from == relay.addresses()[0]));
    let stats = relay.stats();
    let bytes: u64 = (0..500).map(|n| mixed_length(n) as u64 + 28).sum();
    assert_eq!(stats.paths[0].forward.link.bytes_delivered, bytes);
    assert_eq!(stats.paths[0].reverse.link.bytes_delivered, bytes);
}

#[test]
fn empty_and_large_datagrams_pass() {
    let (receiver, address) = plain();
    let relay = relay(&["rate=1gbit,delay=1ms,buffer=1MB"], address);
    let (sender, _) = plain();
    let lengths = [60_000, 0, 1_200, 0, 0, 9_000, 1];
    for len in lengths {
        sender.send_to(&vec![7; len], relay.addresses()[0]).expect("sent");
    }
    let got: Vec<usize> = receive(&receiver, lengths.len()).iter().map(|(b, _)| b.len()).collect();
    assert_eq!(got, lengths);
}

#[test]
fn paths_reach_the_receiver_from_addresses_of_their_own() {
    let (receiver, address) = plain();
    let relay = relay(&["rate=10mbit,delay=1ms", "name=b,rate=10mbit,delay=1ms"], address);
    let (sender, _) = plain();
    for n in [0, 1] {
        sender.send_to(&payload(n, 10), relay.addresses()[n as usize]).expect("sent");
    }
    let got = receive(&receiver, 2);
    assert_eq!(got.len(), 2);
    assert_ne!(got[0].1, got[1].1);
    for (bytes, from) in &got {
        receiver.send_to(bytes, from).expect("sent");
    }
    for (bytes, from) in receive(&sender, 2) {
        assert_eq!(from, relay.addresses()[number(&bytes) as usize]);
    }
    let names: Vec<String> = relay.stats().paths.into_iter().map(|path| path.name).collect();
    assert_eq!(names, ["path0", "b"]);
}

#[test]
fn losses_are_the_simulated_ones() {
    const COUNT: u32 = 3_000;
    let text = "name=lossy,rate=400mbit,delay=1ms,loss=20%,buffer=8MB";
    // The same link as the relay's, run in virtual time.
    let config: LinkConfig = text.parse().expect("valid");
    let mut link = Link::new(&config, 1, "lossy.forward").expect("valid");
    let mut expected = Vec::new();
    for n in 0..COUNT {
        link.enqueue(Time::ZERO, 128, Ecn::NotEct, n).expect("room for all");
    }
    link.advance(Time::from_secs(10), |output| {
        if let LinkOutput::Delivered(delivery) = output {
            expected.push(delivery.token);
        }
    });
    // The tolerance, 110, is five standard deviations of the binomial distribution.
    assert!(expected.len().abs_diff(2_400) < 110, "{}", expected.len());

    assert!(eventually(|| {
        let (receiver, address) = plain();
        let relay = relay(&[text], address);
        let (sender, _) = plain();
        let to = relay.addresses()[0];
        let feeder = std::thread::spawn(move || send_paced(&sender, to, COUNT, 100, 5));
        let got = receive(&receiver, expected.len());
        feeder.join().expect("all sent");
        is_silent(&receiver) && got.iter().map(|(bytes, _)| number(bytes)).eq(expected.clone())
    }));
}

#[test]
fn codepoints_pass_and_a_marking_link_sets_ce() {
    let far = Socket::bind().expect("a free port");
    let near = Socket::bind().expect("a free port");
    let relay = relay(&["rate=1mbit,delay=5ms,buffer=80p,ecn"], far.address);
    let mut egress = Egress::new();
    let codepoints = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    for (n, ecn) in codepoints.into_iter().enumerate() {
        egress.push(&near, relay.addresses()[0], ecn, &payload(n as u32, 40));
    }
    assert_eq!(egress.flush(&near, relay.addresses()[0]), 0);
    let mut got = Vec::new();
    let mut ingress = Ingress::new();
    let mut back = None;
    wait_until(|| {
        ingress
            .receive(&far, |datagram| {
                back = Some(datagram.from);
                got.push((number(datagram.payload), datagram.ecn));
            })
            .expect("readable");
        got.len() >= 4
    });
    assert_eq!(got, (0..).zip(codepoints).collect::<Vec<_>>());

    for (n, ecn) in codepoints.into_iter().enumerate() {
        egress.push(&far, back.expect("something came"), ecn, &payload(n as u32, 40));
    }
    egress.flush(&far, back.expect("something came"));
    got.clear();
    wait_until(|| {
        ingress
            .receive(&near, |datagram| got.push((number(datagram.payload), datagram.ecn)))
            .expect("readable");
        got.len() >= 4
    });
    assert_eq!(got, (0..).zip(codepoints).collect::<Vec<_>>());

    // A packet of 68 B takes half a millisecond to send, so bursts of 40 keep the queue full. Once
    // the average queue exceeds 13 of 80 packets, arriving packets are marked with rising
    // probability.
    let mut marks = 0;
    let mut sent = 0;
    wait_until(|| {
        if sent < 4_000 {
            for _ in 0..40 {
                egress.push(&near, relay.addresses()[0], Ecn::Ect0, &[0; 40]);
            }
            sent += 40;
            egress.flush(&near, relay.addresses()[0]);
        }
        ingress
            .receive(&far, |datagram| marks += u32::from(datagram.ecn == Ecn::Ce))
            .expect("readable");
        marks >= 3
    });
    assert!(relay.stats().paths[0].forward.link.ecn_marks >= 3);
}

#[test]
fn a_run_of_equal_datagrams_keeps_its_codepoint_and_its_borders() {
    let (far, near) = (Socket::bind().expect("a port"), Socket::bind().expect("a port"));
    let (mut egress, mut ingress) = (Egress::new(), Ingress::new());
    let runs =
        [(Ecn::Ect0, 1_200, 50), (Ecn::Ce, 1_200, 3), (Ecn::NotEct, 40, 2), (Ecn::Ect1, 0, 2)];
    let mut expected = Vec::new();
    for (ecn, len, count) in runs {
        for n in 0..count {
            // The last datagram of a run is shorter, like that of a transfer.
            let len = if n + 1 == count { len / 2 } else { len };
            assert_eq!(egress.push(&near, far.address, ecn, &vec![n; len]), 0);
            expected.push((ecn, vec![n; len]));
        }
    }
    assert_eq!(egress.flush(&near, far.address), 0);
    let mut got = Vec::new();
    wait_until(|| {
        ingress
            .receive(&far, |datagram| got.push((datagram.ecn, datagram.payload.to_vec())))
            .expect("readable");
        got.len() >= expected.len()
    });
    assert_eq!(got, expected);
}

#[test]
fn the_configured_rate_is_met_within_five_per_cent() {
    // 2 045 datagrams of 1 228 B on the wire take one second at 20 Mb/s.
    const COUNT: u32 = 2_045;
    assert!(eventually(|| {
        let (receiver, address) = plain();
        let relay = relay(&["rate=20mbit,delay=10ms,buffer=8MB"], address);
        let (sender, _) = plain();
        let to = relay.addresses()[0];
        let feeder = std::thread::spawn(move || send_paced(&sender, to, COUNT, 1_200, 5));
        let first = receive(&receiver, 1);
        let start = clock();
        let rest = receive(&receiver, COUNT as usize - 1);
        let took = start.elapsed().as_secs_f64();
        feeder.join().expect("all sent");
        let rate = rest.len() as f64 * 1_228.0 * 8.0 / took;
        first.len() + rest.len() == COUNT as usize && (rate / 20e6 - 1.0).abs() < 0.05
    }));
}

#[test]
fn capacity_runs_from_the_first_datagram() {
    let (receiver, address) = plain();
    let relay = relay(&["rate=10mbit,delay=1ms,loss=50%", "name=b,rate=6mbit,delay=1ms"], address);
    assert_eq!(relay.stats().first_datagram, None);
    assert_eq!(relay.stats().forward_capacity_bits(), 0.0);
    let (sender, _) = plain();
    sender.send_to(&[0; 100], relay.addresses()[1]).expect("sent");
    assert_eq!(receive(&receiver, 1).len(), 1);
    let stats = relay.stats();
    let first = stats.first_datagram.expect("one arrived");
    let expected = 11e6 * stats.now.since(first).as_secs_f64();
    assert!((stats.forward_capacity_bits() - expected).abs() < 1.0);
    assert!((relay.forward_capacity_bits(first, stats.now) - expected).abs() < 1.0);
}

#[test]
fn strangers_do_not_enter_by_the_back_door() {
    let (receiver, address) = plain();
    let relay = relay(&["rate=10mbit,delay=1ms"], address);
    let (sender, _) = plain();
    sender.send_to(&payload(1, 20), relay.addresses()[0]).expect("sent");
    let got = receive(&receiver, 1);
    let (stranger, _) = plain();
    stranger.send_to(&payload(2, 20), got[0].1).expect("sent");
    receiver.send_to(&payload(3, 20), got[0].1).expect("sent");
    let replies: Vec<u32> = receive(&sender, 1).iter().map(|(b, _)| number(b)).collect();
    assert_eq!(replies, [3]);
    assert!(is_silent(&sender));
}

#[test]
fn a_relay_stops_promptly_whether_idle_or_full() {
    let (receiver, address) = plain();
    drop(relay(&["rate=10mbit,delay=1ms"], address));
    let busy = relay(&["rate=1mbit,delay=30s,buffer=1MB"], address);
    let (sender, _) = plain();
    send_paced(&sender, busy.addresses()[0], 200, 1_000, 50);
    wait_until(|| busy.stats().paths[0].forward.link.packets_in == 200);
    assert!(busy.is_running());
    let start = clock();
    drop(busy);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(is_silent(&receiver));
}

#[test]
fn unusable_arguments_are_refused() {
    let (_socket, address) = plain();
    let path: PathConfig = "name=a,rate=10mbit,delay=1ms".parse().expect("valid");
    let start = |paths: &[PathConfig], to: SocketAddr| Relay::start(paths, to, 1).map(drop);
    assert!(matches!(start(&[], address), Err(RelayError::NoPath)));
    let twice = [path.clone(), path.clone()];
    assert!(matches!(start(&twice, address), Err(RelayError::DuplicateName(name)) if name == "a"));
    let abroad = "192.0.2.1:9".parse().expect("an address");
    let path = [path];
    assert!(matches!(start(&path, abroad), Err(RelayError::ReceiverNotLoopback(_))));
    let mut broken = path.clone();
    broken[0].reverse.delay = Duration::from_secs(3_600);
    assert!(matches!(start(&broken, address), Err(RelayError::Link { .. })));
}

#[test]
fn keys_about_the_reverse_link_change_it_alone() {
    let path: PathConfig =
        "name=a,rate=9mbit,delay=5ms,loss=3%,policer=8mbit/9kB,clumps=2ms-8ms, reverse.loss=1%,reverse.clumps=4ms"
            .parse()
            .expect("a valid path");
    let forward: LinkConfig =
        "name=a,rate=9mbit,delay=5ms,loss=3%,policer=8mbit/9kB,clumps=2ms-8ms"
            .parse()
            .expect("a valid link");
    assert_eq!(path.forward, forward);
    let reverse: LinkConfig =
        "name=a,rate=9mbit,delay=5ms,loss=1%,clumps=4ms".parse().expect("a valid link");
    assert_eq!(path.reverse, reverse);
    for (text, key) in [
        ("rate=9mbit,delay=5ms,reverse.loss=101%", "reverse.loss"),
        ("rate=9mbit,delay=5ms,reverse.colour=red", "reverse.colour"),
        ("rate=9mbit,reverse.delay=5ms", "delay"),
        ("rate=9mbit,delay=5ms,reverse.red,reverse.ecn", "reverse.red"),
        ("rate=trace:no such file,delay=5ms", "rate"),
    ] {
        let error = text.parse::<PathConfig>().expect_err(text);
        assert_eq!(error.key, key, "{text}: {error}");
    }
}

#[test]
fn recorded_links_are_read_from_their_files() {
    let folder = std::env::temp_dir().join(format!("anabranch-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (rate, delay) = (folder.join("rate"), folder.join("delay"));
    std::fs::write(&rate, "4\n4\n10\n").expect("written");
    std::fs::write(&delay, "0 20\n10 40\n").expect("written");
    let text = format!("rate=trace:{},delay=trace:{}", rate.display(), delay.display());
    let path = text.parse::<PathConfig>();
    std::fs::remove_dir_all(&folder).expect("removed");
    let path = path.expect("a valid path");
    assert_eq!(path.forward.rate.at(Time::ZERO).as_bps(), 3_600_000);
    assert_eq!(
        (path.forward.delay, path.reverse.delay),
        (Duration::from_millis(30), path.forward.delay)
    );
}
