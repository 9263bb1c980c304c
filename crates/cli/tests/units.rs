//! Checks the systemd units with `systemd-analyze`; skipped where that is not installed.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const UNITS: [&str; 2] = ["anabranch-serve@.service", "anabranch-connect@.service"];

/// The text of a unit.
fn text(unit: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    fs::read_to_string(directory.join(unit)).unwrap()
}

fn systemd_analyze(words: &[&str], unit: &Path) -> Option<Output> {
    let output = Command::new("systemd-analyze").args(words).arg(unit).output();
    if output.is_err() {
        eprintln!("skipped: systemd-analyze is not installed");
    }
    output.ok()
}

#[test]
fn units_are_right_and_leave_little_open() {
    let directory = tempfile::tempdir().unwrap();
    for unit in UNITS {
        let path = directory.path().join(unit);
        // The program is not installed where tests run.
        let program = env!("CARGO_BIN_EXE_anabranch");
        fs::write(&path, text(unit).replace("/usr/bin/anabranch", program)).unwrap();
        let Some(verified) = systemd_analyze(&["verify", "--man=no"], &path) else { return };
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(verified.status.success() && !said.contains(unit), "{said}");
        // The exposure may be 15 of 100 at most; access to the network accounts for it.
        let words = ["security", "--offline=true", "--threshold=15"];
        let Some(judged) = systemd_analyze(&words, &path) else { return };
        assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
    }
}

/// Restrictions of a unit must not keep the program from confining itself.
#[test]
fn units_let_the_program_confine_itself() {
    for unit in UNITS {
        let text = text(unit);
        let value = |key: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            lines.collect::<Vec<_>>().join(" ")
        };
        let calls = value("SystemCallFilter");
        for call in
            ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"]
        {
            assert!(calls.split_whitespace().any(|word| word == call), "{unit}: {call}");
        }
        assert_eq!(value("SystemCallErrorNumber"), "EPERM", "{unit}");
        assert_eq!((&*value("Type"), &*value("WatchdogSec")), ("notify", "30"), "{unit}");
        assert!(value("ExecReload").ends_with("-HUP $MAINPID"), "{unit}");
        for key in ["MemoryMax", "TasksMax"] {
            assert!(!value(key).is_empty(), "{unit}: {key}");
        }
    }
}
