//! Runs the tests of the erasure code, the policies and the protocol core for AArch64 under emulation, and simulations
//! whose digests are the same on every machine.

use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

use crate::process;
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
/// Where Debian and Ubuntu put the C library of the other architecture.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// Runs the tests and simulations, or says what is missing.
///
/// # Errors
/// If they do not build, or one fails.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    if ARCH == "aarch64" {
        return Ok("skipped: this machine is one, `cargo xtask test` tests it".into());
    }
    if let Some(missing) = missing(workspace) {
        return Ok(format!("skipped: {missing}"));
    }
    let mut tests = workspace.cargo(&["test", "--locked", "--target", TARGET]);
    for tested in ["anabranch-fec", "anabranch-policy", "anabranch-core", "wasm-digest"] {
        tests.args(["-p", tested]);
    }
    tests.args(["--lib", "--test", "golden"]);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    let runner = format!("{EMULATOR} -L {LIBRARIES}");
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    process::run(&mut tests).map(|()| String::new())
}

/// Tool that this machine lacks to run the tests, and how to install it.
fn missing(workspace: &Workspace) -> Option<String> {
    let answers = |program: &str| Command::new(program).arg("--version").output().is_ok();
    for (program, package) in [(EMULATOR, "qemu-user"), (LINKER, "gcc-aarch64-linux-gnu")] {
        if !answers(program) {
            return Some(format!("no {program}: apt-get install {package}"));
        }
    }
    if !Path::new(LIBRARIES).join("lib").exists() {
        return Some("no C library for it: apt-get install libc6-dev-arm64-cross".into());
    }
    missing_std(workspace, TARGET)
}

/// How to install the standard library for a target, if it is missing.
pub(crate) fn missing_std(workspace: &Workspace, target: &str) -> Option<String> {
    let mut rustc = workspace.command("rustc");
    let asked = rustc.args(["--print", "target-libdir", "--target", target]).output();
    let folder = asked.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned());
    match folder {
        Ok(folder) if Path::new(&folder).exists() => None,
        _ => Some(format!("no standard library for {target}: rustup target add {target}")),
    }
}
