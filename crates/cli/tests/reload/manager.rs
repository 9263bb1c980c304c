//! A notification socket in place of the service manager's.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::time::{ClockId, clock_gettime};

use super::processes::{PATIENCE, Running};
use super::{Served, refused, reloaded, replace};

/// The service manager's end of the notification socket.
struct Manager {
    socket: UnixDatagram,
    path: String,
}

impl Manager {
    fn new(served: &Served) -> Self {
        let path = served.home.path().join("notify").to_str().unwrap().to_owned();
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Manager { socket, path }
    }

    /// The lines of the next message.
    fn told(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let count = self.socket.recv(&mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..count]).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn microseconds() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// Checks that a reload is reported as begun, at a time that is possible.
fn assert_reloading(told: &[String], before: i64) {
    let [reloading, time] = told else { panic!("{told:?}") };
    assert_eq!(reloading, "RELOADING=1");
    let time: i64 = time.strip_prefix("MONOTONIC_USEC=").unwrap().parse().unwrap();
    assert!((before..=microseconds()).contains(&time), "{time}, after {before}");
}

#[test]
fn it_is_told_of_the_start_of_reloads_and_of_the_end() {
    let served = Served::new(1);
    served.write(&[(0, "")]);
    let manager = Manager::new(&served);
    let mut server = served.serve(&[("NOTIFY_SOCKET", &manager.path)]);
    assert_eq!(manager.told(), ["READY=1"]);
    let before = microseconds();
    reloaded(&server);
    assert_reloading(&manager.told(), before);
    assert_eq!(manager.told(), ["STATUS=", "READY=1"]);
    replace(&served.file(), "[peers]");
    let (before, why) = (microseconds(), refused(&server));
    assert_reloading(&manager.told(), before);
    assert_eq!(manager.told(), [&format!("STATUS=The old settings are in use: {why}"), "READY=1"]);
    server.signal(Signal::SIGTERM);
    assert_eq!(manager.told(), ["STOPPING=1"]);
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn its_watchdog_hears_of_both_sides() {
    let served = Served::new(1);
    served.write(&[(0, "")]);
    let manager = Manager::new(&served);
    let environment = [("NOTIFY_SOCKET", &*manager.path), ("WATCHDOG_USEC", "200000")];
    let alive = |running: &Running| {
        let begun = Instant::now();
        let told: Vec<_> = (0..21).map(|_| manager.told()).collect();
        assert_eq!(told[0], ["READY=1"]);
        assert!(told[1..].iter().all(|told| *told == ["WATCHDOG=1"]), "{told:?}");
        // Twenty signs of life, a tenth of a second apart except for the first.
        assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
        running.signal(Signal::SIGTERM);
        while manager.told() != ["STOPPING=1"] {}
    };
    alive(&served.serve(&environment));
    let (key, public) = (&served.clients[0].0, &served.public);
    let args = ["connect", &served.address, "--peer", public, "--key", key, "--json"];
    alive(&Running::start_with(&args, &environment));
}

/// A process reports that it is ready once its service can be used, and not before. A server that
/// cannot listen never does.
#[test]
fn it_is_not_told_of_what_did_not_start() {
    let served = Served::new(1);
    served.write(&[(0, "")]);
    let manager = Manager::new(&served);
    let _taken = std::net::UdpSocket::bind(&served.address).unwrap();
    let file = served.file();
    let args = ["serve", "--config", file.to_str().unwrap(), "--json"];
    let mut server = Running::start_with(&args, &[("NOTIFY_SOCKET", &manager.path)]);
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    manager.socket.set_nonblocking(true).unwrap();
    assert!(manager.socket.recv(&mut [0]).is_err());
}
