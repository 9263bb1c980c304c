//! Every test of the workspace, in lanes side by side.
//!
//! `cargo test` runs one test program after the other. Many of ours wait most of the time: for timers of real
//! connections, or for programs that were killed to start again. The test programs that compute run beside them at the
//! lowest priority, so that the waiting tests find the processors nearly as free as if they ran alone. Two of these run
//! at once: the last test of a program often runs for minutes and uses one processor only.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufReader, PipeWriter, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use crate::process;
use crate::suite;
use crate::workspace::{Workspace, cargo_program};

/// Crates whose tests use sockets, other programs and real time. All other tests compute.
const LIVE: [&str; 4] = ["crates/cli", "crates/emulate", "crates/forward", "crates/net"];

/// Least number of tests of such a program that run at once: while one waits, others can do their work.
const LIVE_AT_ONCE: usize = 4;
/// Number of programs that compute at once.
const COMPUTING_AT_ONCE: usize = 2;
/// The variable that tells a test program how many tests to run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// A test program, or the documentation tests.
struct Test {
    /// The line printed before its output.
    heading: String,
    command: Command,
}

/// The tests of a lane that have not begun.
type Queue = Mutex<VecDeque<Test>>;

/// Builds all tests and runs them, documentation tests included. The output of each is passed on when it has ended.
///
/// # Errors
/// If a test does not build, or something cannot be run.
pub fn test(workspace: &Workspace) -> Result<ExitCode, String> {
    let build = ["test", "--workspace", "--locked", "--no-run"];
    let mut command = workspace.cargo(&build);
    command.arg("--message-format=json-render-diagnostics");
    eprintln!("$ {}", process::show(&command));
    let [live, mut computing] = lanes(workspace, &process::capture(&mut command)?);
    let mut command = patient(workspace, &cargo_program());
    command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--doc"]);
    computing.push(Test { heading: "documentation".into(), command });

    let broken = |error: std::io::Error| format!("test output: {error}");
    let (reader, writer) = std::io::pipe().map_err(broken)?;
    let writer = Arc::new(Mutex::new(writer));
    let computing = Arc::new(Queue::new(computing.into()));
    let mut lanes = vec![Arc::new(Queue::new(live.into()))];
    lanes.extend((0..COMPUTING_AT_ONCE).map(|_| Arc::clone(&computing)));
    let start = |lane: Arc<Queue>| {
        let writer = Arc::clone(&writer);
        thread::spawn(move || run(&lane, &writer))
    };
    let running: Vec<_> = lanes.into_iter().map(start).collect();
    drop(writer); // the lanes alone hold it now, so that the pipe ends with them
    suite::relay(BufReader::new(reader), std::io::stdout().lock()).map_err(broken)?;
    let mut failed = Vec::new();
    for lane in running {
        failed.extend(lane.join().map_err(|_| "a lane of tests ended early")??);
    }
    for test in &failed {
        eprintln!("error: failed: {test}");
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The test programs that `cargo test --no-run` lists: those of [`LIVE`] crates, and the others.
fn lanes(workspace: &Workspace, messages: &str) -> [Vec<Test>; 2] {
    let (mut live, mut computing) = (Vec::new(), Vec::new());
    let at_once = thread::available_parallelism().map_or(1, NonZero::get).max(LIVE_AT_ONCE);
    for message in messages.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        let Some((directory, program, source)) = test_program(&message) else { continue };
        let is_live = LIVE.iter().any(|it| workspace.root().join(it) == Path::new(directory));
        let mut command =
            if is_live { workspace.command(program) } else { patient(workspace, program.as_ref()) };
        // The directory and the environment in which cargo runs it.
        command.current_dir(directory).env("CARGO_MANIFEST_DIR", directory).env_remove("BLESS");
        if is_live && std::env::var_os(THREADS).is_none() {
            command.env(THREADS, at_once.to_string());
        }
        let test = Test { heading: within(workspace.root(), source), command };
        (if is_live { &mut live } else { &mut computing }).push(test);
    }
    [live, computing]
}

/// The crate's directory, the program and its source file, if a message of cargo's names a test program.
fn test_program(message: &Value) -> Option<(&str, &str, &str)> {
    let text = |pointer| message.pointer(pointer).and_then(Value::as_str);
    if message.pointer("/profile/test") != Some(&Value::Bool(true)) {
        return None;
    }
    let directory = Path::new(text("/manifest_path")?).parent()?.to_str()?;
    Some((directory, text("/executable")?, text("/target/src_path")?))
}

/// A path as seen from `root`.
fn within(root: &Path, path: &str) -> String {
    Path::new(path).strip_prefix(root).map_or(path.into(), |path| path.display().to_string())
}

/// A command at the lowest priority, which runs when nothing else wants the processors.
fn patient(workspace: &Workspace, program: &OsStr) -> Command {
    if !cfg!(unix) {
        return workspace.command(program);
    }
    let mut command = workspace.command("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

/// Runs one test after the other until none is left; returns which failed.
fn run(lane: &Queue, output: &Mutex<PipeWriter>) -> Result<Vec<String>, String> {
    let mut failed = Vec::new();
    let next = || lane.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(Test { heading, command }) = next() {
        let (text, status) = process::capture_all(command)?;
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        let written =
            writeln!(output, "     Running {heading}").and_then(|()| output.write_all(&text));
        written.map_err(|error| format!("{heading}: {error}"))?;
        if !status.success() {
            // If a signal ended the program, the output does not say so.
            writeln!(output, "{heading}: {status}\n")
                .map_err(|error| format!("{heading}: {error}"))?;
            failed.push(heading);
        }
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_other_artifacts() {
        let mut message = serde_json::json!({
            "manifest_path": "/w/crates/net/Cargo.toml",
            "target": { "src_path": "/w/crates/net/tests/a.rs" },
            "profile": { "test": true },
            "executable": "/w/target/debug/deps/a-1",
        });
        let expected = ("/w/crates/net", "/w/target/debug/deps/a-1", "/w/crates/net/tests/a.rs");
        assert_eq!(test_program(&message), Some(expected));
        message["profile"]["test"] = false.into();
        assert_eq!(test_program(&message), None);
        message["profile"]["test"] = true.into();
        message["executable"] = Value::Null;
        assert_eq!(test_program(&message), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_lane_runs_what_follows_a_failure_and_names_it() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let test = |program: &str| Test { heading: program.into(), command: Command::new(program) };
        let lane = Queue::new([test("false"), test("true")].into());
        let failed = run(&lane, &Mutex::new(writer));
        assert_eq!(failed, Ok(vec!["false".into()]));
        let mut text = String::new();
        std::io::Read::read_to_string(&mut reader, &mut text).expect("text");
        assert!(text.contains("Running false") && text.ends_with("Running true\n"), "{text}");
    }
}
