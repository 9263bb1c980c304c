//! `send`, `recv` and `get`, confined.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::process::{Ended, Running, run};
use super::status::{FILES, NET, assert_confined, threads};
use super::{is_root, key, landlock};

/// `anabranch` with the words of `line`, started in `dir`.
fn anabranch(dir: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(line.split_whitespace()).current_dir(dir);
    command
}

#[test]
fn every_thread_is_confined_from_standard_input_to_output() {
    let mut sender = Running::start("send - --listen 127.0.0.1 --json", &[]);
    let (ticket, _) = sender.ticket();
    let getter = Running::start(&format!("get {ticket} --out -"), &[]);
    for running in [&sender, &getter] {
        assert_confined(running.id(), 3, NET | FILES);
    }
    sender.feed(b"through a pipe");
    assert_eq!(getter.end().succeeded(), b"through a pipe");
    sender.end().succeeded();
    let dir = tempfile::tempdir().unwrap();
    let receiver = "recv --listen 127.0.0.1 --json --new-ticket --out";
    let mut receiver = Running::start(receiver, &[dir.path()]);
    receiver.ticket();
    assert_confined(receiver.id(), 3, NET | FILES);
}

/// Runs `recv` into `to` and `send` with `files`, both started in `dir`.
fn transfer(dir: &Path, files: &str, to: &str) -> (Ended, Ended) {
    let line = format!("recv --listen 127.0.0.1 --json --yes --new-ticket --qlog qlogs --out {to}");
    let mut receiver = Running::spawn(anabranch(dir, &line));
    let (ticket, _) = receiver.ticket();
    let sender = anabranch(dir, &format!("send {files} {ticket} --qlog qlogs"));
    let sent = Running::spawn(sender).end();
    (sent, receiver.end())
}

fn arrives(dir: &Path, files: &str, to: &str) {
    let (sent, received) = transfer(dir, files, to);
    sent.succeeded();
    assert!(received.report()["files"].as_u64() > Some(0), "{files} to {to}");
}

#[test]
fn paths_may_be_written_in_any_way() {
    let (temporary, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = temporary.path();
    for name in ["tree/below", "real"] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    for name in ["tree/a", "tree/below/b", "c"] {
        fs::write(dir.join(name), name).unwrap();
    }
    fs::write(elsewhere.path().join("secret"), "secret").unwrap();
    fs::write(elsewhere.path().join("meant"), "meant").unwrap();
    symlink(elsewhere.path().join("secret"), dir.join("tree/link")).unwrap();
    symlink(elsewhere.path(), dir.join("tree/below/links")).unwrap();
    symlink(elsewhere.path().join("meant"), dir.join("meant")).unwrap();
    symlink("below/b", dir.join("tree/inside")).unwrap();
    symlink("real", dir.join("to-a-link")).unwrap();
    let (sent, received) = transfer(dir, "--links tree ./c tree/../meant", "not/there/yet");
    assert!(sent.failed(1).contains("not sent"));
    assert_eq!(received.report()["files"], 4);
    let inside = fs::read_link(dir.join("not/there/yet/tree/inside")).unwrap();
    assert_eq!(inside, Path::new("below/b"));
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    assert_eq!(text("not/there/yet/tree/below/b"), "tree/below/b");
    assert_eq!(
        (text("not/there/yet/c"), text("not/there/yet/meant")),
        ("c".into(), "meant".into())
    );
    for link in ["not/there/yet/tree/link", "not/there/yet/tree/below/links"] {
        assert!(fs::symlink_metadata(dir.join(link)).is_err(), "{link} was sent");
    }
    arrives(dir, "tree/a", "to-a-link");
    assert_eq!(text("real/a"), "tree/a");
    let recordings = fs::read_dir(dir.join("qlogs")).unwrap();
    let recordings = recordings.map(|file| file.unwrap().path());
    assert_eq!(recordings.filter(|path| path.extension().unwrap() == "sqlog").count(), 4);
    // On most machines, /dev/shm is a file system of its own.
    if let Ok(mounted) = tempfile::tempdir_in("/dev/shm") {
        arrives(dir, "-l --exclude link --exclude links tree", mounted.path().to_str().unwrap());
        assert_eq!(fs::read(mounted.path().join("tree/a")).unwrap(), b"tree/a");
    }
    let to = "recv --listen 127.0.0.1 --json --new-ticket --out";
    let mut receiver = Running::start(to, &[&dir.join("real")]);
    let (ticket, _) = receiver.ticket();
    let mut sender = anabranch(dir, &format!("send /dev/stdin {ticket}"));
    sender.stdin(File::open(dir.join("c")).unwrap());
    let sent = sender.output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    receiver.end().succeeded();
    assert_eq!(text("real/stdin"), "c");
}

#[test]
fn root_sends_and_receives_files_of_others() {
    if !is_root() {
        eprintln!("skipped: only root may");
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    fs::create_dir(dir.join("to")).unwrap();
    fs::write(dir.join("a"), "a").unwrap();
    for (name, mode) in [("to", 0o700), ("a", 0o600)] {
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(dir.join(name), Some(65534), Some(65534)).unwrap();
    }
    arrives(dir, "a", "to");
    assert_eq!(fs::read(dir.join("to/a")).unwrap(), b"a");
}

/// A file offered to known peers may be replaced by renaming while the command runs. A directory
/// that takes the place of the offered one cannot be read.
#[test]
fn an_offer_that_stands_is_replaced() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let (sender_key, sender_public) = key(dir, "sender.key");
    let (getter_key, getter) = key(dir, "getter.key");
    for name in ["files", "tree"] {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("a"), "old").unwrap();
    }
    let start = |unconfined: &str| {
        let keys = format!("--allow {getter} --key {}", sender_key.display());
        let line = format!("send files/a tree --listen 127.0.0.1:0 --json {keys}");
        let mut command = anabranch(dir, &line);
        command.env("ANABRANCH_UNCONFINED", unconfined);
        let mut sender = Running::spawn(command);
        let address = sender.event()["addresses"][0].as_str().unwrap().to_owned();
        (sender, address)
    };
    let get = |address: &str, names: &str, out: &str| {
        let keys = format!("--peer {sender_public} --key {}", getter_key.display());
        let line = format!("get {names} --from {address} {keys} --overwrite --out");
        run(&line, &[&dir.join(out)])
    };
    let (mut sender, address) = start("");
    get(&address, "a tree", "one").succeeded();
    fs::write(dir.join("files/.a.new"), "new and longer").unwrap();
    fs::rename(dir.join("files/.a.new"), dir.join("files/a")).unwrap();
    get(&address, "a", "two").succeeded();
    assert_eq!(fs::read(dir.join("two/a")).unwrap(), b"new and longer");
    assert_confined(sender.id(), 3, NET | FILES);
    fs::rename(dir.join("tree"), dir.join("former")).unwrap();
    fs::create_dir(dir.join("tree")).unwrap();
    fs::write(dir.join("tree/a"), "new").unwrap();
    let (unconfined, address_of_it) = start("1");
    assert_eq!(threads(unconfined.id(), 3)[0].value("Seccomp"), "0");
    get(&address_of_it, "tree", "three").succeeded();
    assert_eq!(fs::read(dir.join("three/tree/a")).unwrap(), b"new");
    unconfined.kill();
    if landlock() == 0 {
        eprintln!("skipped: this kernel has no Landlock");
        return;
    }
    let line = get(&address, "tree", "four").failed(1);
    assert!(!line.contains(dir.to_str().unwrap()) && !line.contains("UNCONFINED"), "{line}");
    assert!(sender.is_running());
    let told = sender.interrupted().stderr;
    assert!(told.contains("start it again, or set ANABRANCH_UNCONFINED=1"), "{told}");
}
