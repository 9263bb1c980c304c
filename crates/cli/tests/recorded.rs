//! `doctor --load --trace`: a link with known rate, delay and loss is recorded through a relay. The
//! recording behaves as the link itself does, in the simulator and, as root, in the emulator.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
mod common;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/server.rs"]
mod server;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anabranch_emulate::{Lateness, PathConfig, Relay};
use common::anabranch;
use serde_json::Value;
use server::Server;

/// Largest relative deviation of a figure of the recording from the link's own.
const TOLERANCE: f64 = 0.05;
/// Largest relative deviation of a transfer's goodput. Where the rate changes, congestion control
/// amplifies small differences: the goodput over the original differs by some percent from seed to
/// seed.
const OF_GOODPUT: f64 = 0.1;

/// Lateness of the relay, 99th percentile, up to which its links are those that were asked for.
const PUNCTUAL: Duration = Duration::from_millis(2);
/// Most attempts to fill a link until the relay is punctual.
const LOADS: usize = 6;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn close(what: &str, measured: f64, expected: f64, tolerance: f64) {
    println!("{what}: {measured:.3} measured, {expected:.3} expected");
    assert!((measured / expected - 1.0).abs() <= tolerance, "{what}: {measured}, not {expected}");
}

/// The goodput of a transfer over the links of a scenario in the simulator, Mb/s.
fn simulated(scenario: &Path) -> f64 {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("results");
    let line = format!("sim run {} --seeds 3 --out {}", scenario.display(), out.display());
    anabranch(&line).succeeded();
    let summary = json(&fs::read_to_string(out.join("summary.json")).unwrap());
    let metrics = summary["points"][0]["metrics"].as_array().unwrap();
    let goodput =
        metrics.iter().find(|it| it["subject"] == "bonded" && it["metric"] == "goodput_mbps");
    goodput.unwrap()["mean"].as_f64().unwrap()
}

/// The lines of a trace.
fn lines(file: &Path) -> Vec<(f64, f64)> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let numbers = lines.map(|line| line.split_once(' ').unwrap());
    numbers.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).collect()
}

/// Records 24 s of a link into `directory`, and returns the summary that `doctor` printed.
fn record(link: &str, directory: &Path) -> Value {
    let server = Server::start(&[], "");
    let link: PathConfig = link.parse().unwrap();
    let relay = Relay::start(&[link], server.address.parse().unwrap(), 1).unwrap();
    let line = format!(
        "doctor {} --peer {} --pings 20 --load --trace {} --time 24 --json",
        relay.addresses()[0],
        server.key,
        directory.display()
    );
    let ran = anabranch(&line);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let report = json(&ran.stdout);
    let trace = &report["peer"]["paths"][0]["measured"]["trace"];
    assert!(trace.is_object(), "{report:#}");
    trace.clone()
}

#[test]
fn a_link_whose_rate_moves_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let original = directory.path().join("original");
    fs::create_dir(&original).unwrap();
    let rates = original.join("p.rate");
    // 18 Mb/s on average, three seconds at 24 and three at 12.
    fs::write(&rates, "0 24\n3 12\n").unwrap();
    let scenario = "name = \"original\"\nduration = \"24s\"\n[[path]]\nname = \"p\"\n\
        rate = { trace = \"p.rate\" }\ndelay = \"30ms\"\nloss = \"2%\"\n\
        [[flow]]\nname = \"bonded\"\nprofile = \"anabranch\"\n";
    fs::write(original.join("links.toml"), scenario).unwrap();

    let copy = directory.path().join("copy");
    let link = format!("name=p,rate=trace:{},delay=30ms,loss=2%", rates.display());
    let trace = record(&link, &copy);
    close("rate, Mb/s", trace["mbps"].as_f64().unwrap(), 18.0, TOLERANCE);
    close("its low, Mb/s", trace["mbps_p10"].as_f64().unwrap(), 12.0, TOLERANCE);
    close("its high, Mb/s", trace["mbps_p90"].as_f64().unwrap(), 24.0, TOLERANCE);
    let delays: Vec<f64> =
        lines(&copy.join("lo-2.delay")).iter().map(|(_, delay)| *delay).collect();
    assert!(delays.len() >= 4, "{delays:?}");
    delays.iter().for_each(|delay| close("delay, ms", *delay, 30.5, TOLERANCE));
    // Some 50,000 packets: five standard deviations of a binomial are 0.3 %.
    let loss = trace["loss"].as_f64().unwrap();
    assert!((loss - 0.02).abs() < 0.004, "{loss}");
    close(
        "replayed goodput, Mb/s",
        simulated(&copy.join("links.toml")),
        simulated(&original.join("links.toml")),
        OF_GOODPUT,
    );
}

#[test]
fn a_policer_is_recorded_by_what_it_lets_through() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy");
    let trace = record("name=p,rate=50mbit,delay=20ms,policer=10mbit/64KiB", &copy);
    assert_eq!(trace["policed"], true, "{trace:#}");
    close("rate, Mb/s", trace["mbps"].as_f64().unwrap(), 10.0, TOLERANCE);
    // The policer's drops are no losses of the link, which has none.
    assert_eq!(trace["loss"], 0.0, "{trace:#}");
    let scenario = fs::read_to_string(copy.join("links.toml")).unwrap();
    for part in ["# A policer dropped traffic above this rate", "loss = \"0%\""] {
        assert!(scenario.contains(part), "{part}: {scenario}");
    }
}

/// `--load` measures what a transfer would get, even if losses are not caused by congestion.
///
/// A load counts only if the relay sent packets on in time. Where the machine keeps it waiting, packets are delayed as by a
/// queue, and a controller rightly takes the losses of that moment for congestion.
#[test]
fn a_lossy_link_is_filled_as_a_transfer_fills_it() {
    for _ in 0..LOADS {
        let server = Server::start(&[], "");
        let link: PathConfig = "name=p,rate=20mbit,delay=20ms,loss=2%".parse().unwrap();
        let relay = Relay::start(&[link], server.address.parse().unwrap(), 1).unwrap();
        let path = relay.addresses()[0];
        let line = format!("doctor {path} --peer {} --pings 20 --load --json", server.key);
        let report = json(&anabranch(&line).stdout);
        let load = &report["peer"]["paths"][0]["measured"]["load"];
        let stats = relay.stats();
        let late = Lateness::merged(stats.paths[0].routes.iter().map(|route| &route.lateness));
        if late.quantile(0.99) <= PUNCTUAL {
            // 98 % of the link's rate arrive.
            close("rate, Mb/s", load["mbps"].as_f64().unwrap(), 19.6, 0.1);
            let loss = load["loss"].as_f64().unwrap();
            assert!((0.005..0.06).contains(&loss), "{report:#}");
            return;
        }
    }
    println!("skipped: the relay was late in {LOADS} loads, since the machine is busy");
}
