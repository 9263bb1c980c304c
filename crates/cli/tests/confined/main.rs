//! Confinement of the commands that talk to peers, as real processes: the privileges of each thread as the kernel
//! reports them, and that the commands still work.
#![cfg(target_os = "linux")]

#[path = "../common/echo.rs"]
mod echo;
#[path = "../transfer/process.rs"]
mod process;
mod status;
mod transfer;
mod tunnel;

use std::path::{Path, PathBuf};

use process::run;

/// Makes a key; returns its file and its public key.
fn key(directory: &Path, name: &str) -> (PathBuf, String) {
    let path = directory.join(name);
    let public = run("keygen --out", &[&path]).succeeded();
    (path, String::from_utf8(public).unwrap().trim().to_owned())
}

/// Whether this process, and so what it starts, is root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The version of Landlock that this kernel has, as `doctor` tells it.
fn landlock() -> u64 {
    let output = run("doctor --json", &[]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    report["machine"]["kernel"]["landlock"].as_u64().unwrap()
}
