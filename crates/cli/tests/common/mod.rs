//! Runs the binary.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Output and exit code of a run.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `anabranch` with the words of `line`.
pub fn anabranch(line: &str) -> Ran {
    with_input(line, "")
}

/// Runs `anabranch` with the words of `line`, and `input` on standard input.
pub fn with_input(line: &str, input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    ran(child.wait_with_output().unwrap())
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// Standard output of a run that succeeded.
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }
}
