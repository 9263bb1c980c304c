//! UDP ASSOCIATE of `connect -D` as SOCKS5 clients see it: processes and sockets on loopback addresses.
#![expect(
    clippy::disallowed_methods,
    reason = "what never comes is waited for by the clock on the wall"
)]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod tunnel;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use tunnel::{PATIENCE, Running, free_port, get, serving};

const ASSOCIATE: [u8; 13] = [5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
/// Time within which a datagram that must not come would arrive.
const WAIT: Duration = Duration::from_millis(500);

/// A server, and a client of it that accepts SOCKS clients.
struct Proxy {
    server: Running,
    client: Running,
    address: String,
    metrics: String,
    _directory: tempfile::TempDir,
}

impl Proxy {
    fn start(permit_udp: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let extra = ["--permit-udp", permit_udp, "--permit", "any"];
        let (server, to, public, key) = serving(directory.path(), &extra);
        let metrics = free_port();
        let mut args = vec!["connect", &to, "--peer", &public, "--key", &key, "--json"];
        args.extend(["-D", "0", "--metrics", &metrics]);
        let client = Running::start(&args);
        let address = client.wait_for("listening", "address").as_str().unwrap().to_owned();
        Proxy { server, client, address, metrics, _directory: directory }
    }

    /// Asks for an association with the port that it will send from, 0 for any. Also returns the number in the reply.
    fn ask(&self, port: u16) -> (TcpStream, u8, SocketAddr) {
        let mut tcp = TcpStream::connect(&self.address).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        tcp.write_all(&[&ASSOCIATE[..11], &port.to_be_bytes()].concat()).unwrap();
        let mut answer = [0; 12];
        tcp.read_exact(&mut answer).unwrap();
        let [5, 0, 5, reply, 0, 1, a, b, c, d, high, low] = answer else { panic!("{answer:?}") };
        (tcp, reply, ([a, b, c, d], u16::from_be_bytes([high, low])).into())
    }

    fn associate(&self) -> Association {
        let (tcp, reply, relay) = self.ask(0);
        assert!(reply == 0 && relay.ip().is_loopback() && relay.port() > 0, "{reply} {relay}");
        Association { tcp, relay, socket: socket("127.0.0.1:0") }
    }

    /// The value of a metric of the place where SOCKS clients are accepted.
    fn figure(&self, name: &str, further: &str) -> u64 {
        let text = String::from_utf8(get(&self.metrics, "/metrics")).unwrap();
        let name = format!("anabranch_{name}{{forward=\"127.0.0.1:0\"{further}}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
    }

    fn invalid(&self) -> u64 {
        self.figure("udp_dropped_total", ",reason=\"invalid\"")
    }
}

fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(WAIT)).unwrap();
    socket
}

struct Association {
    tcp: TcpStream,
    relay: SocketAddr,
    socket: UdpSocket,
}

impl Association {
    fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.relay).unwrap();
    }

    /// The next datagram from the relay, if one comes.
    fn get(&self) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        let (len, from) = self.socket.recv_from(&mut buffer).ok()?;
        assert_eq!(from, self.relay);
        Some(buffer[..len].to_vec())
    }

    /// The answer to a datagram, which is sent again where it was lost.
    fn asked(&self, datagram: &[u8]) -> Vec<u8> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            self.send(datagram);
            if let Some(answer) = self.get() {
                return answer;
            }
        }
        panic!("nothing comes back");
    }
}

fn to_ipv4(port: u16, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes(), payload].concat()
}

fn to_name(name: &str, port: u16, payload: &[u8]) -> Vec<u8> {
    let name = [&[0, 0, 0, 3, name.len() as u8], name.as_bytes()].concat();
    [&name, &port.to_be_bytes()[..], payload].concat()
}

/// A UDP server that gives back what comes; its port.
fn echo() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_535];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    });
    port
}

#[test]
fn datagrams_go_where_each_says_and_answers_say_whence() {
    let proxy = Proxy::start("loopback");
    let ports = [echo(), echo()];
    let (one, other) = (proxy.associate(), proxy.associate());
    // The first datagram waits until the peer has agreed, and is not lost.
    one.send(&to_ipv4(ports[0], b"first"));
    one.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(one.get().unwrap(), to_ipv4(ports[0], b"first"));
    one.socket.set_read_timeout(Some(WAIT)).unwrap();
    for n in 0..50 {
        for (association, from) in [(&one, 1), (&other, 2)] {
            for port in ports {
                let payload = [from, n, port as u8];
                let datagram = to_ipv4(port, &payload);
                assert_eq!(association.asked(&datagram), datagram);
            }
            // The name is resolved at the far end.
            let named = to_name("localhost", ports[0], &[from, n]);
            assert_eq!(association.asked(&named), named);
        }
    }
    assert_eq!(one.asked(&to_ipv4(ports[1], b"")), to_ipv4(ports[1], b""));
    assert_eq!(proxy.figure("udp_flows", ""), 6);
    assert!(proxy.figure("udp_datagrams_total", ",direction=\"send\"") >= 301);
    assert_eq!(proxy.invalid(), 0);
}

#[test]
fn parts_and_what_is_no_datagram_are_dropped_and_so_is_what_others_send() {
    let proxy = Proxy::start("loopback");
    let port = echo();
    let association = proxy.associate();
    assert_eq!(association.asked(&to_ipv4(port, b"own")), to_ipv4(port, b"own"));
    let mut part = to_ipv4(port, b"part");
    part[2] = 1;
    let wrong =
        [&part[..], b"", b"\0\0\0", b"\0\0\0\x05ab", &to_ipv4(0, b"x"), &to_name("a b", 1, b"x")];
    for datagram in wrong {
        association.send(datagram);
    }
    assert_eq!(association.get(), None);
    assert_eq!(proxy.invalid(), wrong.len() as u64);
    // Another port of the client's address, and another address: neither is the client.
    for address in ["127.0.0.1:0", "127.0.0.2:0"] {
        let stranger = socket(address);
        stranger.send_to(&to_ipv4(port, b"forged"), association.relay).unwrap();
        assert!(stranger.recv(&mut [0; 99]).is_err());
    }
    assert_eq!(association.get(), None);
    assert_eq!(proxy.invalid(), wrong.len() as u64 + 2);
    // If a client has said where it sends from, a datagram from elsewhere is dropped, even if it comes first.
    let said = socket("127.0.0.1:0");
    let (_tcp, reply, relay) = proxy.ask(said.local_addr().unwrap().port());
    assert_eq!(reply, 0);
    socket("127.0.0.1:0").send_to(&to_ipv4(port, b"forged"), relay).unwrap();
    let said = Association { tcp: _tcp, relay, socket: said };
    assert_eq!(said.asked(&to_ipv4(port, b"said")), to_ipv4(port, b"said"));
    assert_eq!(proxy.invalid(), wrong.len() as u64 + 3);
}

#[test]
fn an_association_ends_with_its_connection_and_there_are_so_many_at_most() {
    let proxy = Proxy::start("loopback");
    let port = echo();
    let first = proxy.associate();
    assert_eq!(first.asked(&to_ipv4(port, b"x")), to_ipv4(port, b"x"));
    let mut others: Vec<Association> = (0..63).map(|_| proxy.associate()).collect();
    let (_, reply, _) = proxy.ask(0);
    assert_eq!(reply, 1);
    let reason = proxy.client.wait_for("failed", "reason");
    assert!(reason.as_str().unwrap().contains("64 already"), "{reason}");
    // When an association ends, so does its socket, and another has room.
    let Association { tcp, relay, socket } = first;
    drop(tcp);
    let begun = Instant::now();
    while proxy.figure("udp_flows", "") > 0 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    socket.connect(relay).unwrap();
    let _ = socket.send(&to_ipv4(port, b"late"));
    assert_eq!(socket.recv(&mut [0; 9]).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    others.push(proxy.associate());
    let last = others.last().unwrap();
    assert_eq!(last.asked(&to_ipv4(port, b"y")), to_ipv4(port, b"y"));
}

#[test]
fn the_server_permits_targets_as_for_other_datagrams() {
    let (good, bad) = (echo(), echo());
    let mut proxy = Proxy::start(&format!("localhost:{good}"));
    let association = proxy.associate();
    association.send(&to_ipv4(bad, b"x"));
    let event = proxy.client.event("failed");
    assert_eq!(event["target"], format!("127.0.0.1:{bad}"));
    assert!(event["reason"].as_str().unwrap().contains("--permit-udp"), "{event}");
    assert_eq!(association.get(), None);
    let named = to_name("localhost", good, b"x");
    assert_eq!(association.asked(&named), named);
    // The peer is asked again every two seconds at most, and the refusal is reported once.
    for _ in 0..10 {
        association.send(&to_ipv4(bad, b"x"));
        assert_eq!(association.get(), None);
    }
    proxy.client.child.kill().unwrap();
    let told = proxy.client.rest().into_iter().filter(|event| event["event"] == "failed");
    assert_eq!(told.count(), 0);
    drop(proxy.server);
}

/// If there are too many targets, the flow that has been silent longest makes room. It works again
/// later.
#[test]
fn more_targets_than_may_be_take_turns() {
    let proxy = Proxy::start("loopback");
    let association = proxy.associate();
    let ports: Vec<u16> = (0..70).map(|_| echo()).collect();
    for port in ports.iter().chain(&ports[..5]) {
        let datagram = to_ipv4(*port, b"x");
        assert_eq!(association.asked(&datagram), datagram);
    }
    // Flows that made room end soon after.
    let begun = Instant::now();
    while proxy.figure("udp_flows", "") != 64 {
        assert!(begun.elapsed() < PATIENCE, "{}", proxy.figure("udp_flows", ""));
        std::thread::sleep(Duration::from_millis(20));
    }
}
