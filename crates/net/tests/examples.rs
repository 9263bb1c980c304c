//! The examples work: each is run as its readers run it.
//!
//! The examples are built with the tests of the package; `cargo test -p anabranch --test examples` alone needs `cargo
//! build -p anabranch --examples` before.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anabranch::{Config, Endpoint, Permitted, SecretKey};
use tokio::time::timeout;

/// Ends a program that hangs.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn example(name: &str) -> Command {
    // The test's program is in the directory `deps` beside `examples`.
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    path.push(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{}: run `cargo build -p anabranch --examples`", path.display());
    Command::new(path)
}

/// Runs an example that needs no arguments to its end; returns what it printed.
fn run(name: &str) -> String {
    let Output { status, stdout, stderr } = example(name).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{name}: {status}\n{stderr}");
    String::from_utf8(stdout).unwrap()
}

#[test]
fn echo_gives_back_what_it_reads() {
    assert_eq!(run("echo"), "over both paths\n");
}

#[test]
fn messages_come_back_beside_a_bulk_transfer() {
    let printed = run("datagrams");
    assert_eq!(printed.lines().count(), 20, "{printed}");
    assert!(printed.lines().any(|line| line.contains(" came back after ")), "{printed}");
}

#[test]
fn policies_of_ones_own_carry_a_transfer() {
    let printed = run("own_policy");
    let paths: Vec<&str> = printed.lines().filter(|line| line.starts_with("path ")).collect();
    assert_eq!(paths.len(), 2, "{printed}");
    assert!(paths.iter().all(|line| line.ends_with(", steady")), "{printed}");
    assert!(printed.contains(" bytes acknowledged"), "{printed}");
}

#[test]
fn copy_copies_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number >> 5) as u8).collect();
    std::fs::write(&from, &bytes).unwrap();
    let receiver = example("copy").arg(&to).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn();
    let mut receiver = Running(receiver.unwrap());
    let mut line = String::new();
    BufReader::new(receiver.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["copy", "FILE", address, key] = words[..] else { panic!("{line}") };
    let address = address.replace("this-machine", "127.0.0.1");
    let sent = example("copy").arg(&from).arg(address).arg(key).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(receiver.0.wait().unwrap().success());
    assert!(std::fs::read(&to).unwrap() == bytes);
}

#[tokio::test]
async fn bond_says_what_each_path_carries() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.key");
    let key = SecretKey::generate().unwrap();
    key.save(&file, false).unwrap();
    let mut config = Config::new(SecretKey::generate().unwrap());
    config.permitted = Permitted::Only([key.public_key()].into());
    let server = Endpoint::bind(config, [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]).unwrap();
    let mut bond = example("bond");
    bond.arg(server.local_addrs()[0].to_string()).arg(server.public_key().to_string());
    bond.arg(&file).args(["127.0.0.1", "127.0.0.1,backup"]).stdout(Stdio::piped());
    let mut bond = Running(bond.spawn().unwrap());
    let accepted = async { server.accept().await.unwrap().await.unwrap() };
    let connection = timeout(Duration::from_secs(30), accepted).await.unwrap();
    // Leaves the example time for a line about each path.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    connection.close(0, "done");
    let printed = tokio::task::spawn_blocking(move || {
        let mut printed = String::new();
        bond.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert!(bond.0.wait().unwrap().success());
        printed
    });
    let printed = timeout(Duration::from_secs(30), printed).await.unwrap().unwrap();
    assert!(printed.starts_with("connected\n"), "{printed}");
    for path in ["path 0 ", "path 1 "] {
        assert!(printed.contains(path) && printed.contains(" B sent, "), "{printed}");
    }
}
