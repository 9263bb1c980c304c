//! `--exclude`, `--links`, `--bwlimit` and `--dry-run`.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::process::{Ended, Running, run};
use super::{Sides, pattern, text};

/// A directory with links to its own entries, one link out of it, and files to exclude.
fn site() -> Sides {
    let sides = Sides::new();
    sides.write("site/releases/5/index.html", b"hello");
    sides.write("site/cache/x", b"cached");
    sides.write("site/a.tmp", b"temporary");
    symlink("releases/5", sides.from("site/current")).unwrap();
    symlink("current/index.html", sides.from("site/index.html")).unwrap();
    sides
}

fn lines(ended: &Ended) -> Vec<Value> {
    let text = String::from_utf8(ended.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const LEAVE_OUT: &str = "--exclude *.tmp --exclude cache/";

#[test]
fn links_arrive_as_links() {
    let sides = site();
    let line = "recv --json --listen 127.0.0.1 --out";
    // The second time, everything has arrived already.
    for _ in 0..2 {
        let mut receiver = Running::start(line, &[&sides.to()]);
        let (ticket, _) = receiver.ticket();
        let site = sides.from("site");
        run(&format!("send {} -l {LEAVE_OUT} {ticket}", text(&site)), &[]).succeeded();
        receiver.end().succeeded();
        let site = sides.to().join("site");
        assert_eq!(fs::read_link(site.join("current")).unwrap().to_str(), Some("releases/5"));
        assert_eq!(fs::read(site.join("index.html")).unwrap(), b"hello");
        assert!(site.join("index.html").is_symlink());
        assert!(!site.join("cache").exists() && !site.join("a.tmp").exists());
    }
}

#[test]
fn what_is_not_sent_is_named_and_the_exit_code_tells() {
    let sides = site();
    symlink("/etc/passwd", sides.from("site/out")).unwrap();
    let site = sides.from("site");
    for (options, named) in [("--links", 1), ("", 3)] {
        let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
        let (ticket, _) = receiver.ticket();
        let sent = run(&format!("send {} {options} --json {ticket}", text(&site)), &[]);
        receiver.end().succeeded();
        let told = sent.stderr.lines().filter(|line| line.starts_with("anabranch: not sent: "));
        assert_eq!(told.count(), named, "{}", sent.stderr);
        let events = lines(&sent);
        let skipped: Vec<&Value> =
            events.iter().filter(|event| event["event"] == "skipped").collect();
        assert_eq!(skipped.len(), named, "{events:?}");
        assert!(skipped.iter().any(|event| event["name"].as_str().unwrap().ends_with("site/out")));
        assert_eq!(events.last().unwrap()["event"], "done");
        assert!(sent.failed(1).contains("all else was sent"));
        assert!(!sides.to().join("site/out").is_symlink());
    }
}

#[test]
fn a_dry_run_lists_and_does_no_more() {
    let sides = site();
    let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
    let (ticket, _) = receiver.ticket();
    let line = format!("send {} -n -l {LEAVE_OUT}", text(&sides.from("site")));
    let shown = String::from_utf8(run(&format!("{line} {ticket}"), &[]).succeeded()).unwrap();
    let expected = "     directory  site
          link  site/current -> releases/5
          link  site/index.html -> current/index.html
     directory  site/releases
     directory  site/releases/5
       5 bytes  site/releases/5/index.html
Would send 1 file, 2 links and 3 directories, 5 bytes
";
    assert_eq!(shown, expected);
    assert!(receiver.is_running());
    assert_eq!(sides.names(), [""; 0]);
    let events = lines(&run(&format!("{line} --json"), &[]));
    assert_eq!(events.len(), 7);
    assert_eq!(events[1]["target"], "releases/5");
    let total = r#"{"event":"dry-run","files":1,"links":2,"directories":3,"bytes":5}"#;
    assert_eq!(events[6], serde_json::from_str::<Value>(total).unwrap());
    let without = run(&format!("send {} --dry-run", text(&sides.from("site"))), &[]);
    assert!(without.failed(1).contains("all else would be sent"));
}

#[test]
fn a_rate_is_kept_to() {
    let sides = Sides::new();
    let file = sides.write("a", &pattern(300_000));
    let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
    let (ticket, _) = receiver.ticket();
    let sent = run(&format!("send {} --json --bwlimit 1mbit {ticket}", text(&file)), &[]).report();
    // 2.4 s, except for the last piece.
    assert!(sent["seconds"].as_f64().unwrap() > 2.2, "{sent}");
    receiver.end().succeeded();
    assert!(sides.arrived("a") == pattern(300_000));
}

#[test]
fn what_is_asked_wrongly_is_one_line() {
    let sides = site();
    let site = text(&sides.from("site")).to_owned();
    for (options, word) in [
        ("--bwlimit 20", "such as 20mbit"),
        ("--bwlimit 1bit", "from 8kbit"),
        ("--exclude a{b", ".gitignore"),
        ("--exclude #a", ".gitignore"),
        ("--exclude site", "nothing is left to send"),
    ] {
        let line = run(&format!("send {site} {options}"), &[]).failed(2);
        assert!(line.contains(word), "{options}: {line}");
    }
}
