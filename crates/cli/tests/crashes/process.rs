//! Runs the program and kills it.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::memory;

/// A test fails if it waits longer than this.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program, or another build of it that `ANABRANCH_PROGRAM` names.
pub fn program() -> String {
    std::env::var("ANABRANCH_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_anabranch").to_owned())
}

/// A running `anabranch`, killed when dropped.
pub struct Running {
    child: Child,
    events: Receiver<Value>,
    stderr: Arc<Mutex<String>>,
}

impl Running {
    /// Starts the program with these words.
    pub fn start(home: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(words);
        Running::run(command, home)
    }

    /// Runs a command that becomes the program. Each line of its standard output has to be JSON. State that it
    /// keeps goes below `home`.
    pub fn run(mut command: Command, home: &Path) -> Self {
        let mut child = command
            .env("XDG_STATE_HOME", home.join("state"))
            .env("HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, events) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                let _ = send.send(event);
            }
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let (mut err, said) = (child.stderr.take().unwrap(), Arc::clone(&stderr));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = err.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                said.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Running { child, events, stderr }
    }

    /// The next event of this kind.
    pub fn wait_for(&self, event: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(value) if value["event"] == event => return value,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no event {event}; {}", self.said())
                }
            }
        }
    }

    /// How many events of this kind came since the last call.
    pub fn count(&self, event: &str) -> usize {
        self.events.try_iter().filter(|value| value["event"] == event).count()
    }

    /// Standard error of the process so far.
    pub fn said(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the program has written `part` to standard error; returns how long that took.
    pub fn wait_until_said(&self, part: &str) -> Duration {
        let begun = Instant::now();
        wait_until(
            || self.said().contains(part),
            || format!("never said `{part}`: {}", self.said()),
        );
        begun.elapsed()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(id, signal).unwrap();
    }

    /// Waits until the program ends; returns its exit code and its standard error.
    pub fn end(mut self) -> (Option<i32>, String) {
        wait_until(|| !self.is_running(), || "it does not end".to_owned());
        let code = self.child.wait().unwrap().code();
        // The last output may be on its way yet.
        std::thread::sleep(Duration::from_millis(20));
        (code, self.said())
    }

    /// Waits until the program ends successfully.
    pub fn succeeded(self) {
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something has happened, for [`PATIENCE`] at most.
pub fn wait_until(mut happened: impl FnMut() -> bool, otherwise: impl FnOnce() -> String) {
    let deadline = Instant::now() + PATIENCE;
    let mut happened = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(2));
        happened()
    });
    let done = happened.by_ref().find(|done| *done || Instant::now() > deadline);
    assert!(done == Some(true), "{}", otherwise());
}

/// A directory for one test, with two keys.
pub struct Home {
    directory: tempfile::TempDir,
    /// Key files and public keys of the server and the client.
    pub server: (String, String),
    pub client: (String, String),
}

impl Home {
    pub fn new() -> Self {
        let directory = memory::directory();
        let key = |name: &str| {
            let file = directory.path().join(name).to_str().unwrap().to_owned();
            let made = Command::new(program()).args(["keygen", "--out", &file]).output().unwrap();
            assert!(made.status.success());
            (file, String::from_utf8(made.stdout).unwrap().trim().to_owned())
        };
        let (server, client) = (key("server.key"), key("client.key"));
        Home { directory, server, client }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// A UDP address that is free now.
pub fn free_address() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Draws the instants at which something is killed; they are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// A time below `most`.
    pub fn time(&mut self, most: Duration) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        most.mul_f64((self.0 >> 33) as f64 / (1_u64 << 31) as f64)
    }
}

/// The longest time from the restart of what was killed until bytes are carried again: two seconds where that is measured
/// (`ANABRANCH_KILLS`), and five in a run of all tests, where other programs share the processors. The defects that these
/// tests guard against took between ten seconds and five minutes.
pub fn recovered() -> Duration {
    let is_measured = std::env::var_os("ANABRANCH_KILLS").is_some();
    Duration::from_secs(if is_measured { 2 } else { 5 })
}

/// How many instants each test tries: few, or as many as `ANABRANCH_KILLS` says.
pub fn instants(few: usize) -> usize {
    let asked = std::env::var("ANABRANCH_KILLS").ok();
    asked.map_or(few, |text| text.parse().expect("ANABRANCH_KILLS is a number"))
}
