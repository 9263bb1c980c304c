//! `--qlog` and `RUST_LOG`: what a connection reports while it works.

#[path = "../../results/tests/qlog/fields.rs"]
mod fields;
#[path = "common/server.rs"]
mod server;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use server::Server;

fn client(server: &Server, options: &[&str], log: &str) -> Output {
    let line = ["bench", "client", &server.address, "--peer", &server.key, "--bytes", "300kB"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(line).args(options).env("RUST_LOG", log).output().unwrap()
}

/// The texts of the one file in a directory whose name begins so: header first, then events.
fn qlog(directory: &Path, stem: &str) -> Vec<Value> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &Path| path.file_name().unwrap().to_str().unwrap().starts_with(stem);
    let files: Vec<_> = files.filter(|path| named(path)).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(file.extension().unwrap(), "sqlog", "complete");
    let text = std::fs::read_to_string(file).unwrap();
    text.split('\u{1e}').skip(1).map(|text| serde_json::from_str(text).unwrap()).collect()
}

#[test]
fn both_sides_write_what_they_decide() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let server = Server::start(&["--once", "--qlog", path], "");
    let output = client(&server, &["--qlog", path], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.ended();
    for (stem, side) in [("bench-client-", "client"), ("bench-server-", "server")] {
        let texts = qlog(directory.path(), stem);
        assert_eq!(texts[0]["trace"]["vantage_point"]["type"], side);
        let sends = |event: &&Value| event["name"] == "anabranch:scheduled";
        let sent = texts[1..].iter().filter(sends).count();
        // The client sends the data; the server its answers.
        assert!(sent > if side == "client" { 100 } else { 0 }, "{side}: {sent}");
        fields::check(&texts);
        let count = |name: &str| texts[1..].iter().filter(|event| event["name"] == name).count();
        // Each side receives what the other sends; packets carry the symbols.
        assert!(count("transport:packet_sent") > 0 && count("transport:packet_received") > 0);
        assert!(count("transport:packet_sent") >= sent / 2, "{side}");
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["bench", "server", "--listen", "127.0.0.1:0", "--anyone", "--qlog", path])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--qlog"));
}

#[test]
fn the_log_tells_of_connections_and_only_if_asked() {
    let server = Server::start(&["--once"], "anabranch=info");
    let output = client(&server, &[], "");
    let silent = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !silent.contains("connection{"), "{silent}");
    let log = server.ended();
    let line = |what: &str| {
        log.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {log}"))
    };
    for what in [": opened", ": closed"] {
        assert!(line(what).contains("connection{id="), "{log}");
        assert!(line(what).contains("side=\"server\""), "{log}");
    }
}

#[test]
fn a_refused_handshake_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let file = directory.path().join(name).to_str().unwrap().to_owned();
        let keygen = ["keygen", "--out", &file];
        let ran = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(keygen).output().unwrap();
        (file, String::from_utf8(ran.stdout).unwrap().trim().to_owned())
    };
    let ((server_key, public), (_, other)) = (key("server"), key("other"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["serve", "--listen", "127.0.0.1:0", "--key", &server_key, "--allow", &other])
        .env("RUST_LOG", "anabranch=info")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let address = first.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap();
    let doctor = ["doctor", address, "--peer", &public, "--json"];
    let ran = Command::new(env!("CARGO_BIN_EXE_anabranch")).args(doctor).output().unwrap();
    assert_eq!(ran.status.code(), Some(3));
    // If the test runs as root, an earlier line warns about that.
    let told = lines.find(|line| line.contains("handshake refused")).unwrap();
    assert!(told.contains("NotPermitted"), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_filter_that_makes_no_sense_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .arg("profiles")
        .env("RUST_LOG", "anabranch=loudly")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("RUST_LOG"));
}
