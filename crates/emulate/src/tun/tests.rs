//! Compares what sockets in the emulator's namespaces measure with calculated values. The tests
//! need root and TUN devices; a test that lacks them prints why it is skipped.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anabranch_sim::link::{Link, LinkConfig, LinkOutput};
use anabranch_sim::scenario::{EventPlan, NetworkPlan};
use anabranch_types::{Ecn, Time};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};

use super::*;
use crate::ingress::Ingress;
use crate::path::PathConfig;
use crate::socket::Socket;

/// Bytes that IPv4 and UDP headers add to a payload.
const HEADER: usize = 28;

/// Each test holds this lock so that the tests run one at a time, since all of them measure time.
static ALONE: Mutex<()> = Mutex::new(());

fn plan(paths: &[&str]) -> NetworkPlan {
    NetworkPlan::parallel(paths.iter().map(|text| {
        let path: PathConfig = text.parse().expect("a valid path");
        (path.forward.name.clone(), [path.forward, path.reverse])
    }))
}

/// Whether namespaces can be made here; if not, prints why.
fn can_emulate() -> bool {
    let why = if !geteuid().is_root() {
        "network namespaces need root"
    } else if !Path::new("/dev/net/tun").exists() {
        "the kernel has no TUN devices"
    } else {
        return true;
    };
    println!("skipped: {why}");
    false
}

fn start(plan: &NetworkPlan) -> Emulator {
    Emulator::start(plan, 1, Vec::new()).expect("an emulator")
}

/// A socket of the client or the server on a path.
fn socket(emulator: &Emulator, side: Side, path: usize) -> UdpSocket {
    let ends = &emulator.paths()[path];
    let addresses = if side == Side::Client { ends.client } else { ends.server };
    socket_at(emulator, side, addresses.v4.into())
}

fn socket_at(emulator: &Emulator, side: Side, address: IpAddr) -> UdpSocket {
    let bind = move |_: &Inside| UdpSocket::bind((address, 0));
    let socket = emulator.space(side).run(bind).expect("a thread").expect("a free port");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    setsockopt(&socket, RcvBufForce, &(16 << 20)).expect("a large buffer");
    socket
}

#[allow(clippy::disallowed_methods, reason = "real time is what these tests are about")]
fn clock() -> Instant {
    Instant::now()
}

/// Receives until no datagram has come for half a second. Returns each datagram's number and time
/// of arrival.
fn receive(socket: &UdpSocket) -> Vec<(u32, Instant)> {
    let mut buffer = [0; 2048];
    let mut got = Vec::new();
    while let Ok(length) = socket.recv(&mut buffer) {
        assert!(length >= 4);
        got.push((u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]), clock()));
    }
    got
}

fn send(socket: &UdpSocket, to: SocketAddr, numbers: core::ops::Range<u32>, length: usize) {
    let mut payload = vec![0; length];
    for number in numbers {
        payload[..4].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&payload, to).expect("sent");
    }
}

/// Panics unless one of ten attempts meets the expectation. A busy machine sometimes reads a burst
/// late, which changes the times of its packets.
fn eventually(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut why = String::new();
    for _ in 0..10 {
        match attempt() {
            Ok(()) => return,
            Err(error) => why = error,
        }
    }
    panic!("{why}");
}

/// Sends `count` datagrams of 1000 bytes at once. Returns the time at which each arrived.
fn burst(from: &UdpSocket, to: &UdpSocket, count: u32) -> Result<Vec<Instant>, String> {
    let address = to.local_addr().expect("bound");
    let got = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(to));
        send(from, address, 0..count, 1000);
        receiver.join().expect("received")
    });
    if got.len() != count as usize {
        return Err(format!("{} of {count} datagrams", got.len()));
    }
    Ok(got.into_iter().map(|(_, at)| at).collect())
}

/// Checks that the datagrams of a [`burst`] arrived at the rate `expected`, Mb/s.
fn close_to_rate(arrived: &[Instant], expected: f64) -> Result<(), String> {
    let (first, last) = (arrived[0], arrived[arrived.len() - 1]);
    let bits = ((arrived.len() - 1) * (1000 + HEADER) * 8) as f64;
    close("rate, Mb/s", bits / last.duration_since(first).as_secs_f64() / 1e6, expected)
}

fn close(what: &str, measured: f64, expected: f64) -> Result<(), String> {
    println!("{what}: {measured} measured, {expected} expected");
    let off = (measured / expected - 1.0).abs();
    if off <= 0.005 { Ok(()) } else { Err(format!("{what}: {measured} instead of {expected}")) }
}

#[test]
fn rates_are_met_both_ways() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    eventually(|| {
        let emulator = start(&plan(&["name=a,rate=20mbit,delay=10ms,buffer=8MB"]));
        let (client, server) =
            (socket(&emulator, Side::Client, 0), socket(&emulator, Side::Server, 0));
        for (from, to) in [(&client, &server), (&server, &client)] {
            close_to_rate(&burst(from, to, 2000)?, 20.0)?;
        }
        Ok(())
    });
}

#[test]
fn rates_follow_their_schedule() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    eventually(|| {
        // The link sends 2432 packets in the first second.
        let emulator = start(&plan(&["name=a,rate=20mbit/5mbit@1s,delay=10ms,buffer=8MB"]));
        let client = socket(&emulator, Side::Client, 0);
        let server = socket(&emulator, Side::Server, 0);
        let arrived = burst(&client, &server, 3300)?;
        close_to_rate(&arrived[500..=2000], 20.0)?;
        close_to_rate(&arrived[2700..], 5.0)
    });
}

#[test]
fn delays_are_met() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    eventually(|| {
        let emulator = start(&plan(&["name=a,rate=8mbit,delay=99ms"]));
        let (client, server) =
            (socket(&emulator, Side::Client, 0), socket(&emulator, Side::Server, 0));
        let to = server.local_addr().expect("bound");
        let mut delays: Vec<f64> = (0..50)
            .map(|number| {
                let sent = clock();
                send(&client, to, number..number + 1, 1000 - HEADER);
                let mut buffer = [0; 2048];
                server.recv(&mut buffer).expect("received");
                sent.elapsed().as_secs_f64()
            })
            .collect();
        delays.sort_by(f64::total_cmp);
        // Sending takes 1 ms, and the delay is 99 ms.
        close("median delay, s", delays[25], 0.100)
    });
}

#[test]
fn losses_are_the_simulated_ones() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    const COUNT: u32 = 4_000;
    let text = "name=a,rate=100mbit,delay=1ms,loss=20%,buffer=8MB";
    let config: LinkConfig = text.parse().expect("valid");
    let mut link = Link::new(&config, 1, "a").expect("valid");
    for number in 0..COUNT {
        link.enqueue(Time::ZERO, 128, Ecn::NotEct, number).expect("room for all");
    }
    let mut expected = Vec::new();
    link.advance(Time::from_secs(10), |output| {
        if let LinkOutput::Delivered(delivery) = output {
            expected.push(delivery.token);
        }
    });
    let emulator = start(&plan(&[text]));
    let (client, server) = (socket(&emulator, Side::Client, 0), socket(&emulator, Side::Server, 0));
    send(&client, server.local_addr().expect("bound"), 0..COUNT, 100);
    let got: Vec<u32> = receive(&server).iter().map(|(number, _)| *number).collect();
    assert_eq!(got, expected);
    let lost = f64::from(COUNT) - got.len() as f64;
    // The tolerance is five standard deviations of the binomial distribution.
    assert!((lost / f64::from(COUNT) - 0.2).abs() < 0.032, "{lost}");
}

#[test]
fn queues_have_their_limits() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    // At 80 kb/s a packet of 1 kB takes 100 ms to send, so the whole burst arrives during the first
    // packet.
    for (buffer, waiting) in [("40p", 40), ("25kB", 25)] {
        let path = format!("name=a,rate=80kbit,delay=1ms,buffer={buffer}");
        let emulator = start(&plan(&[&path]));
        let (client, server) =
            (socket(&emulator, Side::Client, 0), socket(&emulator, Side::Server, 0));
        send(&client, server.local_addr().expect("bound"), 0..200, 1000 - HEADER);
        // One packet more arrives than the buffer holds, since the packet being sent is not in the
        // buffer.
        let got: Vec<u32> = receive(&server).iter().map(|(number, _)| *number).collect();
        assert_eq!(got, (0..waiting + 1).collect::<Vec<u32>>(), "{buffer}");
        let link = emulator.links()[0].link;
        assert_eq!((link.packets_in, link.dropped_full), (200, 200 - u64::from(waiting) - 1));
        assert_eq!(emulator.unread().expect("told"), 0);
    }
}

#[test]
fn congestion_marks_are_in_the_headers() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    let emulator = start(&plan(&["name=a,rate=4mbit,delay=5ms,buffer=80p,ecn"]));
    let far = Socket::new(socket(&emulator, Side::Server, 0)).expect("a socket");
    let near = Socket::new(socket(&emulator, Side::Client, 0)).expect("a socket");
    let to = far.udp.local_addr().expect("bound");
    let mut egress = crate::egress::Egress::new();
    for _ in 0..20 {
        for _ in 0..60 {
            egress.push(&near, to, Ecn::Ect0, &[0; 1000]);
        }
        egress.flush(&near, to);
        std::thread::sleep(Duration::from_millis(50));
    }
    let (mut ingress, mut seen) = (Ingress::new(), [0; 4]);
    std::thread::sleep(Duration::from_millis(300));
    while seen.iter().sum::<u64>() < emulator.links()[0].link.packets_delivered {
        let count = |datagram: crate::ingress::Received<'_>| {
            seen[usize::from(datagram.ecn.bits())] += 1;
        };
        ingress.receive(&far, count).expect("readable");
    }
    let marks = emulator.links()[0].link.ecn_marks;
    assert!(marks > 10, "{marks}");
    assert_eq!((seen[usize::from(Ecn::Ce.bits())], seen[0]), (marks, 0));
}

#[test]
fn sources_choose_the_path_and_answers_return_on_it() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    let paths = ["name=a,rate=10mbit,delay=1ms", "name=b,rate=10mbit,delay=1ms"];
    let emulator = start(&plan(&paths));
    let address = |ends: Addresses, v6: bool| -> Option<IpAddr> {
        if v6 { ends.v6.map(IpAddr::from) } else { Some(ends.v4.into()) }
    };
    for (number, v6) in [false, true].into_iter().flat_map(|v6| (0..4).map(move |it| (it, v6))) {
        let (path, server) = (number / 2, number % 2);
        let ends = emulator.paths();
        let (Some(from), Some(to)) =
            (address(ends[path].client, v6), address(ends[server].server, v6))
        else {
            println!("skipped: this kernel has no IPv6");
            return;
        };
        let before = emulator.links();
        let client = socket_at(&emulator, Side::Client, from);
        let server = socket_at(&emulator, Side::Server, to);
        client.send_to(&[1; 100], server.local_addr().expect("bound")).expect("sent");
        let (_, from) = server.recv_from(&mut [0; 200]).expect("received");
        assert_eq!(from, client.local_addr().expect("bound"));
        server.send_to(&[2; 100], from).expect("sent");
        client.recv_from(&mut [0; 200]).expect("answered");
        let moved = |link: usize| {
            let (now, before) = (emulator.links()[link].link, before[link].link);
            let bytes = now.bytes_delivered - before.bytes_delivered;
            (now.packets_delivered - before.packets_delivered, bytes)
        };
        let (one, none) = ((1, if v6 { 148 } else { 128 }), (0, 0));
        let expected = if path == 0 { [one, one, none, none] } else { [none, none, one, one] };
        assert_eq!([0, 1, 2, 3].map(moved), expected, "{from}");
    }
}

#[test]
fn the_kernel_sends_nothing_of_its_own() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    let emulator = start(&plan(&["name=a,rate=10mbit,delay=1ms"]));
    // Router solicitations and multicast reports would come within a second of the start.
    std::thread::sleep(Duration::from_millis(2_500));
    let packets: Vec<u64> = emulator.links().iter().map(|it| it.link.packets_in).collect();
    assert_eq!(packets, [0, 0]);
}

/// During duplicate address detection, nothing can be bound to an address.
#[test]
fn ipv6_addresses_are_nobody_elses() {
    const NODAD: u32 = 0x02;
    const TENTATIVE: u32 = 0x40;
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    let emulator = start(&plan(&["name=a,rate=1mbit,delay=1ms", "name=b,rate=1mbit,delay=1ms"]));
    let with_ipv6 = emulator.paths().iter().filter(|ends| ends.client.v6.is_some()).count();
    for side in [Side::Client, Side::Server] {
        let read = |_: &Inside| std::fs::read_to_string("/proc/thread-self/net/if_inet6");
        let text = emulator.space(side).run(read).expect("a thread").unwrap_or_default();
        // Each line: the address, then index, prefix length, scope and flags in hexadecimal, and the name.
        let own = text.lines().filter(|line| line.starts_with("fd77"));
        let flags = own.map(|line| line.split_whitespace().nth(4).expect("flags"));
        let flags: Vec<u32> =
            flags.map(|hex| u32::from_str_radix(hex, 16).expect("hexadecimal")).collect();
        assert_eq!(flags.len(), with_ipv6, "{text}");
        assert!(flags.iter().all(|flags| flags & (NODAD | TENTATIVE) == NODAD), "{text}");
    }
}

#[test]
fn ipv6_packets_are_marked_and_take_their_time() {
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    let emulator = start(&plan(&["name=a,rate=80kbit,delay=1ms,buffer=40p,codel,ecn"]));
    let ends = &emulator.paths()[0];
    let (Some(client), Some(server)) = (ends.client.v6, ends.server.v6) else {
        println!("skipped: this kernel has no IPv6");
        return;
    };
    let near = Socket::new(socket_at(&emulator, Side::Client, client.into())).expect("a socket");
    let far = Socket::new(socket_at(&emulator, Side::Server, server.into())).expect("a socket");
    let to = far.udp.local_addr().expect("bound");
    let mut egress = crate::egress::Egress::new();
    // Each packet has 1000 bytes with the IPv6 and UDP headers and takes 100 ms to send.
    for _ in 0..20 {
        egress.push(&near, to, Ecn::Ect0, &[0; 1000 - 48]);
    }
    egress.flush(&near, to);
    let start = clock();
    let (mut ingress, mut seen) = (Ingress::new(), [0_u64; 4]);
    while seen.iter().sum::<u64>() < 20 && start.elapsed() < Duration::from_secs(10) {
        let count = |datagram: crate::ingress::Received<'_>| {
            seen[usize::from(datagram.ecn.bits())] += 1;
        };
        let _ = ingress.receive(&far, count);
        std::thread::sleep(Duration::from_millis(2));
    }
    let elapsed = start.elapsed().as_secs_f64();
    assert!((1.9..3.0).contains(&elapsed), "{elapsed} s for what takes 2");
    let marks = emulator.links()[0].link.ecn_marks;
    assert!(marks > 0);
    assert_eq!((seen[usize::from(Ecn::Ce.bits())], seen[0]), (marks, 0));
    assert_eq!(emulator.links()[0].link.bytes_delivered, 20_000);
}

#[test]
fn interfaces_go_come_and_move() {
    use anabranch_sim::endpoint::PathChange::{Down, Move, Up};
    let _alone = ALONE.lock();
    if !can_emulate() {
        return;
    }
    let mut plan = plan(&["name=a,rate=10mbit,delay=1ms", "name=b,rate=10mbit,delay=1ms"]);
    for (at, change) in [(300, Down), (800, Up), (1300, Move)] {
        let at = Duration::from_millis(at);
        plan.events.push(EventPlan { at, path: "b".to_owned(), change });
    }
    let emulator = start(&plan);
    let client = socket(&emulator, Side::Client, 1);
    let server = socket(&emulator, Side::Server, 0);
    let to = server.local_addr().expect("bound");
    let until = |milliseconds: u64| {
        let wait = Time::from_millis(milliseconds).since(emulator.now());
        std::thread::sleep(wait);
    };
    let arrives =
        || client.send_to(&[1; 100], to).is_ok() && server.recv_from(&mut [0; 200]).is_ok();
    assert!(arrives());
    until(400);
    assert!(!arrives());
    until(1000);
    assert!(arrives());
    until(1500);
    assert!(!arrives(), "its address is gone");
    let client = socket_at(&emulator, Side::Client, "10.77.2.3".parse().expect("an address"));
    client.send_to(&[1; 100], to).expect("sent");
    assert!(server.recv_from(&mut [0; 200]).is_ok());
    if let Some(far) = emulator.paths()[0].server.v6 {
        let address = "fd77:0:0:2::3".parse().expect("an address");
        let client = socket_at(&emulator, Side::Client, address);
        let server = socket_at(&emulator, Side::Server, far.into());
        client.send_to(&[1; 100], server.local_addr().expect("bound")).expect("sent");
        assert!(server.recv_from(&mut [0; 200]).is_ok());
    }
    assert_eq!(emulator.failed_event(), None);
}

#[test]
fn what_cannot_be_emulated_is_refused() {
    let refused = |plan: &NetworkPlan| Emulator::start(plan, 1, Vec::new()).map(drop).unwrap_err();
    assert!(matches!(refused(&NetworkPlan::default()), EmulatorError::NoPath));
    let long = plan(&["name=sixteen-letters-,rate=1mbit,delay=1ms"]);
    assert!(matches!(refused(&long), EmulatorError::Name(_)));
    let mut one_way = plan(&["name=a,rate=1mbit,delay=1ms"]);
    one_way.paths[0].back.clear();
    assert!(matches!(refused(&one_way), EmulatorError::NoWayBack(_)));
    let mut faulty = plan(&["name=a,rate=1mbit,delay=1ms"]);
    faulty.links[0].config.faults.duplicate = 0.1;
    assert!(matches!(refused(&faulty), EmulatorError::Faults(_)));
    let mut broken = plan(&["name=a,rate=1mbit,delay=1ms"]);
    broken.links[1].config.delay = Duration::from_secs(3_600);
    assert!(matches!(refused(&broken), EmulatorError::Link { .. }));
    let many: Vec<String> = (0..251).map(|n| format!("name=p{n},rate=1mbit,delay=1ms")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(matches!(refused(&plan(&many)), EmulatorError::TooMany(251)));
}
