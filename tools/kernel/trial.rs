//! One run: the links, the two sides, and their reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::figures::Outcome;
use crate::options::Options;
use crate::roads::Road;
use crate::systems::System;
use crate::traffic::Traffic;
use crate::workload::Workload;

/// The emulator must forward 99 % of all packets within this time after they are due: a twentieth of the shortest
/// round trip of the usual roads. Where jitter holds packets back, dozens are due at once, and the last of these wait
/// for the others.
const LATE: &str = "1ms";
/// Time limit of a run beyond twice the time of its traffic, seconds. Twice, since connecting may take as long.
const SLACK: u64 = 30;
/// When the first path goes dark, counted from when the links were made.
const DARK: Duration = Duration::from_secs(4);
/// Priority of a run's programs over others on the machine.
const NICE: [&str; 3] = ["nice", "-n", "-10"];

/// Runs systems over roads.
#[derive(Debug)]
pub struct Bench {
    program: PathBuf,
    /// The program of tools/quic, where there is one.
    quic: PathBuf,
    /// This program, which is also the kernel's sender and receiver.
    own: PathBuf,
    warm_up: u64,
    seconds: u64,
    /// Directory of the sides' output and of the key.
    folder: TempDir,
    public: String,
}

impl Bench {
    /// Checks that links can be emulated, and makes the key that runs need.
    ///
    /// # Errors
    /// When links cannot be emulated here, or the program cannot be run.
    pub fn new(options: &Options) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let program = std::path::absolute(&options.program).map_err(failed)?;
        let quic = options.quic.clone().unwrap_or_default();
        if options.quic.is_some() && !quic.is_file() {
            return Err(format!("--quic: there is no program {}", quic.display()));
        }
        let folder = tempfile::tempdir().map_err(failed)?;
        let probe = ["emulate", "--quiet", "--path", "rate=1mbit,delay=1ms", "--", "true"];
        output(Command::new(&program).args(probe))?;
        let key = folder.path().join("key");
        let public = output(Command::new(&program).args(["keygen", "--out"]).arg(&key))?;
        Ok(Bench {
            program,
            quic: std::path::absolute(&quic).unwrap_or(quic),
            own: std::env::current_exe().map_err(failed)?,
            warm_up: options.warm_up,
            seconds: options.seconds,
            folder,
            public: public.trim().to_owned(),
        })
    }

    /// Runs `system` over `road` with `seed`: measures its goodput, and then the workloads of `options`.
    ///
    /// # Errors
    /// When the goodput cannot be measured. Workloads that fail are listed in the outcome.
    pub fn run(
        &self,
        road: &Road,
        system: System,
        seed: u64,
        options: &Options,
    ) -> Result<Outcome, String> {
        let mut outcome = self.goodput(road, system, seed)?;
        for workload in options.workloads.iter().copied() {
            if workload == Workload::Gap && !system.uses_several(road.paths) {
                continue;
            }
            let measured = self.measure(road, system, seed, workload);
            let added = measured.and_then(|(links, told)| outcome.add(workload, &links, &told));
            outcome.failures.extend(added.err().map(|why| format!("{}: {why}", workload.name())));
        }
        Ok(outcome)
    }

    fn goodput(&self, road: &Road, system: System, seed: u64) -> Result<Outcome, String> {
        let time = Duration::from_secs(self.warm_up + self.seconds);
        let links = self.emulate(road, seed, self.sides(road, system), (time, &[]))?;
        let received = self.said(RECEIVER)?;
        match system {
            System::Tcp { .. } => Outcome::of_kernel(&links, &received, &self.said(SENDER)?, 1),
            System::Mptcp { .. } => {
                Outcome::of_kernel(&links, &received, &self.said(SENDER)?, road.paths)
            }
            System::Quic { .. } => Outcome::of_quic(&links, &received, &self.said(SENDER)?),
            _ => {
                let window = (self.warm_up as f64, (self.warm_up + self.seconds) as f64);
                Outcome::of_bench(&links, &received, window)
            }
        }
    }

    /// The reports of the emulator and of the side that measures a workload.
    fn measure(
        &self,
        road: &Road,
        system: System,
        seed: u64,
        workload: Workload,
    ) -> Result<(Value, Value), String> {
        let sides = match system {
            System::Quic { control } => self.quic_sides(road, control, workload.name()),
            _ => self.workload_sides(road, system, workload),
        };
        let blackout = format!("path.a.blackout={}s-3600s", DARK.as_secs());
        let settings = match workload {
            Workload::Gap => &[blackout][..],
            Workload::Flows | Workload::Messages => &[],
        };
        let links = self.emulate(road, seed, sides, (workload.time(), settings))?;
        let teller = if workload == Workload::Flows { SENDER } else { RECEIVER };
        Ok((links, self.said(teller)?))
    }

    /// The commands of both sides for a workload of the kernel's transports or ours.
    fn workload_sides(&self, road: &Road, system: System, workload: Workload) -> (String, String) {
        let words = match system {
            System::Tcp { congestion, path, .. } => {
                let traffic = self.traffic(road, (false, congestion), path);
                format!("kernel {}", traffic.arguments())
            }
            System::Mptcp { congestion } => {
                format!("kernel {}", self.traffic(road, (true, congestion), 0).arguments())
            }
            System::Paper { profile } => self.our_words(road, profile),
            _ => self.our_words(road, "anabranch"),
        };
        let side = |side, file| {
            let (own, workload) = (quoted(&self.own), workload.name());
            format!("{own} side {side} {workload} {words} > {}", self.file(file))
        };
        (side("send", SENDER), side("receive", RECEIVER))
    }

    /// The commands of both sides for QUIC, for a workload or `bulk`.
    fn quic_sides(&self, road: &Road, control: &str, what: &str) -> (String, String) {
        // Remove what an earlier run left.
        let _ = fs::remove_file(self.folder.path().join("certificate"));
        let Bench { warm_up, seconds, .. } = self;
        let (folder, paths) = (quoted(self.folder.path()), road.paths);
        let side = |side, file| {
            let program = quoted(&self.quic);
            let words = format!("{control} {folder} {paths} {warm_up} {seconds}");
            format!("{program} {side} {what} {words} > {}", self.file(file))
        };
        (side("send", SENDER), side("receive", RECEIVER))
    }

    fn our_words(&self, road: &Road, profile: &str) -> String {
        format!("ours {profile} {} {}", self.file("key"), road.paths)
    }

    /// Runs a sender and a receiver over `road` with further `settings`, whose traffic takes `time`; returns what the
    /// emulator reports.
    fn emulate(
        &self,
        road: &Road,
        seed: u64,
        (sender, receiver): (String, String),
        (time, settings): (Duration, &[String]),
    ) -> Result<Value, String> {
        for name in [SENDER, RECEIVER] {
            // Remove what an earlier run left.
            let _ = fs::remove_file(self.folder.path().join(name));
        }
        let limit = (2 * time.as_secs() + SLACK).to_string();
        let mut command = Command::new("timeout");
        // In the foreground Ctrl-C ends the emulator as well.
        command.args(["--foreground", &limit]).args(NICE).arg(&self.program);
        command.arg("emulate").arg(road.scenario());
        command.args(["--set", &format!("variants={}", road.variant), "--seed", &seed.to_string()]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.args(["--late", LATE, "--quiet", "--json", "--client", &sender]);
        let links = output(command.args(["--server", &receiver]))?;
        serde_json::from_str(&links).map_err(|error| format!("emulate: {error}"))
    }

    fn traffic(&self, road: &Road, (multipath, congestion): (bool, &str), path: usize) -> Traffic {
        Traffic {
            multipath,
            congestion: congestion.to_owned(),
            path: u8::try_from(path + 1).unwrap_or(u8::MAX),
            paths: u8::try_from(road.paths).unwrap_or(u8::MAX),
            warm_up: self.warm_up,
            seconds: self.seconds,
        }
    }

    /// The shell commands of the sender, which runs in the client's namespace, and of the receiver.
    fn sides(&self, road: &Road, system: System) -> (String, String) {
        let kernel = |traffic: Traffic| {
            let side = |side, file| {
                let own = quoted(&self.own);
                format!("{own} {side} {} > {}", traffic.arguments(), self.file(file))
            };
            (side("send", SENDER), side("receive", RECEIVER))
        };
        match system {
            System::Tcp { congestion, path, .. } => {
                kernel(self.traffic(road, (false, congestion), path))
            }
            System::Mptcp { congestion } => kernel(self.traffic(road, (true, congestion), 0)),
            System::Quic { control } => self.quic_sides(road, control, "bulk"),
            System::Paper { profile } => self.ours(road.paths, profile),
            _ => self.ours(road.paths, "anabranch"),
        }
    }

    /// The commands of both sides for our transport with a profile. The receiver is the client of `bench` and has the
    /// server send (`--reverse`), because the client reports what came in each second.
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

    /// The report that a side wrote.
    fn said(&self, name: &str) -> Result<Value, String> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))
    }
}

/// The files that the sides write.
const SENDER: &str = "sender.json";
const RECEIVER: &str = "receiver.json";

/// A path as one word for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Runs `command` and returns its standard output.
///
/// # Errors
/// If it fails. The error contains the last lines of its standard error.
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
