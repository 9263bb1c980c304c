//! The demo end to end. No test here checks speed, since the machine may be busy.

mod common;

use common::anabranch;
use serde_json::Value;

fn report(line: &str) -> Value {
    let text = anabranch(line).succeeded();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {value}"))
}

#[test]
fn the_report_has_every_figure() {
    let report = report("demo --json --time 2");
    assert_eq!(report["sha256_ok"], true);
    assert_eq!(report["profile"], "anabranch");
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["seed"], 1);
    for key in ["bytes", "seconds", "goodput_mbps", "erasure_capacity_mbps", "efficiency"] {
        assert!(number(&report, key) > 0.0, "{key}: {report}");
    }
    assert!(number(&report, "simulated_mbps") > 0.0, "{report}");
    assert!(
        number(&report, "links_late_p99_ms") <= number(&report, "links_late_max_ms"),
        "{report}"
    );
    for key in ["best_single_path_mbps", "blocks", "repairs_sent", "repairs_unneeded"] {
        assert!(number(&report, key) >= 0.0, "{key}: {report}");
    }
    assert!(number(&report, "efficiency") < 1.0, "{report}");
    let expected = number(&report, "bytes") * 8e-6 / number(&report, "seconds");
    assert!((number(&report, "goodput_mbps") / expected - 1.0).abs() < 1e-3, "{report}");
    let paths = report["paths"].as_array().unwrap();
    let names: Vec<&str> = paths.iter().map(|path| path["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sat", "lte", "wifi"]);
    for path in paths {
        for key in [
            "rate_mbps",
            "delay_ms",
            "loss_configured",
            "loss_realised",
            "ecn_marks",
            "queue_drops",
        ] {
            assert!(number(path, key) >= 0.0, "{key}: {path}");
        }
        assert!(number(path, "delivered_packets") <= number(path, "sent_packets"), "{path}");
        assert!(path.get("srtt_ms").is_some(), "{path}");
    }
    assert_eq!(number(&paths[2], "loss_configured"), 0.2);
    let shares: f64 = paths.iter().map(|path| number(path, "share")).sum();
    assert!((shares - 1.0).abs() < 1e-3, "{shares}");
}

#[test]
fn sizes_and_files_arrive_whole() {
    let paths = "--path name=a,rate=20mbit,delay=5ms,loss=3% --path name=b,rate=10mbit,delay=10ms";
    let sized = report(&format!("demo --json --size 300kB {paths} --ack-loss 2%"));
    assert_eq!((&sized["bytes"], &sized["sha256_ok"]), (&300_000.into(), &true.into()));
    let directory = tempfile::tempdir().unwrap();
    for size in [0_usize, 1, 100_001] {
        let file = directory.path().join(size.to_string());
        std::fs::write(&file, vec![7; size]).unwrap();
        let file = file.display();
        let sent = report(&format!("demo --json --profile uncoded --file {file} {paths}"));
        assert_eq!((&sent["bytes"], &sent["sha256_ok"]), (&size.into(), &true.into()));
    }
}

#[test]
fn people_get_a_table_and_a_verdict() {
    let path = "--path name=radio,rate=10mbit,delay=5ms,loss=5%,ecn";
    let ran = anabranch(&format!("demo --size 200kB --profile mplot {path}"));
    assert!(ran.stderr.contains("profile mplot"), "{}", ran.stderr);
    let text = ran.succeeded();
    for part in
        ["radio", "marks", "What arrived is what was sent", "All 200.0 kB arrived intact at"]
    {
        assert!(text.contains(part), "missing '{part}' in:\n{text}");
    }
}

#[test]
fn changed_policies_are_used_on_both_sides() {
    let line = "demo --json --size 100kB --path rate=10mbit,delay=5ms,loss=1% \
        --set scheduler=round-robin --set ack=same-path --set congestion=cubic";
    assert_eq!(report(line)["sha256_ok"], true);
}

#[test]
fn paths_that_carry_nothing_end_the_demo() {
    let ran = anabranch("demo --size 1MB --time 1 --path rate=1mbit,delay=5ms,loss=100%");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("anabranch: ") && last.contains("path"), "{}", ran.stderr);
}

#[test]
fn a_recording_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.jsonl");
    let file = file.display();
    report(&format!("demo --json --time 1 --record {file} --max-overhead 15%"));
    let text = anabranch(&format!("why {file}")).succeeded();
    let parts =
        ["profile anabranch", "Path sat:", "Reasons for sending there:", "new data", "Coding:"];
    for part in parts {
        assert!(text.contains(part), "missing '{part}' in:\n{text}");
    }
    let json: Value =
        serde_json::from_str(&anabranch(&format!("why --json {file}")).succeeded()).unwrap();
    assert_eq!(json["complete"], true);
    let events = anabranch(&format!("why --events {file}")).succeeded();
    // The last event is the end, which is not counted.
    assert_eq!(events.lines().count() as u64, json["events"].as_u64().unwrap() + 1);
    let lines = anabranch(&format!("why --events --json {file}")).succeeded();
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}
