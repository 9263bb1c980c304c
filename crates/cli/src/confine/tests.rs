use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::linux::{confine, give_up, kernel};
use super::{Kernel, Needs};

/// Runs `work` in a thread that has dropped all privileges except `needs`, and in a thread that it spawns.
fn confined(needs: Needs, work: impl Fn() + Send + Sync + 'static) {
    let outer = std::thread::spawn(move || {
        give_up(&needs).unwrap();
        std::thread::scope(|scope| scope.spawn(&work).join().unwrap());
        work();
    });
    outer.join().unwrap();
}

fn is_denied<T>(result: std::io::Result<T>) -> bool {
    result.err().is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Whether this kernel has Landlock of this version, or a newer one.
fn has_landlock(version: u8) -> bool {
    let Some(Kernel { landlock, .. }) = kernel() else { return false };
    if landlock < version {
        eprintln!("skipped: this kernel has Landlock {landlock}");
    }
    landlock >= version
}

/// A line of this thread's status.
fn status(key: &str) -> String {
    let text = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).trim().to_owned()
}

#[test]
fn no_program_is_started_and_no_privilege_gained() {
    confined(Needs::default(), || {
        assert!(is_denied(Command::new("true").status()));
        // `exec` without a new process must fail, too. Otherwise `false` replaces the test, which
        // then fails.
        assert_eq!(Command::new("false").exec().kind(), ErrorKind::PermissionDenied);
        assert!(is_denied(new_network()));
        assert_eq!((status("NoNewPrivs"), status("Seccomp")), ("1".to_owned(), "2".to_owned()));
        let capabilities = u64::from_str_radix(&status("CapEff"), 16).unwrap();
        // CAP_NET_BIND_SERVICE is 10, CAP_NET_RAW is 13.
        assert_eq!(capabilities & !(1 << 10 | 1 << 13), 0, "{capabilities:x}");
    });
    assert!(Command::new("true").status().unwrap().success(), "other threads are as they were");
}

fn new_network() -> std::io::Result<()> {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).map_err(Into::into)
}

#[test]
fn only_usual_sockets_are_made() {
    let open = |family, kind| -> std::io::Result<_> {
        Ok(socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?)
    };
    confined(Needs::default(), move || {
        for family in [AddressFamily::Inet, AddressFamily::Inet6, AddressFamily::Packet] {
            assert!(is_denied(open(family, SockType::Raw)), "{family:?}");
        }
        assert!(is_denied(open(AddressFamily::Vsock, SockType::Stream)));
        for kind in [SockType::Datagram, SockType::Stream] {
            open(AddressFamily::Inet, kind).unwrap();
            open(AddressFamily::Unix, kind).unwrap();
        }
        // Notifications about interfaces.
        open(AddressFamily::Netlink, SockType::Raw).unwrap();
    });
}

#[test]
fn only_the_files_that_it_is_about_are_seen() {
    if !has_landlock(1) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["read", "write", "other"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("a"), name).unwrap();
    }
    let needs = Needs { read: vec![path("read")], write: vec![path("write")], ..Needs::default() };
    let at = dir.path().to_owned();
    confined(needs, move || {
        let path = |name: &str| at.join(name).join("a");
        assert_eq!(fs::read(path("read")).unwrap(), b"read");
        assert!(is_denied(fs::write(path("read"), "")));
        fs::write(path("write"), "new").unwrap();
        fs::rename(path("write"), at.join("write/b")).unwrap();
        fs::rename(at.join("write/b"), path("write")).unwrap();
        fs::create_dir_all(at.join("write/d")).unwrap();
        // A link may be made, but nothing outside is reached through it.
        std::os::unix::fs::symlink(path("other"), at.join("write/link")).unwrap();
        assert!(is_denied(fs::read(at.join("write/link"))));
        assert!(is_denied(fs::write(at.join("write/link"), "")));
        fs::remove_file(at.join("write/link")).unwrap();
        assert!(is_denied(std::os::unix::fs::symlink("a", at.join("read/link"))));
        assert!(is_denied(fs::read(path("other"))) && is_denied(fs::write(path("other"), "")));
        assert!(is_denied(fs::read_dir("/root")) && is_denied(fs::read_dir("/")));
        // Names of hosts and users can still be looked up.
        assert!(fs::read("/etc/passwd").is_ok());
        assert!(!Path::new("/etc/resolv.conf").exists() || fs::read("/etc/resolv.conf").is_ok());
    });
    assert_eq!(fs::read(path("other").join("a")).unwrap(), b"other");
}

#[test]
fn transfers_need_no_tcp() {
    if !has_landlock(4) {
        return;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    confined(Needs::default(), move || {
        assert!(is_denied(TcpStream::connect(address)));
        assert!(is_denied(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))));
        std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    });
    confined(Needs { tcp: true, ..Needs::default() }, move || {
        TcpStream::connect(address).unwrap();
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    });
}

/// A thread that already runs would keep all its privileges.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "threads run that would not be confined")]
fn other_threads_must_not_run_yet() {
    std::thread::spawn(std::thread::park);
    drop(confine(&Needs::default()));
}
