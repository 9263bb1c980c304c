//! Transfers whose processes are killed.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::process::{Ended, Running, run};
use super::{Sides, pattern, text};

/// Bytes that the notes of partial files report as received.
fn noted(dir: &Path) -> u64 {
    let items = fs::read_dir(dir).unwrap().map(|item| item.unwrap().path());
    let notes = items.filter(|path| path.extension().is_some_and(|ending| ending == "state"));
    notes
        .map(|path| {
            let note: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let offset = note["offset"].as_u64().unwrap();
            let part = fs::metadata(path.with_extension("part"));
            assert!(part.is_ok_and(|part| part.len() >= offset), "{note}");
            offset
        })
        .sum()
}

/// Waits until something happens, but not for ever.
fn wait_for(mut happened: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if happened() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("it never happened");
}

/// Runs a command again while the other side has not noticed yet that the last one is gone.
fn insist(mut run: impl FnMut() -> Ended) -> Ended {
    let mut ended = run();
    for _ in 0..30 {
        if ended.code != Some(3) {
            break;
        }
        ended = run();
    }
    ended
}

/// Checks that every file under its final name is whole, and returns their number.
fn check(sides: &Sides, expected: &[(String, Vec<u8>)]) -> usize {
    let there = sides.names();
    let mut whole = 0;
    for (name, bytes) in expected {
        if there.contains(name) {
            assert!(sides.arrived(name) == *bytes, "{name} is under its name and not whole");
            whole += 1;
        }
    }
    whole
}

/// Pauses that differ from one kill to the next, but are the same in every run of a test.
fn pauses() -> impl Iterator<Item = Duration> {
    let mut state = 12_345_u64;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(100 + (state >> 33) % 1500)
    })
}

#[test]
fn a_receiver_killed_at_any_time_loses_nothing_it_has_reported() {
    let sides = Sides::new();
    let (server_key, server) = sides.key("server");
    let (client_key, client) = sides.key("client");
    let mut files = vec![("film".to_owned(), pattern(60_000_000))];
    files.extend((0..12).map(|n| (format!("photo-{n}"), pattern(1_000_000 + n))));
    for (name, bytes) in &files {
        sides.write(name, bytes);
    }
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let receive = format!(
        "recv --quiet --listen 127.0.0.1:{port} --allow {client} --key {} --timeout 2 --out",
        text(&server_key)
    );
    let names: Vec<String> =
        files.iter().map(|(name, _)| text(&sides.from(name)).to_owned()).collect();
    let send = format!(
        "send {} --quiet --json --to 127.0.0.1:{port} --peer {server} --key {} --timeout 2",
        names.join(" "),
        text(&client_key)
    );
    // The sender lives through all kills, or is started again where it gives up.
    let mut sender = Running::start(&send, &[]);
    let (mut reported, mut kills) = ((0, 0), 0);
    for pause in pauses().take(8) {
        let receiver = Running::start(&receive, &[&sides.to()]);
        std::thread::sleep(pause);
        let done = !sender.is_running();
        receiver.kill();
        kills += 1;
        let now = (check(&sides, &files), noted(&sides.to()));
        assert!(now.0 >= reported.0, "files went: {now:?} after {reported:?}");
        assert!(
            now.0 > reported.0 || now.1 >= reported.1,
            "bytes went: {now:?} after {reported:?}"
        );
        reported = now;
        if done {
            break;
        }
    }
    let _receiver = Running::start(&receive, &[&sides.to()]);
    let mut first = Some(sender);
    let ended = insist(|| match first.take() {
        Some(sender) => sender.end(),
        None => run(&send, &[]),
    });
    let report = ended.report();
    assert_eq!(check(&sides, &files), files.len());
    assert_eq!(report["bytes"].as_u64(), Some(files.iter().map(|(_, b)| b.len() as u64).sum()));
    assert_eq!(sides.names().len(), files.len(), "{:?}", sides.names());
    assert!(kills > 0);
}

/// Kills a sender of 40 MB when the receiver has at least one of them, and runs it again after `change`. Returns the second
/// one's report.
fn send_twice(sides: &Sides, change: impl FnOnce(&Path)) -> Value {
    let file = sides.write("film", &pattern(40_000_000));
    let line = "recv --json --quiet --listen 127.0.0.1 --timeout 2 --out";
    let mut receiver = Running::start(line, &[&sides.to()]);
    let (ticket, _) = receiver.ticket();
    let send = format!("send {} {ticket} --json --quiet --timeout 5", text(&file));
    let mut sender = Running::start(&send, &[]);
    let begun = |sides: &Sides| {
        let parts = sides.names().into_iter().filter(|name| name.ends_with(".part"));
        parts.map(|name| fs::metadata(sides.to().join(name)).map_or(0, |m| m.len())).sum::<u64>()
    };
    wait_for(|| begun(sides) >= 1_000_000 || !sender.is_running());
    sender.kill();
    change(&file);
    // Until the receiver notices the kill, it serves nobody else, so the sender may have to try
    // again.
    let report = insist(|| run(&send, &[])).report();
    receiver.end().succeeded();
    assert!(sides.arrived("film") == fs::read(&file).unwrap());
    assert_eq!(sides.names(), ["film"]);
    report
}

#[test]
fn a_sender_killed_in_the_middle_is_gone_on_from() {
    let report = send_twice(&Sides::new(), |_| ());
    assert!(report["kept_bytes"].as_u64().unwrap() >= 1_000_000, "{report}");
}

/// The receiver asks for the rest before it knows that what it has belongs to another file, and then for all of it.
#[test]
fn what_belongs_to_another_file_of_the_same_size_and_time_does_not_count_as_kept() {
    let report = send_twice(&Sides::new(), |file| {
        let time = fs::metadata(file).unwrap().modified().unwrap();
        let mut bytes = fs::read(file).unwrap();
        bytes[0] ^= 1;
        fs::write(file, bytes).unwrap();
        fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
    });
    assert_eq!((&report["bytes"], &report["kept_bytes"]), (&40_000_000.into(), &0.into()));
    assert!(report["moved_bytes"].as_u64().unwrap() >= 40_000_000, "{report}");
}

#[test]
fn interrupting_is_one_line_and_keeps_what_has_come() {
    let sides = Sides::new();
    let file = sides.write("film", &pattern(80_000_000));
    let mut sender = Running::start("send --json --quiet --listen 127.0.0.1 --timeout 2", &[&file]);
    let (ticket, _) = sender.ticket();
    let get = format!("get {ticket} --json --quiet --timeout 5 --out");
    let mut getter = Running::start(&get, &[&sides.to()]);
    wait_for(|| !sides.names().is_empty() || !getter.is_running());
    let pid = getter.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let line = getter.end().failed(130);
    assert!(line.contains("interrupted"), "{line}");
    assert!(!sides.names().contains(&"film".to_owned()));
    assert!(sender.is_running());
    let ended = insist(|| run(&get, &[&sides.to()]));
    assert_eq!(ended.report()["bytes"], 80_000_000);
    assert_eq!(sides.names(), ["film"]);
}
