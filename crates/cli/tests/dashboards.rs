//! The dashboard and the alert rules in `packaging/` use only metrics that the program exports.

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod tunnel;

use std::collections::BTreeSet;
use std::process::Command;

use tunnel::{Running, free_port, get, serving};

const DASHBOARD: &str = include_str!("../../../packaging/grafana/anabranch.json");
const RULES: &str = include_str!("../../../packaging/prometheus/anabranch.rules.yml");

/// The words of a text that name metrics.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("anabranch_")).map(str::to_owned).collect()
}

/// The labels that queries select by, and that texts name.
fn labels(text: &str) -> BTreeSet<String> {
    let legends = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    let words = legends.filter_map(|words| words.split(['|', ' ']).find(|word| !word.is_empty()));
    let in_legends = words.map(|word| word.trim_start_matches("$labels."));
    in_legends.filter(|word| *word != "$value").map(str::to_owned).collect()
}

/// Metrics of a server and its client.
fn told() -> String {
    let directory = tempfile::tempdir().unwrap();
    let (of_server, of_client) = (free_port(), free_port());
    let extra = ["--metrics", &of_server, "--permit-udp", "loopback"];
    let (server, address, public, key) = serving(directory.path(), &extra);
    let mut args = vec!["connect", &address, "--peer", &public, "--key", &key, "--json"];
    args.extend(["--metrics", &of_client, "-D", "0", "-U", "0:localhost:9", "--path", "127.0.0.1"]);
    let client = Running::start(&args);
    for side in [&client, &server] {
        side.wait_for("connected", "peer");
    }
    let told = [of_server, of_client].map(|at| String::from_utf8(get(&at, "/metrics")).unwrap());
    told.concat()
}

#[test]
fn they_ask_for_what_is_told() {
    let told = told();
    let types = told.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let known: BTreeSet<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    for (file, text) in [("the dashboard", DASHBOARD), ("the rules", RULES)] {
        let asked = metrics(text);
        let unknown: Vec<_> = asked.iter().filter(|name| !known.contains(name.as_str())).collect();
        assert!(asked.len() >= 6 && unknown.is_empty(), "{file}: {unknown:?} of {known:?}");
        for label in labels(text) {
            let exists = label == "instance" || told.contains(&format!("{label}=\""));
            assert!(exists, "{file}: nothing has the label {label}\n{told}");
        }
    }
    assert!(labels(DASHBOARD).contains("path") && labels(RULES).contains("peer"));
}

#[test]
fn the_dashboard_is_json_with_a_query_in_each_panel() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let shown: Vec<_> = panels.iter().filter(|panel| panel["type"] != "row").collect();
    assert!(shown.len() >= 12);
    for panel in shown {
        assert!(!panel["description"].as_str().unwrap().is_empty(), "{panel}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            assert!(!metrics(target["expr"].as_str().unwrap()).is_empty(), "{target}");
        }
    }
}

/// `promtool`, where there is one, accepts the rules.
#[test]
fn promtool_accepts_the_rules() {
    if Command::new("promtool").arg("--version").output().is_err() {
        println!("skipped: this machine has no promtool");
        return;
    }
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus/anabranch.rules.yml");
    let output = Command::new("promtool").args(["check", "rules", file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
