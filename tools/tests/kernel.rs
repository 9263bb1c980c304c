//! The comparison with the kernel's transports, for a few seconds. It needs root, TUN devices and MPTCP; elsewhere the
//! test says that it was skipped, and why.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Why nothing can be compared here, if so.
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

#[test]
fn both_transports_fill_two_links() {
    if let Some(why) = cannot_compare() {
        println!("skipped: {why}");
        return;
    }
    let (program, folder) = (anabranch(), tempfile::tempdir().expect("a folder"));
    let out = folder.path().join("out");
    let words = ["--only", "pairs/bloated", "--time", "3", "--warm-up", "1", "--seeds", "1"];
    let systems = ["--system", "mptcp:reno", "--system", "anabranch", "--out"];
    let paths = [program.to_str().expect("text"), out.to_str().expect("text")];
    let (code, text, errors) = kernel(&[&paths[..1], &words, &systems, &paths[1..]].concat());
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{text}");
    assert!(text.contains("mptcp:reno") && text.contains("of the kernel's best"), "{text}");
    let json = fs::read_to_string(out.join("kernel.json")).expect("written");
    let report: Value = serde_json::from_str(&json).expect("JSON");
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
        (&["anabranch", "--slow"], 2, "unknown argument `--slow`"),
    ] {
        let (exit, text, errors) = kernel(words);
        assert_eq!((exit, text.as_str()), (Some(code), ""), "{words:?}: {errors}");
        assert!(errors.contains(said), "{words:?}: {errors}");
    }
}
