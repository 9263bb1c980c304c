//! The demo as a smoke test: real sockets, emulated lossy paths, a whole file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::process;
use crate::workspace::Workspace;

/// The least share of the paths' erasure capacity that the demo must deliver.
const MIN_EFFICIENCY: f64 = 0.5;
/// How long a demo of five seconds may take in all.
const LIMIT: Duration = Duration::from_secs(60);

/// Builds the demo, runs it for five seconds and judges its report.
///
/// # Errors
/// If it does not build, exits non-zero, hangs, or its report falls short.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    // Run without cargo in between, so that a hanging demo itself is killed.
    let mut command = process::optimised(workspace, "anabranch")?;
    command.args(["demo", "--json", "--time", "5"]);
    judge(&process::capture_within(&mut command, LIMIT)?)
}

/// Builds `anabranch` and runs `comparison` with the program's path and then `arguments`: `parity` beside itself in
/// virtual time, `kernel` beside the kernel's transports.
///
/// # Errors
/// If it does not build or the comparison cannot be started.
pub fn compare(
    workspace: &Workspace,
    comparison: &str,
    arguments: &[String],
) -> Result<ExitCode, String> {
    let program = build(workspace)?.into_os_string();
    let arguments = arguments.iter().map(OsString::from);
    process::program(workspace, comparison, std::iter::once(program).chain(arguments))
}

/// Builds the program and tells where it is.
fn build(workspace: &Workspace) -> Result<PathBuf, String> {
    process::run(&mut workspace.cargo(&["build", "--release", "--locked", "--bin=anabranch"]))?;
    let name = format!("anabranch{}", std::env::consts::EXE_SUFFIX);
    Ok(workspace.target_dir()?.join("release").join(name))
}

/// Reads the demo's JSON report.
fn judge(report: &str) -> Result<String, String> {
    let report: Value =
        serde_json::from_str(report).map_err(|error| format!("the report is no JSON: {error}"))?;
    match report.get("sha256_ok").and_then(Value::as_bool) {
        Some(true) => {}
        Some(false) => return Err("the file arrived damaged (sha256_ok is false)".into()),
        None => return Err("the report has no boolean `sha256_ok`".into()),
    }
    match report.get("efficiency").and_then(Value::as_f64) {
        Some(efficiency) if efficiency > MIN_EFFICIENCY => {
            Ok(format!("efficiency {efficiency:.3}"))
        }
        Some(efficiency) => Err(format!("efficiency {efficiency:.3}, not above {MIN_EFFICIENCY}")),
        None => Err("the report has no number `efficiency`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_report_passes() {
        let report = r#"{"sha256_ok": true, "efficiency": 0.9312, "goodput": 1}"#;
        assert_eq!(judge(report), Ok("efficiency 0.931".into()));
    }

    #[test]
    fn reports_that_fall_short_fail() {
        for report in [
            "",
            "{}",
            r#"{"sha256_ok": true}"#,
            r#"{"sha256_ok": true, "efficiency": 0.5}"#,
            r#"{"sha256_ok": true, "efficiency": "0.9"}"#,
            r#"{"sha256_ok": false, "efficiency": 0.9}"#,
            r#"{"efficiency": 0.9}"#,
            r#"{"sha256_ok": true, "efficiency": 0.9} trailing"#,
        ] {
            assert!(judge(report).is_err(), "{report}");
        }
    }
}
