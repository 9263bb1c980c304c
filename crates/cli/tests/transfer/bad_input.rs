//! Wrong local input: one line of error, the documented exit code, no half-written file.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::process::{Running, run};
use super::{Sides, pattern, text};

#[test]
fn wrong_questions_get_one_line() {
    let sides = Sides::new();
    let file = sides.write("a", b"bytes");
    let file = text(&file);
    let (key, public) = sides.key("key");
    let key = text(&key);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let ticket = "anabranch1AaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlUkR6qUSHsjp08Vo2YzBcBwAAAABpIXPABMAAAgcRUaTp9tU";
    let future = ticket.replacen('1', "2", 1);
    let peer = format!("--peer {public}");
    for (line, code, part) in [
        ("send".to_owned(), 2, "FILE"),
        (format!("send {ticket}"), 2, "name a file"),
        (format!("send {file} {}", &ticket[..60]), 2, "copied completely"),
        (format!("send {file} {future}"), 2, "same version"),
        (format!("get {ticket}"), 2, "anabranch send"),
        (format!("send {file} {ticket} --key {key}"), 2, "leave out"),
        (format!("send {file} {ticket} --preshared-key {key}"), 2, "leave out"),
        (format!("send {file} --preshared-key {key}"), 2, "--allow"),
        (format!("recv --preshared-key {key}"), 2, "--allow"),
        (format!("recv --allow {public} --key {key} --preshared-key /no/psk"), 2, "genpsk"),
        (
            format!("send {file} --to 127.0.0.1:9 {peer} --key {key} --preshared-key {file}"),
            1,
            "genpsk",
        ),
        (format!("send {file} --to 127.0.0.1:9"), 2, "--peer"),
        (format!("send {file} --to 127.0.0.1 {peer} --key {key}"), 2, "HOST:PORT"),
        (format!("send {file} --to 127.0.0.1:9 --peer nonsense --key {key}"), 2, "44 characters"),
        (format!("send {file} --to nosuch.invalid:9 {peer} --key {key}"), 3, "nosuch.invalid"),
        (format!("send {file} --to 127.0.0.1:9 {peer} --key /no/such"), 2, "/no/such"),
        (format!("send {file} --to 127.0.0.1:9 {peer} --key {file}"), 1, "key"),
        (format!("send {file} --to 127.0.0.1:9 {peer} --key {key} --path a,b"), 2, "backup"),
        (
            format!("send {file} --to 127.0.0.1:9 {peer} --key {key} --timeout 1 --path nosuch0"),
            3,
            "no nosuch0",
        ),
        (format!("send {file} --to 127.0.0.1:9 {peer} --key {key} --timeout 1"), 3, "nobody"),
        (format!("send {file} --profile fast"), 2, "known: anabranch"),
        (format!("send {file} --name ../x"), 2, "--name"),
        (format!("send {file} --expires 0"), 2, "1s"),
        ("send /no/such/file".to_owned(), 2, "/no/such/file"),
        (format!("send {file} {file}"), 1, "two entries have the name"),
        (format!("recv --key {key}"), 2, "--allow"),
        ("recv --once".to_owned(), 2, "--allow"),
        (format!("recv --key {key} --allow {public} --out -"), 2, "--once"),
        ("recv --listen nosuch0".to_owned(), 1, "nor an interface"),
        (format!("recv --listen {taken}"), 1, "another program"),
        ("recv --listen 192.0.2.1".to_owned(), 1, "not an address of this machine"),
        ("recv --out /dev/null/x".to_owned(), 1, "/dev/null/x"),
        ("get".to_owned(), 2, "ticket"),
        ("get ../etc/passwd".to_owned(), 2, "../etc/passwd"),
    ] {
        let text = run(&line, &[]).failed(code);
        assert!(text.contains(part), "{line}: {text}");
    }
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let sides = Sides::new();
    let (key, public) = sides.key("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let line = run(&format!("recv --allow {public} --key"), &[&key]).failed(1);
    assert!(line.contains("chmod 600") && line.contains("640"), "{line}");
}

#[test]
fn existing_files_are_not_replaced_unasked() {
    let sides = Sides::new();
    let file = sides.write("a", b"sent");
    fs::write(sides.to().join("a"), b"mine").unwrap();
    let receive = |more: &str| {
        let line = format!("recv --json --listen 127.0.0.1 {more} --out");
        let mut receiver = Running::start(&line, &[&sides.to()]);
        let (ticket, _) = receiver.ticket();
        (receiver, run(&format!("send {} {ticket}", text(&file)), &[]))
    };
    let (receiver, sent) = receive("");
    for line in [receiver.end().failed(1), sent.failed(1)] {
        assert!(line.contains("--overwrite"), "{line}");
    }
    assert_eq!(sides.arrived("a"), b"mine");
    let (receiver, sent) = receive("--overwrite");
    sent.succeeded();
    receiver.end().succeeded();
    assert_eq!(sides.arrived("a"), b"sent");
}

/// A receiver whose files may not grow beyond `blocks` of 1024 bytes, as on a full disk.
fn limited(sides: &Sides, blocks: u32) -> Running {
    let mut command = Command::new("bash");
    let recv = format!("{} recv --json --listen 127.0.0.1 --out", env!("CARGO_BIN_EXE_anabranch"));
    let script = format!("ulimit -f {blocks}; exec {recv} {}", text(&sides.to()));
    command.args(["-c", &script]);
    Running::spawn(command)
}

#[test]
fn a_file_that_does_not_fit_is_gone_on_with_when_it_does() {
    let sides = Sides::new();
    let bytes = pattern(3_000_000);
    let file = sides.write("a", &bytes);
    let mut receiver = limited(&sides, 1000);
    let (ticket, _) = receiver.ticket();
    let sent = run(&format!("send {} {ticket}", text(&file)), &[]);
    for line in [receiver.end().failed(1), sent.failed(1)] {
        assert!(line.contains("cannot write") && line.contains("large"), "{line}");
    }
    assert!(!sides.names().contains(&"a".to_owned()));
    let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
    let (ticket, _) = receiver.ticket();
    run(&format!("send {} {ticket}", text(&file)), &[]).succeeded();
    let report = receiver.end().report();
    assert!(report["kept_bytes"].as_u64().unwrap() > 900_000, "{report}");
    assert!(sides.arrived("a") == bytes);
    assert_eq!(sides.names(), ["a"]);
}

#[test]
fn a_full_disk_is_one_line() {
    let sides = Sides::new();
    let file = sides.write("a", &pattern(3_000_000));
    let recv = format!("{} recv --json --listen 127.0.0.1 --out", env!("CARGO_BIN_EXE_anabranch"));
    let to = sides.to();
    let script = format!("mount -t tmpfs -o size=1m none {0} && exec {recv} {0}", text(&to));
    let probe = Command::new("unshare").args(["--mount", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", &script]);
    let mut receiver = Running::spawn(command);
    let (ticket, _) = receiver.ticket();
    let sent = run(&format!("send {} {ticket}", text(&file)), &[]);
    for line in [receiver.end().failed(1), sent.failed(1)] {
        assert!(line.contains("cannot write") && line.contains("make room"), "{line}");
    }
}

#[test]
fn a_full_standard_output_is_one_line() {
    let sides = Sides::new();
    let file = sides.write("a", &pattern(300_000));
    let mut sender = Running::start("send --json --listen 127.0.0.1", &[&file]);
    let (ticket, _) = sender.ticket();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["get", &ticket, "--out", "-"])
        .stdout(full)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.lines().last().unwrap().contains("standard output"), "{stderr}");
    sender.end().failed(1);
}

#[test]
fn a_directory_that_may_not_be_written_is_named() {
    let sides = Sides::new();
    let file = sides.write("a", b"bytes");
    // Even root may not write there.
    let mut receiver =
        Running::start("recv --json --new-ticket --listen 127.0.0.1 --out /proc", &[]);
    let (ticket, _) = receiver.ticket();
    let sent = run(&format!("send {} {ticket}", text(&file)), &[]);
    let (here, there) = (receiver.end().failed(1), sent.failed(1));
    assert!(here.contains("cannot write /proc/a"), "{here}");
    assert!(there.contains("cannot write a: "), "{there}");
}
