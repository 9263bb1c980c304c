//! Compares the library's public interface with that of the last release, by cargo-semver-checks.

use std::process::{Command, ExitCode};

use crate::process;
use crate::workspace::Workspace;

const MISSING: &str =
    "cargo-semver-checks is not installed: cargo install cargo-semver-checks --locked";

/// `cargo xtask semver [REVISION]`: compares with the last release, or with any revision.
///
/// # Errors
/// If the tool is missing, there is nothing to compare with, or the interface changed and the
/// version does not say so.
pub fn run(workspace: &Workspace, args: &[String]) -> Result<ExitCode, String> {
    let revision = match args {
        [] => last_release(workspace).ok_or("there is no release yet: name a revision")?,
        [revision] if !revision.starts_with('-') => revision.clone(),
        _ => return Err("`semver` takes one revision to compare with, or nothing".into()),
    };
    if !is_installed() {
        return Err(MISSING.into());
    }
    compare(workspace, &revision)?;
    Ok(ExitCode::SUCCESS)
}

/// The step of `ci`: skipped without the tool, or before the first release.
///
/// # Errors
/// If the interface changed and the version does not say so.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    if !is_installed() {
        return Ok(format!("skipped: {MISSING}"));
    }
    let Some(release) = last_release(workspace) else {
        return Ok("skipped: no tag v… names a release to compare with".into());
    };
    compare(workspace, &release)?;
    Ok(format!("compared with {release}"))
}

fn is_installed() -> bool {
    let asked = Command::new("cargo-semver-checks").args(["semver-checks", "--version"]).output();
    asked.is_ok_and(|answer| answer.status.success())
}

/// The newest tag of a release among the ancestors of what is checked out.
fn last_release(workspace: &Workspace) -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(workspace.root()).args(["describe", "--tags", "--abbrev=0", "--match", "v*"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn compare(workspace: &Workspace, revision: &str) -> Result<(), String> {
    let mut command = workspace.cargo(&["semver-checks", "--package", "anabranch"]);
    process::run(command.args(["--baseline-rev", revision]))
}
