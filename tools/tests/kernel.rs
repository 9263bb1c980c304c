//! The comparison with the kernel's transports, for a few seconds. It needs root, TUN devices and MPTCP; elsewhere the
//! test says that it was skipped, and why.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;

/// Held by a test that measures, since other tests would delay its packets.
static MACHINE: Mutex<()> = Mutex::new(());

/// Waits until no other test measures.
fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Why nothing can be compared here; `None` if it can.
fn cannot_compare() -> Option<&'static str> {
    let id = Command::new("id").arg("-u").output().expect("id runs");
    if id.stdout.trim_ascii() != b"0" {
        return Some("network namespaces need root");
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("the kernel has no TUN devices");
    }
    let enabled = fs::read_to_string("/proc/sys/net/mptcp/enabled").unwrap_or_default();
    (enabled.trim() != "1").then_some("the kernel has no MPTCP, or it is off")
}

/// Builds `anabranch` beside the program under test, in the same profile.
fn anabranch() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_kernel")).parent().expect("a folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--package=anabranch-cli", "--bin=anabranch"]);
    if folder.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs").success());
    folder.join("anabranch")
}

fn kernel(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernel"));
    let output = command.args(words).output().expect("runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Compares over the pair `bloated` for 3 s with one seed. `words` end with an option whose value is `place`; returns
/// what is printed.
fn compared(words: &[&str], place: &Path) -> String {
    let (program, place) = (anabranch(), place.to_str().expect("text"));
    let road = ["--only", "pairs/bloated", "--time", "3", "--warm-up", "1", "--seeds", "1"];
    let program = [program.to_str().expect("text")];
    let (code, text, errors) = kernel(&[&program[..], &road, words, &[place]].concat());
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{text}");
    text
}

fn report(json: &Path) -> Value {
    let text = fs::read_to_string(json).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn both_transports_fill_two_links() {
    if let Some(why) = cannot_compare() {
        println!("skipped: {why}");
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let text = compared(&["--system", "mptcp:reno", "--system", "anabranch", "--out"], &out);
    assert!(text.contains("mptcp:reno") && text.contains("of the kernel's best"), "{text}");
    let report = report(&out.join("kernel.json"));
    for system in report["roads"][0]["systems"].as_array().expect("systems") {
        let figures = &system["runs"][0]["figures"];
        // The links carry 20 Mb/s each.
        let goodput = figures["goodput_mbps"].as_f64().expect("a number");
        assert!((10.0..42.0).contains(&goodput), "{report:#}");
        let links = figures["links"].as_array().expect("links");
        assert_eq!(links.len(), 2, "{report:#}");
        assert!(links.iter().all(|link| link["share"].as_f64() > Some(0.1)), "{report:#}");
        assert!(links.iter().any(|link| link["queue_p95_ms"].as_f64() > Some(1.0)), "{report:#}");
    }
    assert!(fs::read_to_string(out.join("kernel.html")).expect("written").contains("anabranch"));
}

#[test]
fn what_is_asked_wrongly_is_told() {
    for (words, code, said) in [
        (&["anabranch", "--seeds", "0"][..], 2, "allowed: 1 to 1000"),
        (&["anabranch", "--only", "ferry"], 2, "there is no road 'ferry'"),
        (&["/no/such/program", "--only", "links/wifi"], 1, "cannot run /no/such/program"),
        (&["anabranch", "--system", "quic"], 2, "there is no system 'quic'"),
        (&["anabranch", "--measure", "speed"], 2, "allowed: flows, gap, messages, none"),
        (&["anabranch", "--system", "noq:*"], 2, "needs --quic"),
        (&["anabranch", "--slow"], 2, "unknown argument `--slow`"),
    ] {
        let (exit, text, errors) = kernel(words);
        assert_eq!((exit, text.as_str()), (Some(code), ""), "{words:?}: {errors}");
        assert!(errors.contains(said), "{words:?}: {errors}");
    }
}

#[test]
fn short_flows_gaps_and_messages_are_measured_beside_the_models() {
    if let Some(why) = cannot_compare() {
        println!("skipped: {why}");
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("kernel.json");
    let systems = ["--system", "mptcp:cubic", "--system", "anabranch"];
    let model = ["--system", "tcp:mptcp-linux:cubic", "--json"];
    compared(&[&systems[..], &model].concat(), &json);
    let report = report(&json);
    let systems = report["roads"][0]["systems"].as_array().expect("systems");
    assert_eq!(systems.len(), 3);
    let number = |system: &Value, key: &str| {
        system[key].as_f64().unwrap_or_else(|| panic!("no {key}: {report:#}"))
    };
    for system in systems.iter().filter(|system| system["ratio_to_kernel"].is_null()) {
        // The links have a round trip of 30 and 20 ms; 100 KB take 20 ms of both.
        assert!((20.0..3_000.0).contains(&number(system, "flow_median_ms")), "{report:#}");
        assert!(number(system, "flow_p95_ms") >= number(system, "flow_median_ms"), "{report:#}");
        // A message takes half a round trip at least, even if none is lost.
        assert!((10.0..1_000.0).contains(&number(system, "message_p99_ms")), "{report:#}");
        assert!((5.0..10_000.0).contains(&number(system, "gap_ms")), "{report:#}");
        assert!(number(system, "cpu_seconds_per_gb") > 0.1, "{report:#}");
    }
    let model = systems.iter().find(|system| !system["ratio_to_kernel"].is_null());
    let ratio = number(model.expect("a model"), "ratio_to_kernel");
    assert!((0.75..1.25).contains(&ratio), "{report:#}");
}

/// Ctrl-C, which a terminal sends to all processes.
#[test]
fn an_interruption_keeps_what_was_measured() {
    if let Some(why) = cannot_compare() {
        println!("skipped: {why}");
        return;
    }
    let _alone = alone();
    let (program, folder) = (anabranch(), tempfile::tempdir().expect("a folder"));
    let json = folder.path().join("kernel.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernel"));
    command.arg(&program).args(["--only", "cable", "--time", "1", "--warm-up", "1"]);
    command.args(["--measure", "none", "--seeds", "1000", "--system", "anabranch", "--json"]);
    command.arg(&json).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().expect("starts");
    std::thread::sleep(Duration::from_secs(12));
    let group = format!("-{}", child.id());
    let killed = Command::new("kill").args(["-INT", "--", &group]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("ends");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("interrupted"), "{errors}");
    let report = fs::read_to_string(&json).expect("written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let runs = report["roads"][0]["systems"][0]["runs"].as_array().expect("runs");
    assert!((1..100).contains(&runs.len()), "{report:#}");
    assert!(runs.iter().all(|run| run["failed"].is_null()), "{report:#}");
}
