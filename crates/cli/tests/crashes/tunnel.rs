//! `serve` and `connect` are killed.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::echo::echo;
use super::place::{Place, Side};
use super::process::{Dice, Home, PATIENCE, Running, instants, wait_until};

/// The longest wait of one attempt to connect.
const ATTEMPT: Duration = Duration::from_millis(500);
/// The longest time from the return of a client until the connections that it had left open end.
const ABANDONED: Duration = Duration::from_secs(15);
/// The longest time for which a program runs, or is gone.
const LIFE: Duration = Duration::from_millis(800);

/// A TCP address that is free now.
pub fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Whether a connection to `address` sends bytes back unchanged. `wait` is the longest wait for
/// each answer.
pub fn carries(address: SocketAddr, wait: Duration) -> bool {
    let attempt = || -> std::io::Result<bool> {
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

/// A forward: who listens, where, and the server beyond it.
#[derive(Clone, Copy)]
struct Forward {
    listener: Side,
    at: SocketAddr,
    echo: SocketAddr,
}

impl Forward {
    fn new(place: &Place, listener: Side, target: Side) -> Self {
        Forward { listener, at: place.on(listener, free_port), echo: place.on(target, echo) }
    }

    /// Argument of `-L` and `-R`.
    fn word(&self) -> String {
        format!("{}:127.0.0.1:{}", self.at.port(), self.echo.port())
    }
}

/// `serve` and `connect`, with a forward each way.
struct Tunnel<'a> {
    place: &'a Place,
    home: Home,
    listen: String,
    near: Forward,
    far: Forward,
}

impl<'a> Tunnel<'a> {
    fn new(place: &'a Place) -> Self {
        let near = Forward::new(place, Side::Client, Side::Server);
        let far = Forward::new(place, Side::Server, Side::Client);
        Tunnel { place, home: Home::new(), listen: place.free_address(), near, far }
    }

    fn serve(&self) -> Running {
        let Home { server, client, .. } = &self.home;
        let mut words = vec!["serve", "--listen", &self.listen, "--key", &server.0, "--json"];
        words.extend(["--allow", &client.1, "--permit-listen", "loopback"]);
        let running = self.place.start(Side::Server, self.home.path(), &words);
        running.wait_for("serving");
        running
    }

    fn connect(&self, remote: bool) -> Running {
        let Home { server, client, .. } = &self.home;
        let (near, far) = (self.near.word(), self.far.word());
        let mut words =
            vec!["connect", &self.listen, "--peer", &server.1, "--key", &client.0, "--json"];
        words.extend(if remote { ["-R", &far] } else { ["-L", &near] });
        self.place.start(Side::Client, self.home.path(), &words)
    }

    fn carries(&self, forward: &Forward) -> bool {
        self.place.on(forward.listener, || carries(forward.at, ATTEMPT))
    }

    /// Waits for the first connection.
    fn begins(&self, forward: &Forward) {
        wait_until(|| self.carries(forward), || "nothing is carried".to_owned());
    }

    /// Waits until connections are carried, within the time allowed.
    fn recovers(&self, forward: &Forward, who: &str) {
        let begun = Instant::now();
        wait_until(|| self.carries(forward), || format!("{who}: nothing is carried"));
        let took = begun.elapsed();
        println!("{who}: {took:?}");
        assert!(took <= self.place.recovered(), "{who}: it took {took:?}");
    }
}

/// Kills `serve` several times and starts it again. `before` is called before each kill and `after`
/// after each restart; what `before` returns is kept until then.
fn kill_servers<T>(
    place: &Place,
    seed: u64,
    remote: bool,
    before: impl Fn(&Tunnel<'_>) -> T,
    after: impl Fn(&Tunnel<'_>),
) {
    let (tunnel, mut dice) = (Tunnel::new(place), Dice::new(seed));
    let mut server = tunnel.serve();
    let _client = tunnel.connect(remote);
    tunnel.begins(if remote { &tunnel.far } else { &tunnel.near });
    for _ in 0..instants(3) {
        let _kept = before(&tunnel);
        std::thread::sleep(dice.time(LIFE));
        server.kill();
        std::thread::sleep(dice.time(LIFE));
        server = tunnel.serve();
        after(&tunnel);
    }
}

/// Kills both sides at once and starts them again, the server first or the client.
pub fn kill_both(place: &Place, seed: u64, remote: bool) {
    let (tunnel, mut dice) = (Tunnel::new(place), Dice::new(seed));
    let (mut server, mut client) = (tunnel.serve(), tunnel.connect(remote));
    let forward = if remote { &tunnel.far } else { &tunnel.near };
    tunnel.begins(forward);
    for turn in 0..instants(2) {
        std::thread::sleep(dice.time(LIFE));
        server.kill();
        client.kill();
        let pause = dice.time(LIFE);
        if turn % 2 == 0 {
            server = tunnel.serve();
            std::thread::sleep(pause);
            client = tunnel.connect(remote);
        } else {
            client = tunnel.connect(remote);
            std::thread::sleep(pause);
            server = tunnel.serve();
        }
        tunnel.recovers(forward, "both were killed");
    }
}

/// Kills `serve`, and starts it again long after the client has noticed. With `loses_a_link`, one
/// of the two links is dead by then.
pub fn kill_for_long(place: &Place, seed: u64, (remote, loses_a_link): (bool, bool)) {
    let (tunnel, mut dice) = (Tunnel::new(place), Dice::new(seed));
    let mut server = tunnel.serve();
    let _client = tunnel.connect(remote);
    let forward = if remote { &tunnel.far } else { &tunnel.near };
    tunnel.begins(forward);
    for _ in 0..instants(1) {
        std::thread::sleep(dice.time(LIFE));
        server.kill();
        if loses_a_link {
            place.silence(true);
        }
        std::thread::sleep(Duration::from_secs(10) + dice.time(LIFE));
        server = tunnel.serve();
        tunnel.recovers(forward, "serve was away for ten seconds");
        if loses_a_link {
            place.silence(false);
            tunnel.begins(forward);
        }
    }
}

/// One connection is open whenever the server is killed; others are made after each restart.
pub fn a_server_is_found_again(place: &Place, seed: u64) {
    let open = |tunnel: &Tunnel<'_>| {
        place.on(Side::Client, || TcpStream::connect(tunnel.near.at).unwrap())
    };
    kill_servers(place, seed, false, open, |tunnel| {
        tunnel.recovers(&tunnel.near, "-L after serve was killed");
    });
}

/// The first connection after the restart, with none open before, is carried without another attempt.
fn the_next_connection_is_carried(place: &Place, seed: u64) {
    kill_servers(
        place,
        seed,
        false,
        |_| (),
        |tunnel| {
            let begun = Instant::now();
            let carried = place.on(Side::Client, || carries(tunnel.near.at, PATIENCE));
            let took = begun.elapsed();
            println!("the first -L after serve was killed: {took:?}");
            assert!(carried && took <= place.recovered(), "{carried} after {took:?}");
        },
    );
}

fn a_server_is_asked_for_ports_again(place: &Place, seed: u64) {
    kill_servers(
        place,
        seed,
        true,
        |_| (),
        |tunnel| {
            tunnel.recovers(&tunnel.far, "-R after serve was killed");
        },
    );
}

fn a_client_gets_its_port_back(place: &Place, seed: u64) {
    let (tunnel, mut dice) = (Tunnel::new(place), Dice::new(seed));
    let _server = tunnel.serve();
    let mut client = tunnel.connect(true);
    tunnel.begins(&tunnel.far);
    for _ in 0..instants(3) {
        std::thread::sleep(dice.time(LIFE));
        client.kill();
        // A connection that is attempted meanwhile must not break what follows.
        let _meanwhile = place.on(Side::Server, || TcpStream::connect(tunnel.far.at));
        std::thread::sleep(dice.time(LIFE));
        client = tunnel.connect(true);
        tunnel.recovers(&tunnel.far, "-R after connect was killed");
    }
}

#[test]
fn a_server_that_was_killed_is_found_by_a_client_that_has_connections() {
    a_server_is_found_again(&Place::loopback(), 1);
}

#[test]
fn the_first_connection_after_a_server_was_killed_is_carried() {
    the_next_connection_is_carried(&Place::loopback(), 4);
}

#[test]
fn the_first_connection_after_a_server_was_killed_is_carried_beyond_links() {
    let Some(place) = Place::apart("kfi") else { return };
    the_next_connection_is_carried(&place, 14);
}

#[test]
fn a_server_that_was_killed_gets_its_ports_asked_for_by_an_idle_client() {
    a_server_is_asked_for_ports_again(&Place::loopback(), 2);
}

#[test]
fn a_client_that_was_killed_gets_its_port_back() {
    a_client_gets_its_port_back(&Place::loopback(), 3);
}

#[test]
fn a_server_that_was_killed_is_found_beyond_links() {
    let Some(place) = Place::apart("ksv") else { return };
    a_server_is_found_again(&place, 11);
}

#[test]
fn a_server_that_was_killed_is_asked_for_its_ports_beyond_links() {
    let Some(place) = Place::apart("kpo") else { return };
    a_server_is_asked_for_ports_again(&place, 12);
}

#[test]
fn a_client_that_was_killed_gets_its_port_back_beyond_links() {
    let Some(place) = Place::apart("kcl") else { return };
    a_client_gets_its_port_back(&place, 13);
}

/// The server does not wait for five minutes' silence to end what the client has left behind.
#[test]
fn what_a_killed_client_had_open_ends_once_it_is_back() {
    let place = Place::loopback();
    let mut tunnel = Tunnel::new(&place);
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    tunnel.near.echo = target.local_addr().unwrap();
    let server = tunnel.serve();
    let mut client = tunnel.connect(false);
    client.wait_for("connected");
    let open = TcpStream::connect(tunnel.near.at).unwrap();
    let (mut beyond, _) = target.accept().unwrap();
    client.kill();
    drop(open);
    let mut again = tunnel.connect(false);
    again.wait_for("connected");
    let begun = Instant::now();
    beyond.set_read_timeout(Some(ABANDONED * 2)).unwrap();
    let end = beyond.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "{end:?}");
    assert!(begun.elapsed() <= ABANDONED, "{:?}", begun.elapsed());
    // While the connection that was ended lingers, the server says once that its peer is silent, and serves on.
    again.kill();
    tunnel.connect(false).wait_for("connected");
    std::thread::sleep(Duration::from_secs(2));
    let told = server.count("silent");
    assert!(told <= 3, "it has said {told} times that the peer is silent");
}

/// Two machines may share a key and keep their connections, as long as both of them answer.
#[test]
fn a_client_that_lives_keeps_its_connections_when_another_comes_with_its_key() {
    let place = Place::loopback();
    let tunnel = Tunnel::new(&place);
    let _server = tunnel.serve();
    let _first = tunnel.connect(false);
    tunnel.begins(&tunnel.near);
    let mut open = TcpStream::connect(tunnel.near.at).unwrap();
    let second = tunnel.connect(true);
    second.wait_for("connected");
    std::thread::sleep(ABANDONED);
    open.write_all(b"alive").unwrap();
    let mut back = [0; 5];
    open.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"alive");
}

#[test]
fn a_client_that_lives_keeps_its_port_from_another_with_its_key() {
    let place = Place::loopback();
    let tunnel = Tunnel::new(&place);
    let _server = tunnel.serve();
    let _first = tunnel.connect(true);
    tunnel.begins(&tunnel.far);
    let second = tunnel.connect(true);
    let failed = second.wait_for("failed");
    assert!(failed["reason"].as_str().unwrap().contains("another live connection"), "{failed}");
    assert!(tunnel.carries(&tunnel.far));
}

/// `connect` says within three seconds that nobody answers, and which interface is missing, and ends when asked.
#[test]
fn who_connects_to_nobody_says_so() {
    let place = Place::loopback();
    let tunnel = Tunnel::new(&place);
    let Home { server, client, .. } = &tunnel.home;
    let near = format!("{}:127.0.0.1:9", tunnel.near.at.port());
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
