//! `connect -D` as SOCKS5 clients use it: processes and sockets on loopback addresses.
#![expect(
    clippy::disallowed_methods,
    reason = "clients that say nothing are timed by the clock on the wall"
)]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/echo.rs"]
mod echo;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod tunnel;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use echo::echo;
use tunnel::{PATIENCE, Running, free_port, get, serving};

/// A client's greeting, which allows no authentication, and the answer to it.
const GREETING: [u8; 3] = [5, 1, 0];
const WELCOME: [u8; 2] = [5, 0];

/// A server, and a client of it that accepts SOCKS clients.
struct Proxy {
    _server: Running,
    client: Running,
    address: String,
    _directory: tempfile::TempDir,
}

impl Proxy {
    fn start(serve: &[&str], connect: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (server, to, public, key) = serving(directory.path(), serve);
        let mut args = vec!["connect", &to, "--peer", &public, "--key", &key, "-D", "0", "--json"];
        args.extend(connect);
        let client = Running::start(&args);
        let address = client.wait_for("listening", "address").as_str().unwrap().to_owned();
        Proxy { _server: server, client, address, _directory: directory }
    }

    fn connect(&self) -> TcpStream {
        let tcp = TcpStream::connect(&self.address).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        tcp
    }

    /// Sends a request after the greeting; returns the connection and the number in the reply.
    fn request(&self, request: &[u8]) -> (TcpStream, u8) {
        let mut tcp = self.connect();
        // The request is sent before the answer to the greeting, as some clients do.
        tcp.write_all(&[&GREETING[..], request].concat()).unwrap();
        let mut answer = [0; 12];
        tcp.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..2], WELCOME);
        assert_eq!(answer[2..], [5, answer[3], 0, 1, 0, 0, 0, 0, 0, 0]);
        (tcp, answer[3])
    }

    /// Checks that bytes go to the target and come back, even after this side has ended its
    /// direction.
    fn carries(&self, request: &[u8]) {
        let (mut tcp, reply) = self.request(request);
        assert_eq!(reply, 0);
        tcp.write_all(b"there and back").unwrap();
        tcp.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(tcp), b"there and back");
    }

    /// Checks that the request is refused with this number, and that the connection ends without a
    /// reset.
    fn refuses(&self, request: &[u8], number: u8) {
        let (tcp, reply) = self.request(request);
        assert_eq!((reply, rest(tcp)), (number, Vec::new()), "{request:?}");
    }
}

fn rest(mut tcp: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    tcp.read_to_end(&mut bytes).unwrap();
    bytes
}

fn to_ipv4(address: [u8; 4], port: u16) -> Vec<u8> {
    [&[5, 1, 0, 1][..], &address, &port.to_be_bytes()].concat()
}

fn to_ipv6(last: u8, port: u16) -> Vec<u8> {
    [&[5, 1, 0, 4][..], &[0; 15], &[last], &port.to_be_bytes()].concat()
}

fn to_name(name: &str, port: u16) -> Vec<u8> {
    [&[5, 1, 0, 3, name.len() as u8][..], name.as_bytes(), &port.to_be_bytes()].concat()
}

/// A port of the loopback address that nothing listens on.
fn closed_port() -> u16 {
    free_port().parse::<SocketAddr>().unwrap().port()
}

#[test]
fn clients_reach_targets_by_address_and_by_name_and_figures_are_told() {
    let metrics = free_port();
    let proxy = Proxy::start(&[], &["--metrics", &metrics]);
    let port = echo().port();
    proxy.carries(&to_ipv4([127, 0, 0, 1], port));
    proxy.carries(&to_name("localhost", port));
    proxy.carries(&to_name("127.0.0.1", port));
    assert_eq!(proxy.client.wait_for("closed", "received"), 14);
    proxy.refuses(&to_ipv4([127, 0, 0, 1], closed_port()), 5);
    let figures = String::from_utf8(get(&metrics, "/metrics")).unwrap();
    assert!(figures.contains("anabranch_forwards_opened_total 3\n"), "{figures}");
    assert!(figures.contains("anabranch_forwards_failed_total 1\n"), "{figures}");
}

#[test]
fn clients_reach_targets_by_ipv6_address() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        println!("skipped: this machine has no ::1");
        return;
    };
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut tcp, _) = listener.accept().unwrap();
        std::io::copy(&mut tcp.try_clone().unwrap(), &mut tcp).unwrap();
    });
    Proxy::start(&[], &[]).carries(&to_ipv6(1, port));
}

#[test]
fn refusals_have_their_number_and_their_reason() {
    let closed = closed_port();
    let open = echo().port();
    let only = format!("127.0.0.1:{closed}");
    let proxy = Proxy::start(&["--permit", &only, "--permit", "nosuch.invalid:*"], &[]);
    proxy.refuses(&to_ipv4([127, 0, 0, 1], closed), 5);
    let reason = proxy.client.wait_for("failed", "reason");
    assert!(reason.as_str().unwrap().contains("refused"), "{reason}");
    // The target runs, but is not among what the server permits.
    proxy.refuses(&to_ipv4([127, 0, 0, 1], open), 2);
    let reason = proxy.client.wait_for("failed", "reason");
    assert!(reason.as_str().unwrap().contains("--permit"), "{reason}");
    proxy.refuses(&to_name("localhost", closed), 2);
    proxy.refuses(&to_name("nosuch.invalid", 80), 4);
    proxy.refuses(&to_name("", 80), 4);
    proxy.refuses(&to_ipv4([127, 0, 0, 1], 0), 4);
    let bind = [&[5, 2, 0, 1][..], &[127, 0, 0, 1, 0, 80]].concat();
    proxy.refuses(&bind, 7);
    proxy.refuses(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0], 7);
    // Bytes behind an unknown kind of address do not reset the connection before the answer is read.
    proxy.refuses(&[&[5, 1, 0, 9][..], &[7; 3000]].concat(), 8);
}

/// Data that is not SOCKS5 gets no answer, and a client that insists on a password is told that none is taken. The
/// client's events tell why, and others go on.
#[test]
fn strangers_are_turned_away() {
    let proxy = Proxy::start(&[], &[]);
    let mut answers = Vec::new();
    for (said, part) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], "SOCKS5"),
        (b"\x04\x01\0P\x7f\0\0\x01me\0", "--socks5-hostname"),
        (b"\x05\x01\x02", "password"),
        (&[0xff; 5000], "SOCKS5"),
    ] {
        let mut tcp = proxy.connect();
        tcp.write_all(said).unwrap();
        answers.push(rest(tcp));
        let reason = proxy.client.wait_for("failed", "reason");
        assert!(reason.as_str().unwrap().contains(part), "{reason}");
    }
    assert_eq!(answers, [vec![], vec![], vec![5, 255], vec![]]);
    // A client that leaves in the middle of a message is not worth reporting.
    proxy.connect().write_all(&[5, 9, 0]).unwrap();
    proxy.carries(&to_ipv4([127, 0, 0, 1], echo().port()));
}

/// Clients that send nothing, or stop in the middle, are dropped after ten seconds, and nothing waits for them.
#[test]
fn silent_clients_are_let_go_and_hold_nobody_up() {
    let proxy = Proxy::start(&[], &[]);
    let begun = Instant::now();
    let mut silent: Vec<TcpStream> = (0..50).map(|_| proxy.connect()).collect();
    silent[0].write_all(&GREETING).unwrap();
    silent[1].write_all(&GREETING[..2]).unwrap();
    proxy.carries(&to_ipv4([127, 0, 0, 1], echo().port()));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    for (n, tcp) in silent.into_iter().enumerate() {
        assert_eq!(rest(tcp), if n == 0 { &WELCOME[..] } else { &[] }, "{n}");
    }
    assert!(begun.elapsed() >= Duration::from_secs(9), "{:?}", begun.elapsed());
    let reason = proxy.client.wait_for("failed", "reason");
    assert!(reason.as_str().unwrap().contains("within 10 s"), "{reason}");
}

/// A thousand connections are open at a time, each carries bytes, and none waits for another to end.
#[test]
fn a_thousand_connections_do_not_wait_for_one_another() {
    let proxy = Proxy::start(&["--max-forwarded", "1100"], &[]);
    let request = to_ipv4([127, 0, 0, 1], echo().port());
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..1000 {
        let mut tcp = proxy.connect();
        tcp.write_all(&[&GREETING[..], &request].concat()).unwrap();
        open.push(tcp);
    }
    for tcp in &mut open {
        let mut answer = [0; 12];
        tcp.read_exact(&mut answer).unwrap();
        assert_eq!(answer[3], 0);
    }
    // The newest connection comes first, since the order must not matter.
    for (n, tcp) in open.iter_mut().enumerate().rev() {
        let number = (n as u32).to_be_bytes();
        tcp.write_all(&number).unwrap();
        let mut back = [0; 4];
        tcp.read_exact(&mut back).unwrap();
        assert_eq!(back, number);
    }
    open[0].set_nonblocking(true).unwrap();
    assert_eq!(open[0].read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn curl_loads_a_page_by_name() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("skipped: this machine has no curl");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut tcp, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let count = tcp.read(&mut request).unwrap();
        assert!(request[..count].starts_with(b"GET /page"));
        tcp.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    });
    let proxy = Proxy::start(&[], &[]);
    let load = |port: u16| {
        let url = format!("http://localhost:{port}/page");
        // Without `--noproxy`, a proxy of the environment would be used, or none for localhost.
        let usual = ["-sS", "--noproxy", "", "--max-time", "40", "--socks5-hostname"];
        Command::new("curl").args(usual).args([&proxy.address, &url]).output().unwrap()
    };
    let output = load(port);
    assert_eq!(output.stdout, b"hello", "{}", String::from_utf8_lossy(&output.stderr));
    let output = load(closed_port());
    assert_eq!(output.status.code(), Some(97), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_names_where_clients_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, to, public, key) = serving(directory.path(), &[]);
    let file = directory.path().join("connect.toml");
    let text = format!(
        "[interface]\nprivate-key-file = \"{key}\"\n[[peer]]\npublic-key = \"{public}\"\n\
         endpoint = \"{to}\"\ndynamic-forward = [\"0\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    let client = Running::start(&["connect", "--config", file.to_str().unwrap(), "--json"]);
    let address: SocketAddr =
        client.wait_for("listening", "address").as_str().unwrap().parse().unwrap();
    assert!(address.ip().is_loopback(), "{address}");
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.write_all(&GREETING).unwrap();
    let mut answer = [0; 2];
    tcp.read_exact(&mut answer).unwrap();
    assert_eq!(answer, WELCOME);
}
