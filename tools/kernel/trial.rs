//! One run: the links, the two sides, and their reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::figures::Outcome;
use crate::options::Options;
use crate::roads::Road;
use crate::systems::System;
use crate::traffic::Traffic;

/// Of all packets 99 % must be sent on by the emulator within this long of when they were due: a twentieth of the
/// shortest round trip of the usual roads. Where jitter holds packets back, dozens are due at once, and the last wait
/// for the rest.
const LATE: &str = "1ms";
/// Longest time of a run beyond twice that of its traffic, whose first part may go by until there is a connection; seconds.
const SLACK: u64 = 30;
/// How the programs of a run are favoured over others on the machine.
const NICE: [&str; 3] = ["nice", "-n", "-10"];

/// Runs systems over roads.
#[derive(Debug)]
pub struct Bench {
    program: PathBuf,
    /// This program, which is also the kernel's sender and receiver.
    own: PathBuf,
    warm_up: u64,
    seconds: u64,
    /// Where the sides write what they saw, and where the key is.
    folder: TempDir,
    public: String,
}

impl Bench {
    /// Makes the keys that runs need, of the program and for the time that `options` name.
    ///
    /// # Errors
    /// When links cannot be emulated here, or the program cannot be run.
    pub fn new(options: &Options) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let program = std::path::absolute(&options.program).map_err(failed)?;
        let folder = tempfile::tempdir().map_err(failed)?;
        let probe = ["emulate", "--quiet", "--path", "rate=1mbit,delay=1ms", "--", "true"];
        output(Command::new(&program).args(probe))?;
        let key = folder.path().join("key");
        let public = output(Command::new(&program).args(["keygen", "--out"]).arg(&key))?;
        Ok(Bench {
            program,
            own: std::env::current_exe().map_err(failed)?,
            warm_up: options.warm_up,
            seconds: options.seconds,
            folder,
            public: public.trim().to_owned(),
        })
    }

    /// Runs `system` over `road` with `seed`.
    ///
    /// # Errors
    /// In words, when a side failed.
    pub fn run(&self, road: &Road, system: System, seed: u64) -> Result<Outcome, String> {
        let (sender, receiver) = self.sides(road, system);
        for name in [SENDER, RECEIVER] {
            // What an earlier run left.
            let _ = fs::remove_file(self.folder.path().join(name));
        }
        let limit = (2 * (self.warm_up + self.seconds) + SLACK).to_string();
        let mut command = Command::new("timeout");
        command.arg(limit).args(NICE).arg(&self.program).arg("emulate").arg(road.scenario());
        command.args(["--set", &format!("variants={}", road.variant), "--seed", &seed.to_string()]);
        command.args(["--late", LATE, "--quiet", "--json", "--client", &sender]);
        let links = output(command.args(["--server", &receiver]))?;
        let links = serde_json::from_str(&links).map_err(|error| format!("emulate: {error}"))?;
        let received = self.said(RECEIVER)?;
        match system {
            System::Paper { .. } | System::Anabranch => {
                let window = (self.warm_up as f64, (self.warm_up + self.seconds) as f64);
                Outcome::of_bench(&links, &received, window)
            }
            System::Tcp { .. } => Outcome::of_kernel(&links, &received, &self.said(SENDER)?, 1),
            System::Mptcp { .. } => {
                Outcome::of_kernel(&links, &received, &self.said(SENDER)?, road.paths)
            }
        }
    }

    /// The shell commands of the sender, which runs in the client's namespace, and of the receiver.
    fn sides(&self, road: &Road, system: System) -> (String, String) {
        let traffic = |multipath, congestion: &str, path: usize| Traffic {
            multipath,
            congestion: congestion.to_owned(),
            path: u8::try_from(path + 1).unwrap_or(u8::MAX),
            paths: u8::try_from(road.paths).unwrap_or(u8::MAX),
            warm_up: self.warm_up,
            seconds: self.seconds,
        };
        let kernel = |traffic: Traffic| {
            let side = |side, file| {
                let own = quoted(&self.own);
                format!("{own} {side} {} > {}", traffic.arguments(), self.file(file))
            };
            (side("send", SENDER), side("receive", RECEIVER))
        };
        match system {
            System::Tcp { congestion, path, .. } => kernel(traffic(false, congestion, path)),
            System::Mptcp { congestion } => kernel(traffic(true, congestion, 0)),
            System::Paper { profile } => self.ours(road.paths, profile),
            System::Anabranch => self.ours(road.paths, "anabranch"),
        }
    }

    /// Those of our transport with a profile. The receiver is the client of `bench` and has the server send
    /// (`--reverse`), because the client reports what came in each second.
    fn ours(&self, paths: usize, profile: &str) -> (String, String) {
        let (program, key) = (quoted(&self.program), self.file("key"));
        let seconds = self.warm_up + self.seconds;
        let path = |n: usize| format!(" --path 10.77.{n}.2@10.77.{n}.1:5000");
        let paths: String = (1..=paths).map(path).collect();
        let send = format!(
            "{program} bench server --listen 0.0.0.0:5000 --key {key} --anyone --once --profile {profile} > {}",
            self.file(SENDER)
        );
        let receive = format!(
            "{program} bench client 10.77.1.1:5000 --peer {}{paths} --reverse --profile {profile} --time {seconds} \
             --json > {}",
            self.public,
            self.file(RECEIVER)
        );
        (send, receive)
    }

    fn file(&self, name: &str) -> String {
        quoted(&self.folder.path().join(name))
    }

    /// What a side wrote.
    fn said(&self, name: &str) -> Result<Value, String> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
    }
}

/// Where the sides write.
const SENDER: &str = "sender.json";
const RECEIVER: &str = "receiver.json";

/// A path as one word for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Runs `command` and returns its standard output.
///
/// # Errors
/// With the last lines of its standard error if it fails.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Vec<&str> = errors.lines().rev().take(3).collect();
    let last = last.into_iter().rev().collect::<Vec<_>>().join("; ");
    Err(format!("{}: {last}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        let script = format!("printf %s {}", quoted(Path::new("/a b/it's $HOME")));
        let said = output(Command::new("sh").args(["-c", &script]));
        assert_eq!(said, Ok("/a b/it's $HOME".to_owned()));
    }

    #[test]
    fn a_failure_says_what_the_program_said_last() {
        let script = "for n in 1 2 3 4; do echo line $n >&2; done; exit 3";
        let message = output(Command::new("sh").args(["-c", script])).expect_err("fails");
        assert!(message.ends_with("line 2; line 3; line 4") && message.contains('3'), "{message}");
    }
}
