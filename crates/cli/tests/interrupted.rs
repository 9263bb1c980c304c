//! Ctrl-C ends a command at once if it only waits. Other commands first report what they measured.

#[path = "common/interrupt.rs"]
mod interrupt;

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::Command;

use interrupt::{interrupt, start};
use serde_json::Value;

#[test]
fn a_demonstration_shows_its_table() {
    let mut child = start(&["demo", "--time", "600", "--json"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("Mb/s")).unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    let mut out = child.stdout.take().unwrap();
    let (text, code) = interrupt(child, &mut out);
    assert_eq!(code, Some(130), "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["sha256_ok"], true, "{text}");
    assert!(report["seconds"].as_f64().unwrap() < 500.0, "{text}");
}

/// The program names the peer before it answers; Ctrl-C then ends the program at once.
#[test]
fn who_is_asked_is_named_at_once() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let key = tempfile::tempdir().unwrap();
    let file = key.path().join("key").to_str().unwrap().to_owned();
    let mut keygen = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let public = keygen.args(["keygen", "--out", &file]).output().unwrap().stdout;
    let public = String::from_utf8(public).unwrap().trim().to_owned();
    let send = ["send", &file, "--to", &address, "--peer", &public, "--key", &file];
    let connect = ["connect", &address, "--peer", &public, "--key", &file, "-L", "0:localhost:9"];
    let bench = ["bench", "client", &address, "--peer", &public];
    for (args, code) in [(&send[..], 130), (&connect[..], 0), (&bench[..], 130)] {
        let mut child = start(args);
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        while !first.contains(&address) {
            first.clear();
            assert!(said.read_line(&mut first).unwrap() > 0, "{args:?}");
        }
        let (text, ended) = interrupt(child, &mut said);
        assert_eq!(ended, Some(code), "{args:?}: {text}");
    }
}
