//! `bench` within one process and between two.

mod common;
#[path = "common/interrupt.rs"]
mod interrupt;
#[path = "common/server.rs"]
mod server;

use common::anabranch;
use std::io::{BufRead, BufReader};

use interrupt::{interrupt, start};
use serde_json::Value;
use server::Server;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn loopback_moves_every_byte_and_counts_repairs() {
    // A repair for every symbol: a larger block sends none if all its symbols are acknowledged first.
    let line = "bench client --loopback --bytes 5MB --parallel 2 --json \
                --set redundancy=fixed:share=1,sources=1";
    let report = json(&anabranch(line).succeeded());
    assert_eq!(report["start"]["test_start"]["num_streams"], 2);
    assert_eq!(report["end"]["sum_sent"]["bytes"], 5_000_000);
    assert_eq!(report["end"]["sum_received"]["bytes"], 5_000_000);
    assert_eq!(report["end"]["streams"].as_array().unwrap().len(), 2);
    assert!(report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() > 0.0);
    let upload = &report["end"]["upload"];
    let share = upload["repair_share"].as_f64().unwrap();
    let lost = upload["lost_packets"].as_u64().unwrap();
    // On a busy machine a socket's buffer overflows. Each lost packet costs a repair at most: of n symbols
    // and n + lost repairs, the repairs are .5 + lost / (4 n) or less, and no symbol has over 1500 bytes.
    let most = 0.5 + lost as f64 / (4.0 * 5e6 / 1500.0);
    assert!((0.3..=most).contains(&share), "{share}, {lost} lost");
    assert!(report["end"]["paths"][0]["sent_bytes"].as_u64().unwrap() > 5_000_000);
    assert!(report["end"].get("download").is_none());
}

#[test]
fn both_directions_go_between_two_processes() {
    let server = Server::start(&["--once"], "");
    let (to, key) = (&server.address, &server.key);
    let line = format!("bench client {to} --peer {key} --bidir --bytes 2MB --interval 0 --json");
    let report = json(&anabranch(&line).succeeded());
    for direction in ["upload", "download"] {
        assert_eq!(report["end"][direction]["received"]["bytes"], 2_000_000, "{direction}");
    }
    assert_eq!(report["intervals"].as_array().unwrap().len(), 0);
    server.ended();
}

#[test]
fn a_shared_secret_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (key, shared) = (file("key"), file("psk"));
    let public = anabranch(&format!("keygen --out {key}")).succeeded();
    anabranch(&format!("genpsk --out {shared}")).succeeded();
    let allow = ["--once", "--allow", public.trim(), "--preshared-key", &shared];
    let server = Server::start(&allow, "");
    let to = format!("{} --peer {} --key {key}", server.address, server.key);
    let line = format!("bench client {to} --bytes 1MB --json");
    let without = anabranch(&line);
    assert_eq!(without.code, Some(3), "{}", without.stderr);
    assert!(without.stderr.contains("keys right"), "{}", without.stderr);
    anabranch(&format!("{line} --preshared-key {shared}")).succeeded();
    server.ended();
}

#[test]
fn datagrams_are_counted_at_the_other_end() {
    let line = "bench client --loopback --udp --bitrate 4mbit --time 1 --interval 0.2 -J";
    let report = json(&anabranch(line).succeeded());
    let start = &report["start"]["test_start"];
    assert_eq!((&start["udp"], &start["target_bitrate"]), (&true.into(), &4_000_000.into()));
    let (sum, end) = (&report["end"]["sum"], &report["end"]);
    let sent = end["sum_sent"]["packets"].as_u64().unwrap();
    assert_eq!(sum["packets"].as_u64(), Some(sent), "{sum}");
    assert!((50..500).contains(&sent), "{sum}");
    let rate = end["sum_sent"]["bits_per_second"].as_f64().unwrap();
    assert!(rate < 4.2e6, "{rate}");
    let lost = sum["lost_packets"].as_f64().unwrap();
    assert_eq!(sum["lost_percent"].as_f64(), Some(100.0 * lost / sent as f64));
    assert!(sum["jitter_ms"].as_f64().unwrap() > 0.0, "{sum}");
    assert_eq!(end["streams"][0]["udp"], *sum);
    let counted: u64 = report["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|interval| interval["sum"]["packets"].as_u64().unwrap())
        .sum();
    assert!(counted > 0 && counted <= sent, "{counted} of {sent}");
}

#[test]
fn a_bitrate_bounds_what_is_sent() {
    let line = "bench client --loopback -b 4mbit --time 1 --parallel 2 --bidir --json";
    let report = json(&anabranch(line).succeeded());
    for direction in ["upload", "download"] {
        let sent = &report["end"][direction]["sent"];
        // At most half a megabyte and one piece are sent.
        assert!((100_000..=530_000).contains(&sent["bytes"].as_u64().unwrap()), "{sent}");
    }
}

#[test]
fn the_first_seconds_can_be_left_out() {
    let server = Server::start(&["--once"], "");
    let (to, key) = (&server.address, &server.key);
    let line = format!("bench client {to} --peer {key} -R -b 4mbit -O 1 -t 0.5 -i 0.25 -J");
    let report = json(&anabranch(&line).succeeded());
    let intervals = report["intervals"].as_array().unwrap();
    let omitted = |interval: &&Value| interval["sum"]["omitted"] == true;
    assert!(intervals.iter().filter(omitted).count() >= 2, "{intervals:?}");
    let counted: Vec<&Value> = intervals.iter().filter(|interval| !omitted(interval)).collect();
    assert_eq!(counted[0]["sum"]["start"], 0.0);
    let download = &report["end"]["download"];
    let (sent, received) = (&download["sent"], &download["received"]);
    // About a quarter of a megabyte is counted; with the omitted time it would be three quarters.
    assert!(sent["bytes"].as_u64().unwrap() <= 320_000, "{sent}");
    assert!(received["bytes"].as_u64().unwrap() <= 450_000, "{received}");
    assert!(sent["seconds"].as_f64().unwrap() < 0.75, "{sent}");
    assert!(report["end"]["paths"][0]["received_bytes"].as_u64().unwrap() < 550_000);
    server.ended();
}

#[test]
fn small_messages_are_timed_idle_and_under_load() {
    let server = Server::start(&["--once"], "");
    let (to, key) = (&server.address, &server.key);
    let line = format!("bench client {to} --peer {key} --bidir -u --latency -t 1 --json");
    let report = json(&anabranch(&line).succeeded());
    let latency = &report["end"]["latency"];
    for (when, least) in [("idle", 10), ("loaded", 3)] {
        let seen = &latency[when];
        assert!(seen["count"].as_u64().unwrap() >= least, "{latency}");
        let ms = |name: &str| seen[name].as_f64().unwrap();
        assert!(ms("min_ms") > 0.0 && ms("min_ms") <= ms("median_ms"), "{latency}");
        assert!(ms("median_ms") <= ms("p95_ms") && ms("p95_ms") <= ms("max_ms"), "{latency}");
        let most = 60_000.0 / ms("min_ms");
        assert!((0.0..=most).contains(&ms("round_trips_per_minute")), "{latency}");
    }
    for direction in ["upload", "download"] {
        assert!(report["end"][direction]["received"]["packets"].as_u64().unwrap() > 0);
    }
    server.ended();
}

#[test]
fn people_read_losses_jitter_and_round_trips() {
    let line = "bench client --loopback -u -b 2mbit -O 0.3 -t 0.6 -i 0.3 --latency";
    let text = anabranch(line).succeeded();
    for part in ["(omitted)", " datagrams", "lost ", "jitter ", "round trip idle: median "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("round trip under load: median ") && text.contains(" per minute"));
}

#[test]
fn people_read_rates_and_paths() {
    let server = Server::start(&["--once"], "");
    let (to, key) = (&server.address, &server.key);
    let line = format!("bench client {to} --peer {key} --reverse --time 0.3 --interval 0.1");
    let text = anabranch(&line).succeeded();
    assert!(text.contains("the other to this: "), "{text}");
    assert!(text.contains("lo: ") && text.contains("on the wire"), "{text}");
    let told = server.ended();
    assert!(told.contains("client 127.0.0.1:") && told.contains(": sent "), "{told}");
}

#[test]
fn a_measurement_shows_its_totals() {
    let server = Server::start(&[], "");
    let mut child = start(&[
        "bench",
        "client",
        &server.address,
        "--peer",
        &server.key,
        "-t",
        "600",
        "-i",
        "0.1",
    ]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        out.read_line(&mut String::new()).unwrap();
    }
    let (text, code) = interrupt(child, &mut out);
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("this side to the other: ") && text.contains("on the wire"), "{text}");
}

/// The seed decides which symbols are lost, so that everything but the speeds is the same each
/// time.
#[test]
fn codes_are_measured_side_by_side() {
    let line = "bench codes --sources 20,600 --symbol 64 --loss 10%,50% --blocks 20 --json";
    let rows = json(&anabranch(line).succeeded());
    let rows = rows.as_array().unwrap();
    let names = |sources: u64, loss: f64| -> Vec<&str> {
        let here = rows.iter().filter(|row| row["sources"] == sources && row["loss"] == loss);
        here.map(|row| row["code"].as_str().unwrap()).collect()
    };
    let all = ["reed-solomon", "random-linear", "lt", "raptorq", "sliding-window"];
    assert_eq!(names(20, 0.1), all);
    // Blocks of 600 symbols are too large for two of the codes.
    assert_eq!(names(600, 0.5), ["random-linear", "raptorq", "sliding-window"]);
    for row in rows {
        let beyond = row["beyond_mean"].as_f64().unwrap();
        let most = match row["code"].as_str().unwrap() {
            "reed-solomon" => 0.0,
            "raptorq" => 0.1,
            "random-linear" => 3.0,
            _ => f64::INFINITY,
        };
        assert!((0.0..=most).contains(&beyond), "{row}");
        for speed in ["encode_mb_per_s", "decode_mb_per_s", "last_us", "held_bytes"] {
            assert!(row[speed].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    let text = anabranch("bench codes lt --sources 30 --symbol 64 --blocks 3").succeeded();
    assert!(text.contains("F = 30, 10 % lost, 3 blocks") && text.contains("lt "), "{text}");
}

#[test]
fn what_is_asked_wrongly_is_one_line() {
    for (line, word) in [
        ("bench client", "--peer"),
        ("bench client --loopback --time 0", "seconds"),
        ("bench client --loopback --time 1 --bytes 1MB", "--bytes"),
        ("bench client --loopback --profile tcp", "known: anabranch"),
        ("bench client --loopback --set scheduler=best", "scheduler=best"),
        ("bench client --loopback --parallel 0", "parallel"),
        ("bench client --loopback --udp --parallel 2", "--udp"),
        ("bench client --loopback --bitrate 10", "such as 20mbit"),
        ("bench client --loopback --bitrate 0mbit", "8kbit"),
        ("bench client --loopback --omit 61", "60"),
        ("bench client --loopback --omit 1 --bytes 1MB", "--omit"),
        ("bench client --loopback --preshared-key psk", "--preshared-key"),
        ("bench client host:1 --preshared-key psk", "--peer"),
        ("bench server --anyone --preshared-key psk", "--preshared-key"),
        ("bench server", "--allow"),
        ("bench codes turbo", "turbo"),
        ("bench codes lt:sources=0", "sources"),
        ("bench codes --loss 95%", "below 0.9"),
        ("bench codes --sources 2000", "1024"),
        ("bench codes --symbol 4", "8"),
        ("bench codes --blocks 0", "blocks"),
    ] {
        let ran = anabranch(line);
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{line}: {}", ran.stderr);
    }
    let ran = anabranch("bench server --anyone --listen 192.0.2.1:1 --once");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot listen"), "{}", ran.stderr);
}
