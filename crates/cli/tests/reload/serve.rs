use std::io::{Read, Write};
use std::net::TcpStream;

use super::echo::{echo, exchange};
use super::processes::PATIENCE;
use super::{Served, refused, reloaded, replace};

/// A TCP connection that is open, and works.
struct Open(TcpStream);

impl Open {
    fn to(address: &str) -> Self {
        let tcp = TcpStream::connect(address).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut open = Open(tcp);
        open.works();
        open
    }

    fn works(&mut self) {
        self.0.write_all(b"there and back").unwrap();
        let mut back = [0; 14];
        self.0.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"there and back");
    }

    /// Waits until the connection ends, which has to be by a reset.
    fn breaks(mut self) {
        let error = self.0.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

/// Whether a connection there carries anything.
fn carries(address: &str) -> bool {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    tcp.write_all(b"x").is_ok() && matches!(tcp.read(&mut [0]), Ok(1))
}

#[test]
fn peers_come_and_go_and_the_others_notice_nothing() {
    let served = Served::new(3);
    served.write(&[(0, "name = \"stays\""), (1, "name = \"goes\"")]);
    let server = served.serve(&[]);
    let echo = echo().port();
    let (stays, near) = served.connect(0, &[echo]);
    let mut open = Open::to(&near[0]);
    let (goes, near_of_other) = served.connect(1, &[echo]);
    let other = Open::to(&near_of_other[0]);
    served.write(&[(0, "name = \"stays\""), (2, "")]);
    let (changes, kept) = reloaded(&server);
    let key = |client: usize| served.clients[client].1.clone();
    assert_eq!(
        changes,
        [format!("peer {} added", key(2)), format!("peer goes {} removed", key(1))]
    );
    assert_eq!(kept, [""; 0]);
    let reason = goes.wait_for("disconnected", "reason");
    assert!(reason.as_str().unwrap().contains("this key is no longer permitted"), "{reason}");
    other.breaks();
    open.works();
    let (_new, near_of_new) = served.connect(2, &[echo]);
    assert_eq!(exchange(&near_of_new[0], b"new"), b"new");
    // The removed peer is not let in again, and the one that stayed was connected all the while.
    goes.wait_for("waiting", "seconds");
    open.works();
    drop(open);
    stays.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(stays.rest().iter().all(|event| event["event"] != "disconnected"));
}

#[test]
fn what_is_permitted_no_more_ends_and_the_rest_goes_on() {
    let served = Served::new(1);
    let (one, other) = (echo().port(), echo().port());
    let only = |ports: &[u16]| {
        let targets: Vec<_> = ports.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
        format!("permit = [{}]", targets.join(", "))
    };
    served.write(&[(0, &only(&[one]))]);
    let server = served.serve(&[]);
    let (client, near) = served.connect(0, &[one, other]);
    let mut stays = Open::to(&near[0]);
    assert!(!carries(&near[1]));
    served.write(&[(0, &only(&[one, other]))]);
    let key = &served.clients[0].1;
    let says = |ports: &str| vec![format!("peer {key}: permit is {ports}")];
    assert_eq!(reloaded(&server).0, says(&format!("127.0.0.1:{one}, 127.0.0.1:{other}")));
    let ends = Open::to(&near[1]);
    served.write(&[(0, &only(&[one]))]);
    assert_eq!(reloaded(&server).0, says(&format!("127.0.0.1:{one}")));
    ends.breaks();
    stays.works();
    assert!(!carries(&near[1]));
    let failed = client.event("failed");
    assert!(failed["reason"].as_str().unwrap().contains("--permit"), "{failed}");
}

/// A mistake is reported with its place and changes nothing. Settings that cannot be changed are
/// reported and stay.
#[test]
fn mistakes_and_what_cannot_be_changed_are_named_and_change_nothing() {
    let served = Served::new(2);
    served.write(&[(0, "")]);
    let server = served.serve(&[]);
    let (_client, near) = served.connect(0, &[echo().port()]);
    let mut open = Open::to(&near[0]);
    let right = served.settings(&[(0, "")]);
    for (text, part) in [
        (right.replace("private-key", "privat-key"), "serve.toml:2:1: unknown field"),
        (right.replace(&served.clients[0].1, "x"), "44 characters"),
        (format!("{right}preshared-key-file = \"nosuch.psk\""), "nosuch.psk"),
        (format!("{right}permit = [\"everything\"]"), "'everything' is not accepted"),
        (served.settings(&[]), "nobody may connect"),
    ] {
        replace(&served.file(), &text);
        let why = refused(&server);
        assert!(why.contains(part), "{why}");
        open.works();
    }
    std::fs::remove_file(served.file()).unwrap();
    assert!(refused(&server).contains("cannot read"));
    let (_, other) = super::key(served.home.path(), "other.key");
    let text = right.replace(&served.address, "127.0.0.1:9").replace("server.key", "other.key");
    replace(&served.file(), &text.replace("[[peer]]", "max-forwarded = 9\n[[peer]]"));
    let (changes, kept) = reloaded(&server);
    assert_eq!(changes, [""; 0]);
    let stays = |key: &str, old: &str, new: &str| {
        let text = format!("{key} stays {old} until a restart, and is then {new}");
        assert!(kept.contains(&text), "{text}: {kept:?}");
    };
    stays("listen", &served.address, "127.0.0.1:9");
    stays("max-forwarded", "256", "9");
    stays("the key", &served.public, &other);
    assert_eq!(kept.len(), 4, "{kept:?}");
    open.works();
    // Reading the same file again reports the same.
    assert_eq!(reloaded(&server), (changes, kept));
    replace(&served.file(), &right);
    assert_eq!(reloaded(&server), (Vec::new(), Vec::new()));
}

/// A secret that is shared beside the keys counts from the next connection on.
#[test]
fn another_shared_secret_is_for_the_next_connection() {
    let served = Served::new(1);
    let secret = |name: &str| {
        let path = served.home.path().join(name);
        let out = super::processes::run(&["genpsk", "--out", path.to_str().unwrap()]);
        assert!(out.status.success());
        path.to_str().unwrap().to_owned()
    };
    let (one, other) = (secret("one.psk"), secret("other.psk"));
    served.write(&[(0, "preshared-key-file = \"one.psk\"")]);
    let server = served.serve(&[]);
    let forward = format!("0:127.0.0.1:{}", echo().port());
    let connect = |secret: &str| {
        let words =
            ["connect", &served.address, "--peer", &served.public, "--json", "-L", &forward];
        let keys = ["--key", &served.clients[0].0, "--preshared-key", secret];
        super::Running::start(&[&words[..], &keys].concat())
    };
    let first = connect(&one);
    let near = first.wait_for("listening", "address");
    let mut open = Open::to(near.as_str().unwrap());
    served.write(&[(0, "preshared-key-file = \"other.psk\"")]);
    let text = format!(
        "peer {}: another preshared-key-file from the next connection on",
        served.clients[0].1
    );
    assert_eq!(reloaded(&server), (vec![text], Vec::new()));
    open.works();
    let second = connect(&other);
    let near = second.wait_for("listening", "address");
    Open::to(near.as_str().unwrap());
    open.works();
    // A peer with the old secret gets no answer.
    connect(&one).wait_for("waiting", "seconds");
}
