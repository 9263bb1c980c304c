//! Running `cargo test` and counting what it reports.
//!
//! The output is passed on unchanged except for one thing: the totals are printed just before the
//! last `test result:` line, so that the output ends as that of `cargo test` does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode};

use crate::lanes;
use crate::process;
use crate::workspace::Workspace;

/// Totals of the suites of one `cargo test` run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Test programs and documentation-test runs that reported.
    pub suites: u64,
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests marked `#[ignore]` and not run.
    pub ignored: u64,
}

/// `cargo xtask test`: every test of the workspace, or what `args` ask `cargo test` for.
///
/// # Errors
/// If `cargo` cannot be run.
pub fn test(workspace: &Workspace, args: &[String]) -> Result<ExitCode, String> {
    if args.is_empty() {
        return lanes::test(workspace);
    }
    let mut command = workspace.cargo(&["test", "--locked", "--no-fail-fast"]);
    if !names_packages(args) {
        command.arg("--workspace");
    }
    command.args(args).env_remove("BLESS");
    let (_, success) = run(command, std::io::stdout().lock())?;
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Number of tests of fault schedules: networks that only lose packets, or also corrupt, replay and inject them, with
/// the profiles' own codes and with others. Each test runs the same number of schedules.
const FAULT_TESTS: u64 = 11;

/// `cargo xtask soak [--connections N] [--after M]`: N random fault schedules, in virtual time; with M, those after the
/// first M, to continue a clean run of M.
///
/// # Errors
/// If the arguments are wrong or `cargo` cannot be run.
pub fn soak(workspace: &Workspace, args: &[String]) -> Result<ExitCode, String> {
    let (mut connections, mut after) = (100_000_u64, 0_u64);
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let (value, least) = match option.as_str() {
            "--connections" => (&mut connections, 1),
            "--after" => (&mut after, 0),
            _ => return Err(format!("{option}: `soak` takes --connections N and --after M")),
        };
        let number = args.next().and_then(|number| number.parse().ok());
        *value = number
            .filter(|number| *number >= least)
            .ok_or_else(|| format!("{option}: give a whole number from {least} on"))?;
    }
    let mut command = workspace.cargo(&["test", "--locked", "--release"]);
    command.args(["-p", "anabranch-sim", "--test", "faults", "--", "--nocapture"]);
    command.env("FAULTS", connections.div_ceil(FAULT_TESTS).to_string());
    command.env("FAULTS_AFTER", (after / FAULT_TESTS).to_string());
    let (_, success) = run(command, std::io::stdout().lock())?;
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// True if the arguments for cargo choose packages, which `--workspace` would override.
fn names_packages(args: &[String]) -> bool {
    let mut for_cargo = args.iter().take_while(|arg| *arg != "--");
    for_cargo.any(|arg| arg.starts_with("-p") || arg.starts_with("--package"))
}

/// Runs one `cargo test` command, passing what it prints on to `output`; returns the totals and whether it succeeded.
///
/// # Errors
/// If the command cannot be started or its output cannot be passed on.
pub fn run(mut command: Command, output: impl Write) -> Result<(Tally, bool), String> {
    let shown = process::show(&command);
    let failed = |error: std::io::Error| format!("`{shown}`: {error}");
    eprintln!("$ {shown}");
    if std::io::IsTerminal::is_terminal(&std::io::stderr())
        && std::env::var_os("NO_COLOR").is_none()
    {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let (reader, mut child) = process::piped(command).map_err(failed)?;
    let tally = relay(BufReader::new(reader), output).map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    Ok((tally, status.success()))
}

/// Copies test output line by line and inserts the totals before the last result line.
///
/// # Errors
/// If reading or writing fails.
pub fn relay(mut input: impl BufRead, mut output: impl Write) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    let mut held = Vec::new();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let result = Tally::parse(&String::from_utf8_lossy(&line));
        if result.is_some() || !line.trim_ascii().is_empty() {
            output.write_all(&held)?;
            held.clear();
        }
        if let Some(result) = result {
            tally = tally.plus(result);
        }
        if result.is_some() || !held.is_empty() {
            held.append(&mut line);
        } else {
            output.write_all(&line)?;
            output.flush()?;
        }
        line.clear();
    }
    let Tally { suites, passed, failed, ignored } = tally;
    writeln!(
        output,
        "In all: {suites} suites, {passed} tests passed, {failed} failed, {ignored} ignored.\n"
    )?;
    output.write_all(&held)?;
    output.flush()?;
    Ok(tally)
}

impl Tally {
    /// Reads a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    fn parse(line: &str) -> Option<Self> {
        let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
        let mut tally = Tally { suites: 1, ..Tally::default() };
        for part in counts.split("; ") {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let field = match what.trim_end() {
                "passed" => &mut tally.passed,
                "failed" => &mut tally.failed,
                "ignored" => &mut tally.ignored,
                _ => continue,
            };
            *field = number.parse().ok()?;
        }
        Some(tally)
    }

    fn plus(self, other: Self) -> Self {
        Tally {
            suites: self.suites + other.suites,
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; \
                         0 filtered out; finished in 0.01s";
    const SECOND: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; \
                          0 filtered out; finished in 0.01s";

    fn relayed(input: &str) -> (Tally, String) {
        let mut output = Vec::new();
        let tally = relay(input.as_bytes(), &mut output).expect("memory does not fail");
        (tally, String::from_utf8(output).expect("text in, text out"))
    }

    #[test]
    fn fault_tests_are_counted() {
        let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/sim/tests/faults.rs");
        let tests = std::fs::read_to_string(tests).expect("the tests of fault schedules");
        assert_eq!(tests.matches("    go_all(").count() as u64, FAULT_TESTS);
    }

    #[test]
    fn chosen_packages_are_seen_before_the_separator_only() {
        let seen = |args: &[&str]| {
            names_packages(&args.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert!(seen(&["-p", "xtask"]) && seen(&["-pxtask"]) && seen(&["--package=xtask"]));
        assert!(!seen(&["gf256", "--", "-p"]) && !seen(&["--profile", "release"]) && !seen(&[]));
    }

    #[test]
    fn totals_come_before_the_last_result() {
        let input = format!("Running a\n\n{FIRST}\n\nRunning b\nnoise\n\n{SECOND}\n\n");
        let (tally, output) = relayed(&input);
        assert_eq!(tally, Tally { suites: 2, passed: 4, failed: 2, ignored: 1 });
        let totals = "In all: 2 suites, 4 tests passed, 2 failed, 1 ignored.\n\n";
        assert_eq!(output, input.replace(SECOND, &format!("{totals}{SECOND}")));
    }

    #[test]
    fn errors_after_the_last_result_stay_after_it() {
        let (tally, output) = relayed(&format!("{SECOND}\n\nerror: test failed\n"));
        assert_eq!(tally.failed, 2);
        assert!(output.starts_with(&format!("{SECOND}\n\nerror: test failed\nIn all: 1 suites")));
    }

    #[test]
    fn output_without_results_counts_nothing() {
        let (tally, output) = relayed("error: could not compile\ntest result: odd\n");
        assert_eq!(tally, Tally::default());
        assert!(output.starts_with("error: could not compile\ntest result: odd\nIn all: 0 suites"));
    }
}
