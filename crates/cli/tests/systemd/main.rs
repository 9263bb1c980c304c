//! The units under a real systemd, which boots in namespaces of its own over a copy of this machine's files. Without
//! root, systemd or the kernel features for that, the test prints why it is skipped.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit code of `boot.sh` where it cannot boot anything.
const CANNOT: i32 = 77;

/// Facts that the check found about both units, one a line; `None` where systemd cannot be booted.
fn facts() -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: namespaces and control groups need root");
        return None;
    }
    if !Path::new("/lib/systemd/systemd").exists() {
        println!("skipped: systemd is not installed");
        return None;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/systemd");
    let units = here.join("../../../../packaging/systemd");
    let out = tempfile::tempdir().unwrap();
    let booted = Command::new("bash")
        .arg(here.join("boot.sh"))
        .arg(env!("CARGO_BIN_EXE_anabranch"))
        .args([&units, &here.join("check.sh")])
        .arg(out.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&booted.stdout).into_owned();
    if booted.status.code() == Some(CANNOT) {
        println!("skipped: {}", said.trim_end());
        return None;
    }
    let read = |file: &str| fs::read_to_string(out.path().join(file)).unwrap_or_default();
    let errors = String::from_utf8_lossy(&booted.stderr).into_owned();
    println!("{said}{errors}{}", read("journal"));
    Some(read("said"))
}

#[test]
fn the_units_run_confined_and_come_back_after_a_crash() {
    let Some(facts) = facts() else { return };
    let holds = |fact: &str| assert!(facts.lines().any(|line| line == fact), "{fact}:\n{facts}");
    for (unit, limits) in
        [("anabranch-serve@home", "600 2147483648"), ("anabranch-connect@away", "600 1073741824")]
    {
        holds(&format!("{unit} user anabranch"));
        holds(&format!("{unit} CapPrm: 0000000000000000"));
        holds(&format!("{unit} CapBnd: 0000000000000000"));
        holds(&format!("{unit} NoNewPrivs: 1"));
        holds(&format!("{unit} Seccomp: 2"));
        holds(&format!("{unit} limits {limits}"));
        holds(&format!("{unit} result success"));
        holds(&format!("{unit} reload wrong"));
        holds(&format!("{unit} reload right"));
        assert_eq!(facts.matches(&format!("{unit} goes on\n")).count(), 2, "{facts}");
        let mistake = format!("{unit} says The old settings are in use: /etc/anabranch/");
        assert!(facts.contains(&mistake), "{facts}");
        holds(&format!("{unit} says nothing"));
    }
    holds("status \"command\":\"connect\"");
    holds("status \"command\":\"serve\"");
    holds("answer first");
    holds("answer second");
    holds("anabranch-serve@home restarts 1");
    holds("end");
}
