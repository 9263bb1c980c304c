//! `cargo xtask miri`: finds undefined behaviour, and what fails on other processors, by interpreting the code.
//!
//! Miri runs the portable erasure kernel, which processors without a vector kernel use, and the
//! codecs of packets, for this processor, for ARM and for one whose bytes have the other order. It
//! needs a nightly toolchain with the component `miri`.

use std::process::{Command, ExitCode};

use crate::process;
use crate::workspace::Workspace;

/// The processors that are interpreted.
const TARGETS: [&str; 3] =
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "s390x-unknown-linux-gnu"];
/// The packages, and which of their unit tests are run.
const TESTS: [(&str, &str); 2] = [("anabranch-fec", "kernel::"), ("anabranch-core", "wire::")];

/// Runs the tests under Miri for each processor.
///
/// # Errors
/// If the arguments are wrong, Miri is not there, or a test fails.
pub fn run(workspace: &Workspace, args: &[String]) -> Result<ExitCode, String> {
    if !args.is_empty() {
        return Err("`miri` takes no arguments".into());
    }
    for target in TARGETS {
        for (package, tests) in TESTS {
            let mut command = Command::new("rustup");
            command.args(["run", "nightly", "cargo", "miri", "test", "--locked", "--lib"]);
            command.args(["--target", target, "-p", package, tests]);
            command.current_dir(workspace.root());
            // A few cases of each property, and their seeds from the system.
            command.env("PROPTEST_CASES", "4").env("MIRIFLAGS", "-Zmiri-disable-isolation");
            // A benchmark's dependency has C code in it, which is built but never run: any compiler will do.
            command.env("TARGET_CC", "cc").env("TARGET_AR", "ar");
            process::run(&mut command).map_err(|error| {
                format!("{error}\nwithout Miri: rustup toolchain install nightly --component miri")
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
