//! Unix sockets in `connect -L` and `-R`, as processes see them.
#![cfg(unix)]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod processes;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use processes::{PATIENCE, PROGRAM, Running, key, run, serving};

/// A socket that sends back all that it reads.
fn echo(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut all = Vec::new();
                if stream.read_to_end(&mut all).is_ok() {
                    let _ = stream.write_all(&all);
                }
            });
        }
    });
}

/// Bytes that come back through a socket.
fn through(path: &Path, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    back
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn sockets_lead_both_ways_and_are_removed_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let beside = format!("{}/*", directory.path().display());
    let extra = ["--permit", &text("app.sock"), "--permit-listen", &beside];
    let (mut server, address, public, key) = serving(directory.path(), &extra);
    echo(&at("app.sock"));
    let forwards = [
        format!("{}:{}", text("near.sock"), text("app.sock")),
        format!("0:{}", text("app.sock")),
        format!("{}:{}", text("far.sock"), text("app.sock")),
    ];
    let mut args = vec!["connect", &address, "--peer", &public, "--key", &key, "--json"];
    args.extend(["-L", &forwards[0], "-L", &forwards[1], "-R", &forwards[2]]);
    let mut client = Running::start(&args);
    let listening = client.event("listening");
    assert_eq!(listening["protocol"], "unix");
    assert_eq!(
        (&listening["address"], &listening["target"]),
        (&text("near.sock").into(), &text("app.sock").into())
    );
    let port = client.wait_for("listening", "address");
    let listening = server.event("listening");
    assert_eq!(
        (&listening["protocol"], &listening["address"]),
        (&"unix".into(), &text("far.sock").into())
    );
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n * 7) as u8).collect();
    for name in ["near.sock", "far.sock"] {
        assert_eq!(mode(&at(name)), 0o600);
        assert!(through(&at(name), &bytes) == bytes, "{name}");
    }
    let mut tcp = TcpStream::connect(port.as_str().unwrap()).unwrap();
    tcp.write_all(b"from TCP").unwrap();
    tcp.shutdown(Shutdown::Write).unwrap();
    let mut back = String::new();
    tcp.read_to_string(&mut back).unwrap();
    assert_eq!(back, "from TCP");
    client.signal(Signal::SIGINT);
    assert!(client.child.wait().unwrap().success());
    server.wait_for("disconnected", "peer");
    server.signal(Signal::SIGTERM);
    assert!(server.child.wait().unwrap().success());
    assert!(!at("near.sock").exists() && !at("far.sock").exists());
}

/// A client that is killed leaves its socket behind; the next takes its place, and the server's socket too.
#[test]
fn after_a_crash_the_same_sockets_work_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let beside = format!("{}/*", directory.path().display());
    let extra = ["--permit", &beside, "--permit-listen", &beside];
    let (server, address, public, key) = serving(directory.path(), &extra);
    echo(&at("app.sock"));
    let forward = |name| format!("{}:{}", text(name), text("app.sock"));
    let (local, remote) = (forward("near.sock"), forward("far.sock"));
    let args = ["connect", &address, "--peer", &public, "--key", &key, "-L", &local, "-R", &remote];
    let args = [&args[..], &["--json"]].concat();
    let first = Running::start(&args);
    server.wait_for("listening", "address");
    // The second of two simultaneous clients is told what to do.
    let second = run(&args);
    let told = String::from_utf8(second.stderr).unwrap();
    assert!(second.status.code() == Some(1) && told.contains("stop that program"), "{told}");
    drop(first);
    assert!(at("near.sock").exists());
    let _again = Running::start(&args);
    server.wait_for("listening", "address");
    for name in ["near.sock", "far.sock"] {
        assert_eq!(through(&at(name), b"again"), b"again", "{name}");
    }
}

#[test]
fn what_is_not_permitted_is_refused_and_wrong_paths_are_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    // Permission for TCP does not cover Unix sockets.
    let extra = ["--permit", "any", "--permit-listen", "any"];
    let (_server, address, public, key_file) = serving(directory.path(), &extra);
    echo(&at("app.sock"));
    fs::write(at("file"), "kept").unwrap();
    let usual = ["connect", &address, "--peer", &public, "--key", &key_file];
    let stdio = |target: &str| {
        let output = Command::new(PROGRAM).args(usual).args(["--stdio", target]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = stdio(&text("app.sock"));
    assert!(code == Some(3) && told.contains("--permit decides"), "{told}");
    let remote = format!("{}:localhost:80", text("r.sock"));
    let client = Running::start(&[&usual[..], &["--json", "-R", &remote]].concat());
    let reason = client.wait_for("failed", "reason");
    assert!(reason.as_str().unwrap().contains("--permit-listen"), "{reason}");
    let (_, other) = key(directory.path(), "other.key");
    let listen = |name: &str| format!("{}:localhost:80", text(name));
    for (args, code, part) in [
        (vec!["-L", &*listen("file")], 1, "not a socket has this name: remove it"),
        (vec!["-L", &listen("none/a.sock")], 1, "create it, or name"),
        (vec!["-L", "a/../b:localhost:80"], 2, "8080:/run/app.sock"),
        (vec!["-U", "53:/run/a.sock"], 2, "such as 5353:localhost:53"),
        (vec!["-D", "/run/a.sock"], 2, "such as 1080"),
    ] {
        let output = run(&[&usual[..], &args].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), told.lines().count()), (Some(code), 1), "{told}");
        assert!(told.contains(part), "{told}");
    }
    let serve = ["serve", "--listen", "127.0.0.1:0", "--key", &key_file, "--allow", &other];
    for (args, part) in [
        (["--permit-udp", "/run/a.sock"], "UDP leads to no Unix socket"),
        (["--permit", "/run/../a"], "a path such as /run/app.sock"),
    ] {
        let output = run(&[&serve[..], &args].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{told}");
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(fs::read(at("file")).unwrap(), b"kept");
}
