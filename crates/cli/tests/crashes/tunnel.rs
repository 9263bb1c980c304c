//! `serve` and `connect`, killed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::process::{Dice, Home, Running, free_address, instants, wait_until};

/// From the return of what was killed until connections are carried again, at most.
const RECOVERED: Duration = Duration::from_secs(2);
/// How long each life is, at most.
const LIFE: Duration = Duration::from_millis(800);

/// A server that gives back what it read.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = tcp.read(&mut bytes) {
                    if tcp.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A TCP address that is free now.
fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Whether a connection to `address` carries bytes there and back, unchanged.
fn carries(address: SocketAddr) -> bool {
    let attempt = || -> std::io::Result<bool> {
        let wait = Duration::from_millis(500);
        let mut tcp = TcpStream::connect_timeout(&address, wait)?;
        tcp.set_read_timeout(Some(wait))?;
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n * 7) as u8).collect();
        tcp.write_all(&bytes)?;
        tcp.shutdown(Shutdown::Write)?;
        let mut back = Vec::new();
        tcp.read_to_end(&mut back)?;
        assert!(bytes.starts_with(&back), "bytes were changed");
        Ok(back == bytes)
    };
    attempt().unwrap_or(false)
}

/// The two programs, with a forward each way.
struct Tunnel {
    home: Home,
    listen: String,
    near: SocketAddr,
    far: SocketAddr,
    echo: SocketAddr,
}

impl Tunnel {
    fn new() -> Self {
        let (near, far) = (free_port(), free_port());
        Tunnel { home: Home::new(), listen: free_address(), near, far, echo: echo() }
    }

    fn serve(&self) -> Running {
        let Home { server, client, .. } = &self.home;
        let mut words = vec!["serve", "--listen", &self.listen, "--key", &server.0, "--json"];
        words.extend(["--allow", &client.1, "--permit-listen", "loopback"]);
        let running = Running::start(self.home.path(), &words);
        running.wait_for("serving");
        running
    }

    fn connect(&self, remote: bool) -> Running {
        let Home { server, client, .. } = &self.home;
        let near = format!("{}:127.0.0.1:{}", self.near.port(), self.echo.port());
        let far = format!("{}:127.0.0.1:{}", self.far.port(), self.echo.port());
        let mut words =
            vec!["connect", &self.listen, "--peer", &server.1, "--key", &client.0, "--json"];
        words.extend(if remote { ["-R", &far] } else { ["-L", &near] });
        Running::start(self.home.path(), &words)
    }
}

/// Waits until connections are carried, within the time allowed.
fn recovers(address: SocketAddr, who: &str) {
    let begun = Instant::now();
    wait_until(|| carries(address), || format!("{who}: nothing is carried"));
    let took = begun.elapsed();
    assert!(took <= RECOVERED, "{who}: it took {took:?}");
    println!("{who}: {took:?}");
}

#[test]
fn a_server_that_was_killed_is_found_by_a_client_that_has_connections() {
    let (tunnel, mut dice) = (Tunnel::new(), Dice::new(1));
    let mut server = tunnel.serve();
    let _client = tunnel.connect(false);
    wait_until(|| carries(tunnel.near), || "nothing is carried".to_owned());
    for _ in 0..instants(3) {
        // One connection is open and one comes and goes when it happens.
        let _open = TcpStream::connect(tunnel.near).unwrap();
        std::thread::sleep(dice.time(LIFE));
        server.kill();
        std::thread::sleep(dice.time(LIFE));
        server = tunnel.serve();
        recovers(tunnel.near, "-L after serve was killed");
    }
}

#[test]
fn a_server_that_was_killed_gets_its_ports_asked_for_by_an_idle_client() {
    let (tunnel, mut dice) = (Tunnel::new(), Dice::new(2));
    let mut server = tunnel.serve();
    let _client = tunnel.connect(true);
    wait_until(|| carries(tunnel.far), || "nothing is carried".to_owned());
    for _ in 0..instants(3) {
        std::thread::sleep(dice.time(LIFE));
        server.kill();
        std::thread::sleep(dice.time(LIFE));
        server = tunnel.serve();
        recovers(tunnel.far, "-R after serve was killed");
    }
}

#[test]
fn a_client_that_was_killed_gets_its_port_back() {
    let (tunnel, mut dice) = (Tunnel::new(), Dice::new(3));
    let _server = tunnel.serve();
    let mut client = tunnel.connect(true);
    wait_until(|| carries(tunnel.far), || "nothing is carried".to_owned());
    for _ in 0..instants(3) {
        std::thread::sleep(dice.time(LIFE));
        client.kill();
        // Somebody who comes meanwhile must not break what follows.
        let _meanwhile = TcpStream::connect(tunnel.far);
        std::thread::sleep(dice.time(LIFE));
        client = tunnel.connect(true);
        recovers(tunnel.far, "-R after connect was killed");
    }
}

#[test]
fn a_client_that_lives_keeps_its_port_from_another_with_its_key() {
    let tunnel = Tunnel::new();
    let _server = tunnel.serve();
    let _first = tunnel.connect(true);
    wait_until(|| carries(tunnel.far), || "nothing is carried".to_owned());
    let second = tunnel.connect(true);
    let failed = second.wait_for("failed");
    assert!(failed["reason"].as_str().unwrap().contains("is alive"), "{failed}");
    assert!(carries(tunnel.far));
}

/// `connect` says within three seconds that nobody answers, and which interface is missing, and ends when asked.
#[test]
fn who_connects_to_nobody_says_so() {
    let tunnel = Tunnel::new();
    let Home { server, client, .. } = &tunnel.home;
    let near = format!("{}:127.0.0.1:9", tunnel.near.port());
    let words = ["connect", &tunnel.listen, "--peer", &server.1, "--key", &client.0, "-L", &near];
    let paths = ["--path", "127.0.0.1", "--path", "nosuch0"];
    let connect = Running::start(tunnel.home.path(), &[&words[..], &paths].concat());
    let begun = Instant::now();
    connect.wait_until_said("waiting for nosuch0");
    connect.wait_until_said(&format!("{} has not answered", tunnel.listen));
    assert!(begun.elapsed() <= Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(!connect.said().contains("gone"), "{}", connect.said());
    let begun = Instant::now();
    connect.interrupt();
    let (code, said) = connect.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
