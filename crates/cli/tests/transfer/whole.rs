//! Transfers without disturbance.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::process::{Running, run};
use super::{Sides, pattern, text};

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// A receiver on two loopback addresses, with the `--path`s that lead to each of them.
fn receiver(sides: &Sides) -> (Running, String, String) {
    let line = "recv --json --yes --listen 127.0.0.1 --listen 127.0.0.2 --out";
    let mut receiver = Running::start(line, &[&sides.to()]);
    let (ticket, event) = receiver.ticket();
    let addresses = event["addresses"].as_array().unwrap();
    let path = |address: &Value| format!("--path lo@{}", address.as_str().unwrap());
    let paths: Vec<String> = addresses.iter().map(path).collect();
    (receiver, ticket, paths.join(" "))
}

#[test]
fn files_and_directories_cross_over_two_paths() {
    let sides = Sides::new();
    let film = sides.write("film.mp4", &pattern(3_000_000));
    sides.write("photos/a/1.jpg", b"one");
    let script = sides.write("photos/run.sh", b"#!/bin/sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    sides.write("photos/empty", b"");
    std::fs::create_dir(sides.from("photos/none")).unwrap();
    let (receiver, ticket, paths) = receiver(&sides);
    let files = format!("send --json {} {} {ticket}", text(&film), text(&sides.from("photos")));
    let sent = run(&format!("{files} {paths}"), &[]).report();
    let received = receiver.end().report();
    for report in [&sent, &received] {
        assert_eq!(report["event"], "done");
        assert_eq!((number(report, "files"), number(report, "bytes")), (4, 3_000_012), "{report}");
        assert_eq!((number(report, "moved_bytes"), number(report, "kept_bytes")), (3_000_012, 0));
        let paths = report["paths"].as_array().unwrap();
        assert_eq!(paths.len(), 2, "{report}");
        let shares: f64 = paths.iter().map(|path| path["share"].as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{report}");
        assert!(paths.iter().all(|path| number(path, "bytes") > 0), "{report}");
    }
    assert_eq!((&sent["role"], &received["role"]), (&"sent".into(), &"received".into()));
    assert!(sides.arrived("film.mp4") == pattern(3_000_000));
    assert_eq!(sides.arrived("photos/a/1.jpg"), b"one");
    assert_eq!(sides.arrived("photos/empty"), b"");
    assert!(sides.to().join("photos/none").is_dir());
    let mode = |name: &str| std::fs::metadata(sides.to().join(name)).unwrap().permissions().mode();
    assert_eq!((mode("photos/run.sh") & 0o100, mode("film.mp4") & 0o111), (0o100, 0));
    assert_eq!(sides.names(), ["film.mp4", "photos"]);
    let time = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(time(&film), time(&sides.to().join("film.mp4")));
}

#[test]
fn a_ticket_serves_once() {
    let sides = Sides::new();
    let file = sides.write("a", b"first");
    let (receiver, ticket, _) = receiver(&sides);
    run(&format!("send {} {ticket}", text(&file)), &[]).succeeded();
    receiver.end().succeeded();
    assert_eq!(sides.arrived("a"), b"first");
    let line = run(&format!("send {} {ticket} --timeout 1", text(&file)), &[]).failed(3);
    assert!(line.contains("nobody answered"), "{line}");
}

#[test]
fn people_are_told_what_happened() {
    let sides = Sides::new();
    let file = sides.write("a", &pattern(100_000));
    let mut sender = Running::start("send --listen 127.0.0.1 --json", &[&file]);
    let (ticket, _) = sender.ticket();
    let got = run(&format!("get {ticket} --out"), &[&sides.to()]);
    let shown = String::from_utf8(got.succeeded()).unwrap();
    assert!(shown.starts_with("Received 1 file, 100.0 kB, in "), "{shown}");
    assert!(shown.contains("; verified\n") && shown.contains("Paths: "), "{shown}");
    sender.end().succeeded();
    assert!(sides.arrived("a") == pattern(100_000));
    let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
    let (ticket, _) = receiver.ticket();
    let sent = run(&format!("send {} {ticket}", text(&file)), &[]);
    let shown = String::from_utf8(sent.succeeded()).unwrap();
    assert!(shown.starts_with("Sent 1 file") && shown.contains("; resumed at 100.0 kB"), "{shown}");
    let report = receiver.end().report();
    assert_eq!((number(&report, "moved_bytes"), number(&report, "kept_bytes")), (0, 100_000));
}

#[test]
fn pipes_lead_through() {
    let data = pattern(700_000);
    let mut sender = Running::start("send - --name pipe --listen 127.0.0.1 --json", &[]);
    let (ticket, _) = sender.ticket();
    sender.feed(&data);
    let got = run(&format!("get {ticket} --out - --quiet"), &[]);
    assert!(got.stderr.contains("Received 1 file"), "{}", got.stderr);
    assert!(got.succeeded() == data);
    sender.end().succeeded();
}

#[test]
fn a_stream_is_stored_under_its_name() {
    let (sides, data) = (Sides::new(), pattern(70_000));
    let (receiver, ticket, _) = receiver(&sides);
    let mut sender = Running::start(&format!("send - --name src.tar {ticket}"), &[]);
    sender.feed(&data);
    sender.end().succeeded();
    receiver.end().succeeded();
    assert!(sides.arrived("src.tar") == data);
    assert_eq!(sides.names(), ["src.tar"]);
}

#[test]
fn allowed_peers_come_again_and_again() {
    let sides = Sides::new();
    let (server_key, server) = sides.key("server");
    let (client_key, client) = sides.key("client");
    sides.write("shared/x/1", b"one");
    sides.write("shared/x/2", b"two");
    sides.write("shared/y", b"why");
    let line = format!("send --json --listen 127.0.0.1 --allow {client} --key");
    let mut sender = Running::start(&line, &[&server_key, &sides.from("shared")]);
    let event = sender.event();
    assert_eq!(
        (&event["event"], &event["public_key"]),
        (&"listening".into(), &server.as_str().into())
    );
    let address = event["addresses"][0].as_str().unwrap();
    let from = format!("--from {address} --peer {server} --key {}", text(&client_key));
    let get = |what: &str| run(&format!("get {what} {from} --json --out"), &[&sides.to()]);
    assert_eq!(number(&get("shared/x/2").report(), "files"), 1);
    assert_eq!(sides.arrived("shared/x/2"), b"two");
    let line = get("shared/x/3").failed(1);
    assert!(line.contains("nothing here is called shared/x/3"), "{line}");
    let all = get("").report();
    assert_eq!((number(&all, "files"), number(&all, "kept_bytes")), (3, 3), "{all}");
    assert_eq!(sides.arrived("shared/y"), b"why");
    let told: Vec<Value> = std::iter::from_fn(|| Some(sender.event()))
        .scan(0, |done, event| {
            *done += u8::from(event["event"] == "done");
            (*done < 2).then_some(event)
        })
        .collect();
    let done = told.iter().find(|event| event["event"] == "done").unwrap();
    assert_eq!(number(done, "files"), 1);
    // The share is rounded in the report.
    assert_eq!(done["paths"][0]["share"], 1.0, "{done}");
    let files: Vec<&Value> = told.iter().filter(|event| event["event"] == "file").collect();
    assert_eq!(files[0]["name"], "shared/x/2", "{told:?}");
    assert_eq!(files[0]["bytes"], 3, "{told:?}");
    assert!(told.iter().any(|event| event["event"] == "connected"), "{told:?}");
    assert!(sender.is_running());
}

#[test]
fn many_small_files_cross() {
    let sides = Sides::new();
    for number in 0..300 {
        sides.write(&format!("many/{number}"), &pattern(number));
    }
    let (receiver, ticket, paths) = receiver(&sides);
    let many = sides.from("many");
    let sent = run(&format!("send --json {} {ticket} {paths}", text(&many)), &[]).report();
    assert_eq!(number(&sent, "files"), 300);
    receiver.end().succeeded();
    for number in 0..300 {
        assert!(sides.arrived(&format!("many/{number}")) == pattern(number), "{number}");
    }
}
