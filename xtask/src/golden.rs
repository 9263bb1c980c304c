//! Golden traces: integers written by a test, compared with a file in the repository.
//!
//! The convention: a test whose name contains `golden` compares its trace with a file under
//! `tests/golden/` of its crate, and writes that file instead when the environment variable `BLESS` is
//! `1`.

use std::process::{Command, ExitCode};

use crate::process;
use crate::suite;
use crate::workspace::Workspace;

const CARGO_ARGS: [&str; 6] =
    ["test", "--workspace", "--locked", "--no-fail-fast", "--tests", "golden"];

/// `cargo xtask bless`: rewrites the golden traces and shows what changed.
///
/// # Errors
/// If `cargo` or `git` cannot be run.
pub fn bless(workspace: &Workspace) -> Result<ExitCode, String> {
    let mut command = workspace.cargo(&CARGO_ARGS);
    command.env("BLESS", "1");
    let (tally, success) = suite::run(command, std::io::stdout().lock())?;
    if !success {
        return Ok(ExitCode::FAILURE);
    }
    eprintln!(
        "Blessed by {} golden tests. Review the difference before you commit it:",
        tally.passed
    );
    let golden = ["--", ":(glob)**/golden/**"];
    process::run(workspace.git(&["status", "--short"]).args(golden))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the golden tests twice; they must pass, and must leave the repository as it was.
///
/// # Errors
/// If a golden test failed, none exists, or a file of the repository changed.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    let before = repository_state(workspace)?;
    let mut counts = Vec::new();
    for _ in 0..2 {
        let mut command: Command = workspace.cargo(&CARGO_ARGS);
        command.env_remove("BLESS");
        // Show the output of dozens of suites that run nothing only if something fails.
        let mut output = Vec::new();
        let (tally, success) = suite::run(command, &mut output)?;
        if !success {
            eprintln!("{}", String::from_utf8_lossy(&output));
            return Err(format!("{} golden tests failed", tally.failed));
        }
        counts.push(tally.passed);
    }
    if repository_state(workspace)? != before {
        return Err("the golden tests changed files of the repository".into());
    }
    match counts[..] {
        [0, _] | [_, 0] => Err("no golden test ran".into()),
        [first, second] if first == second => Ok(format!("{first} tests, twice")),
        _ => Err(format!("the two runs had different tests: {counts:?}")),
    }
}

/// The content of every changed tracked file and the names of all untracked ones.
fn repository_state(workspace: &Workspace) -> Result<String, String> {
    let status = workspace.git(&["status", "--porcelain", "--untracked-files=all"]);
    let difference = workspace.git(&["diff", "--binary", "--no-ext-diff", "HEAD"]);
    [status, difference].iter_mut().map(process::capture).collect()
}
