//! `doctor`: alone, with peers on loopback, and between network namespaces over links of which one
//! loses everything, one something, and one the congestion marks. The namespaces need root and
//! iproute2; elsewhere that test says that it was skipped, and why.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
mod common;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "netns/lab.rs"]
mod lab;
#[path = "common/memory.rs"]
mod memory;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/relay.rs"]
mod relay;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/server.rs"]
mod server;

use common::{Ran, anabranch};
use lab::Lab;
use relay::Relay;
use serde_json::Value;
use server::Server;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The severity of a check about a subject.
fn severity<'a>(report: &'a Value, check: &str, subject: &str) -> &'a str {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["check"] == check && f["subject"] == subject);
    found.unwrap_or_else(|| panic!("{check} of {subject}: {report:#}"))["severity"]
        .as_str()
        .unwrap()
}

#[test]
fn this_machine_is_examined_without_a_peer() {
    let ran = anabranch("doctor --json");
    // A machine without any network has a problem, as this one may have.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let report = json(&ran.stdout);
    for check in ["links", "offloads", "buffers", "clock", "ipv6"] {
        severity(&report, check, "machine");
    }
    assert!(report["interfaces"].is_array() && report["peer"].is_null(), "{report:#}");
    let problem = report["verdict"] == "problem";
    assert_eq!(ran.code == Some(1), problem);
    let text = anabranch("doctor");
    assert_eq!(text.code, ran.code);
    assert!(text.stdout.contains("machine") && text.stdout.lines().all(|line| line.len() < 160));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in ["doctor --path lo", "doctor host:1", "doctor --load", "doctor host --peer x"] {
        assert_eq!(anabranch(line).code, Some(2), "{line}");
    }
    let key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let peer = format!("doctor 127.0.0.1:9 --peer {key}");
    let taken = tempfile::tempdir().unwrap();
    std::fs::write(taken.path().join("links.toml"), "").unwrap();
    let taken = taken.path().display();
    for (more, code, part) in [
        ("--trace there", 2, "--load"),
        ("--load --time 60", 2, "--trace"),
        ("--load --trace there --time 9", 2, "10..=3600"),
        ("--load --trace there --time 1h", 2, "--time"),
        (&format!("--load --trace {taken}"), 2, "exists already; name another directory"),
        ("--load --trace /no/such/place", 1, "cannot make /no/such/place"),
        ("--load --trace /dev/null", 1, "cannot make /dev/null"),
    ] {
        let ran = anabranch(&format!("{peer} {more}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{more}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{more}: {}", ran.stderr);
    }
}

#[test]
fn a_peer_on_loopback_is_measured() {
    let server = Server::start(&[], "");
    let line = format!("doctor {} --peer {} --pings 40 --load --json", server.address, server.key);
    let Ran { code, stdout, stderr } = anabranch(&line);
    let report = json(&stdout);
    assert!(matches!(code, Some(0 | 1)), "{stderr}");
    let paths = report["peer"]["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 1, "{report:#}");
    let path = &paths[0];
    assert_eq!((&path["name"], &path["outcome"]), (&"lo".into(), &"answered".into()));
    let measured = &path["measured"];
    assert!(measured["sent"].as_u64().unwrap() >= 40, "{measured}");
    assert!(measured["peer_sent"].as_u64().unwrap() >= 20, "{measured}");
    assert!(
        measured["rtt_min_ms"].as_f64().unwrap() <= measured["rtt_median_ms"].as_f64().unwrap()
    );
    assert_eq!(severity(&report, "ecn", "lo"), "ok");
    // The measuring server accepts packets of a fixed size only, so the link is not to blame.
    assert_eq!(severity(&report, "mtu", "lo"), "ok");
    assert_eq!((&measured["mtu"], &measured["mtu_limit"]), (&1480.into(), &1480.into()));
    assert!(measured["load"]["mbps"].as_f64().unwrap() > 0.0, "{measured}");
}

#[test]
fn a_port_without_a_listener_is_told() {
    let server = Server::start(&[], "");
    let (address, key) = (server.address.clone(), server.key.clone());
    drop(server);
    let ran = anabranch(&format!("doctor {address} --peer {key} --json"));
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let report = json(&ran.stdout);
    assert_eq!(report["peer"]["refused"], true);
    assert_eq!(severity(&report, "answer", "peer"), "problem");
}

/// Every link goes through a relay of its own, as routers would treat it: the second loses a tenth
/// of the packets, the third removes congestion marks, the fourth drops everything, and the first
/// changes nothing.
#[test]
fn links_are_told_apart() {
    let Some(lab) = Lab::new("doc", 4, 50) else { return };
    let (server_key, server) = lab.key("server");
    let (client_key, client) = lab.key("client");
    let listen = format!("{}:4433", Lab::SERVER);
    let args = ["serve", "--listen", &listen, "--key", &server_key, "--allow", &client, "--quiet"];
    let serving = lab.run("s", &args);
    let (lossy, bleaching) = lab.inside("r", |_| {
        let to = listen.parse().unwrap();
        (Relay::start("10.77.2.1:4433", to, Some(10)), Relay::start("10.77.3.1:4433", to, None))
    });
    lab.silence(4);
    let mut args: Vec<&str> = vec!["doctor", &listen, "--peer", &server, "--key", &client_key];
    args.extend(["--json", "--path", "c1", "--path", "c2@10.77.2.1:4433"]);
    args.extend(["--path", "c3@10.77.3.1:4433", "--path", "c4"]);
    let output = lab.run("c", &args).output();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(&String::from_utf8(output.stdout).unwrap());
    drop((serving, lossy, bleaching));
    assert_eq!(severity(&report, "loss-to-peer", "c1"), "ok");
    assert_eq!(severity(&report, "ecn", "c1"), "ok");
    assert_eq!(severity(&report, "loss-to-peer", "c2"), "note");
    assert_eq!(severity(&report, "loss-from-peer", "c2"), "note");
    assert_eq!(severity(&report, "loss-to-peer", "c3"), "ok");
    assert_eq!(severity(&report, "ecn", "c3"), "note");
    assert_eq!(severity(&report, "answer", "c4"), "problem");
    let lost = report["peer"]["paths"][1]["measured"]["lost"].as_u64().unwrap();
    assert!((10..=40).contains(&lost), "{lost} of some 200 packets, of which a tenth was dropped");
}
