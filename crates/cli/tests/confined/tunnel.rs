//! `serve`, `connect` and `bench`, confined.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::echo::{echo, exchange};
use super::process::{Running, run};
use super::status::{FILES, NET, assert_confined, threads};
use super::{is_root, key};

/// The value of `key` in the next event of this kind.
fn wait_for(running: &mut Running, event: &str, key: &str) -> serde_json::Value {
    loop {
        let value = running.event();
        if value["event"] == event {
            return value[key].clone();
        }
    }
}

/// A server with further options, its port and key, and a client's key file.
fn serving(dir: &TempDir, extra: &str) -> (Running, String, String, String) {
    let (server_key, server) = key(dir.path(), "server.key");
    let (client_key, client) = key(dir.path(), "client.key");
    let line = format!("serve --listen 127.0.0.1:0 --allow {client} --json {extra} --key");
    let mut running = Running::start(&line, &[&server_key]);
    let addresses = wait_for(&mut running, "serving", "addresses");
    let port = addresses[0].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    (running, port, server, client_key.to_str().unwrap().to_owned())
}

/// Complete recordings in a directory.
fn recordings(directory: &Path) -> usize {
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|is| is == "sqlog")).count()
}

#[test]
fn a_tunnel_works_with_every_thread_confined() {
    let dir = tempfile::tempdir().unwrap();
    let qlogs = dir.path().join("new/qlogs");
    let extra = format!("--permit-listen loopback --qlog {}", qlogs.display());
    let (mut server, port, public, key) = serving(&dir, &extra);
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let echo = echo().port();
    let line = format!(
        "connect localhost:{port} --peer {public} --key {key} -L 0:localhost:{echo} -R 0:localhost:{echo} \
         --metrics {metrics} --json --qlog"
    );
    let mut client = Running::start(&line, &[&qlogs]);
    let near = wait_for(&mut client, "listening", "address");
    let far = wait_for(&mut server, "listening", "address");
    for address in [&near, &far] {
        assert_eq!(exchange(address.as_str().unwrap(), b"there and back"), b"there and back");
    }
    for running in [&client, &server] {
        assert_confined(running.id(), 3, NET | FILES);
    }
    let mut figures = TcpStream::connect(metrics).unwrap();
    write!(figures, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    figures.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    client.interrupted().succeeded();
    let told = server.interrupted();
    let advised = told.stderr.contains("running as root is not needed");
    assert_eq!(advised, is_root(), "{}", told.stderr);
    told.succeeded();
    assert_eq!(recordings(&qlogs), 2);
}

#[test]
fn a_server_that_becomes_another_user_keeps_nothing_of_root() {
    if !is_root() {
        eprintln!("skipped: only root becomes another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (server, port, public, key) = serving(&dir, "--user nobody");
    let line = format!("connect 127.0.0.1:{port} --peer {public} --key {key} --json -L");
    let mut client = Running::start(&format!("{line} 0:localhost:{}", echo().port()), &[]);
    let near = wait_for(&mut client, "listening", "address");
    assert_eq!(exchange(near.as_str().unwrap(), b"there and back"), b"there and back");
    assert_confined(server.id(), 3, 0);
    for thread in threads(server.id(), 3) {
        assert!(!thread.value("Uid").split_whitespace().any(|id| id == "0"));
        assert!(!thread.value("Gid").split_whitespace().any(|id| id == "0"));
    }
    // If the kernel keeps a process's memory from its user, the process's files in /proc belong to
    // root.
    let owner = |file: &str| fs::metadata(format!("/proc/{}/{file}", server.id())).unwrap().uid();
    assert_eq!(owner("mem"), 0);
    let told = server.interrupted();
    assert!(!told.stderr.contains("as root"), "{}", told.stderr);
    told.succeeded();
}

#[test]
fn both_sides_of_a_measurement_are_confined() {
    let dir = tempfile::tempdir().unwrap();
    let qlogs = dir.path().join("qlogs");
    let mut server = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    server.args(["bench", "server", "--listen", "127.0.0.1:0", "--anyone", "--once", "--qlog"]);
    let mut server = server.arg(&qlogs).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(server.stderr.take().unwrap());
    let mut after = |words: &str| {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        line.trim().strip_prefix(words).unwrap_or_else(|| panic!("{line}")).to_owned()
    };
    let (address, public) = (after("listening on "), after("public key "));
    let line = format!("bench client {address} --peer {public} --time 2 --json --qlog");
    let client = Running::start(&line, &[&qlogs]);
    // The second thread of each writes its recording.
    for pid in [server.id(), client.id()] {
        assert_confined(pid, 2, NET | FILES);
    }
    client.end().succeeded();
    assert!(server.wait().unwrap().success());
    assert_eq!(recordings(&qlogs), 2);
    run("bench client --loopback --bytes 1MB --json", &[]).succeeded();
}

/// Ends a receiver by a signal at which the system writes a core file. Returns whether it wrote
/// one.
fn dumps_core(dir: &Path, unconfined: &str) -> bool {
    let mut command = Command::new("sh");
    let script = "ulimit -c unlimited; exec \"$0\" recv --listen 127.0.0.1 --new-ticket";
    command.args(["-c", script, env!("CARGO_BIN_EXE_anabranch")]).current_dir(dir);
    command.env("XDG_STATE_HOME", dir).env("ANABRANCH_UNCONFINED", unconfined);
    let mut child =
        command.stdout(Stdio::piped()).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut ticket = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut ticket).unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-ABRT", &pid]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert!(status.signal().is_some(), "{status}");
    status.core_dumped()
}

#[test]
fn keys_do_not_get_into_core_files() {
    let dir = tempfile::tempdir().unwrap();
    if !dumps_core(dir.path(), "1") {
        eprintln!("skipped: this system writes no core files");
        return;
    }
    assert!(!dumps_core(dir.path(), ""));
}
