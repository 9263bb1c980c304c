//! Files that a sender may store without a terminal to ask on: exactly what the options allow.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::process::{Ended, Running, run};
use super::{Sides, text};

/// Sends `files` to a receiver with these options; how the sender and the receiver ended.
fn transfer(sides: &Sides, files: &[&Path], options: &str) -> (Ended, Ended) {
    let line = format!("recv --json --listen 127.0.0.1 {options} --out");
    let mut receiver = Running::start(&line, &[&sides.to()]);
    let (ticket, _) = receiver.ticket();
    let names: Vec<&str> = files.iter().map(|file| text(file)).collect();
    (run(&format!("send {} {ticket}", names.join(" ")), &[]), receiver.end())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn names_that_begin_with_a_dot_need_leave() {
    for name in [".bashrc", "home/.ssh/authorized_keys"] {
        let sides = Sides::new();
        sides.write(name, b"sent");
        let top = sides.from(name.split('/').next().unwrap());
        let plain = sides.write("plain", b"sent too");
        for options in ["", "--yes", "--overwrite"] {
            let (sent, received) = transfer(&sides, &[&plain, &top], options);
            for line in [sent.failed(1), received.failed(1)] {
                assert!(line.contains("--allow-hidden") && line.contains(name), "{line}");
            }
            assert_eq!(sides.names(), [""; 0], "{options}");
        }
        let (sent, received) = transfer(&sides, &[&plain, &top], "--allow-hidden");
        sent.succeeded();
        received.succeeded();
        assert_eq!(sides.arrived(name), b"sent");
    }
}

#[test]
fn a_name_that_was_asked_for_needs_no_other_leave() {
    let sides = Sides::new();
    for name in ["home/.config/a", "home/.config/.b", "home/c"] {
        sides.write(name, name.as_bytes());
    }
    let (server_key, server) = sides.key("server");
    let (client_key, client) = sides.key("client");
    let line = format!("send --json --listen 127.0.0.1 --allow {client} --key");
    let mut sender = Running::start(&line, &[&server_key, &sides.from("home")]);
    let event = sender.event();
    let address = event["addresses"][0].as_str().unwrap();
    let from = format!("--from {address} --peer {server} --key {}", text(&client_key));
    let get = |what: &str| run(&format!("get {what} {from} --out"), &[&sides.to()]);
    get("home/c").succeeded();
    get("home/.config/a").succeeded();
    assert_eq!(sides.arrived("home/.config/a"), b"home/.config/a");
    let line = get("home/.config").failed(1);
    assert!(line.contains("home/.config/.b") && line.contains("--allow-hidden"), "{line}");
}

#[test]
fn files_are_executable_only_by_leave() {
    let sides = Sides::new();
    let script = sides.write("run.sh", b"#!/bin/sh");
    set_mode(&script, 0o755);
    let (sent, received) = transfer(&sides, &[&script], "");
    sent.succeeded();
    assert!(
        received.stderr.contains("run.sh") && received.stderr.contains("--yes"),
        "{received:?}"
    );
    received.succeeded();
    assert_eq!(mode(&sides.to().join("run.sh")) & 0o111, 0);
    fs::remove_file(sides.to().join("run.sh")).unwrap();
    let (sent, received) = transfer(&sides, &[&script], "--yes");
    sent.succeeded();
    received.succeeded();
    assert_eq!(mode(&sides.to().join("run.sh")) & 0o100, 0o100);
}

#[test]
fn what_was_private_stays_private() {
    let sides = Sides::new();
    let secret = sides.write("secret", b"mine");
    set_mode(&secret, 0o600);
    sides.write("vault/key", b"mine too");
    set_mode(&sides.from("vault"), 0o700);
    let reading = sides.write("reading", b"not to be changed");
    set_mode(&reading, 0o444);
    let vault = sides.from("vault");
    let (sent, received) = transfer(&sides, &[&secret, &vault, &reading], "");
    sent.succeeded();
    received.succeeded();
    let modes = ["secret", "vault", "reading"].map(|name| mode(&sides.to().join(name)));
    assert_eq!((modes[0], modes[1], modes[2] & 0o222), (0o600, 0o700, 0), "{modes:?}");
}

#[test]
fn the_usual_mask_holds() {
    let sides = Sides::new();
    let file = sides.write("a", b"for all");
    set_mode(&file, 0o666);
    let recv = format!("{} recv --json --listen 127.0.0.1 --out", env!("CARGO_BIN_EXE_anabranch"));
    let mut command = Command::new("bash");
    command.args(["-c", &format!("umask 027; exec {recv} {}", text(&sides.to()))]);
    let mut receiver = Running::spawn(command);
    let (ticket, _) = receiver.ticket();
    run(&format!("send {} {ticket}", text(&file)), &[]).succeeded();
    receiver.end().succeeded();
    assert_eq!(mode(&sides.to().join("a")), 0o640);
}

#[test]
fn files_arrive_in_a_directory_of_their_own() {
    let sides = Sides::new();
    let file = sides.write("a", b"sent");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["recv", "--json", "--listen", "127.0.0.1"]).current_dir(sides.to());
    let mut receiver = Running::spawn(command);
    let (ticket, _) = receiver.ticket();
    run(&format!("send {} {ticket}", text(&file)), &[]).succeeded();
    receiver.end().succeeded();
    assert_eq!(sides.names(), ["anabranch-received"]);
    assert_eq!(sides.arrived("anabranch-received/a"), b"sent");
}

#[test]
fn the_directory_of_its_own_is_no_link() {
    let (sides, elsewhere) = (Sides::new(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(elsewhere.path(), sides.to().join("anabranch-received")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["recv", "--listen", "127.0.0.1"]).current_dir(sides.to());
    let line = Running::spawn(command).end().failed(1);
    assert!(line.contains("link") && line.contains("--out"), "{line}");
}

#[test]
fn the_peer_is_not_told_where_files_lie() {
    let sides = Sides::new();
    let file = sides.write("a", b"sent");
    fs::write(sides.to().join("a"), b"mine").unwrap();
    let (sent, received) = transfer(&sides, &[&file], "");
    let (there, here) = (sent.failed(1), received.failed(1));
    assert!(here.contains(text(&sides.to())) && here.contains("--overwrite"), "{here}");
    assert!(there.contains("--overwrite") && there.contains(" a "), "{there}");
    assert!(!there.contains(text(sides.dir.path())), "{there}");
}
