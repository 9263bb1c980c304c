//! Runs the binary beside the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

/// Time after which a process counts as hanging, and is killed.
const PATIENCE: Duration = Duration::from_secs(180);

/// A running `anabranch`, killed if the test ends before it does.
pub struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<JoinHandle<String>>,
    /// Dropping this stops the watchdog.
    _watched: Sender<()>,
}

/// Output and exit code of a process that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Running {
    /// Starts the program with the words of `line` and then `paths`.
    pub fn start(line: &str, paths: &[&Path]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(line.split_whitespace()).args(paths);
        Self::spawn(command)
    }

    /// Starts any command.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let collecting = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (watched, ended) = channel();
        let id = child.id().to_string();
        std::thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-9", &id]).status();
            }
        });
        Running { child, stdout, stderr: Some(collecting), _watched: watched }
    }

    /// The next line of its output, as JSON.
    pub fn event(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| {
            let stderr = self.stderr.take().map(|task| task.join().unwrap());
            panic!("{error}: '{line}' {stderr:?}")
        })
    }

    /// The ticket of its first line.
    pub fn ticket(&mut self) -> (String, Value) {
        let event = self.event();
        (event["ticket"].as_str().unwrap_or_else(|| panic!("{event}")).to_owned(), event)
    }

    /// Writes to the program's standard input in a thread, and closes it.
    pub fn feed(&mut self, bytes: &[u8]) {
        let (mut stdin, bytes) = (self.child.stdin.take().unwrap(), bytes.to_vec());
        // The process may be gone already, which its end will tell.
        std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends the program by Ctrl-C.
    pub fn interrupted(self) -> Ended {
        let pid = self.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.end()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the program ends.
    pub fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let mut stdout = Vec::new();
        self.stdout.read_to_end(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Ended { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Output of a process that succeeded.
    pub fn succeeded(self) -> Vec<u8> {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }

    /// The last line of its output as JSON, if it succeeded.
    pub fn report(self) -> Value {
        let text = String::from_utf8(self.succeeded()).unwrap();
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The line that says why the process ended with `code`; lines of progress come before it.
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        let line = self.stderr.lines().last().unwrap_or_default();
        assert!(line.starts_with("anabranch: "), "{}", self.stderr);
        line.to_owned()
    }
}

/// Runs the program to its end.
pub fn run(line: &str, paths: &[&Path]) -> Ended {
    Running::start(line, paths).end()
}
