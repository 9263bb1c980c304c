//! One run of the demo: what it delivered, and how busy the machine was.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::pressure;

/// How to run the demo.
#[derive(Debug)]
pub struct Demo {
    program: PathBuf,
    seconds: u64,
    /// Whether the system lets programs take a real-time priority.
    urgent: bool,
}

/// A demo in real time and its repetition in virtual time.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub profile: String,
    pub seed: u64,
    /// Application rates, Mb/s.
    pub real_mbps: f64,
    pub simulated_mbps: f64,
    /// The real rate over the simulated one.
    pub ratio: f64,
    /// How late the links forwarded datagrams, ms: 99th percentile and maximum.
    pub late_p99_ms: f64,
    pub late_max_ms: f64,
    /// Share of the time in which some thread of the machine waited for a processor, where known.
    pub pressure: Option<f64>,
}

impl Demo {
    /// The demo of `program`, sending for `seconds`.
    pub fn new(program: &Path, seconds: u64) -> Self {
        let urgent = urgently("true").stderr(Stdio::null()).status().is_ok_and(|it| it.success());
        Demo { program: program.to_owned(), seconds, urgent }
    }

    /// How the demo is run.
    pub fn about(&self) -> String {
        let priority = if self.urgent { "a real-time priority" } else { "ordinary priority" };
        format!("{} s each, at {priority}", self.seconds)
    }

    /// Runs the demo once.
    ///
    /// # Errors
    /// If it cannot be started, fails, or prints another report than expected.
    pub fn run(&self, profile: &str, seed: u64) -> Result<Run, String> {
        let mut command =
            if self.urgent { urgently(&self.program) } else { Command::new(&self.program) };
        let (time, number) = (self.seconds.to_string(), seed.to_string());
        command.args(["demo", "--json", "--time", &time, "--profile", profile, "--seed", &number]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let before = pressure::waited();
        let child = command.spawn().map_err(|error| format!("cannot run the demo: {error}"))?;
        // Sample now: afterwards the demo itself needs every processor, for its virtual runs.
        thread::sleep(Duration::from_secs(self.seconds));
        let waited = before.zip(pressure::waited()).map(|(before, after)| after - before);
        let output = child.wait_with_output().map_err(|error| format!("the demo: {error}"))?;
        if !output.status.success() {
            return Err(format!("the demo of {profile} with seed {seed}: {}", output.status));
        }
        let report = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("the demo's report: {error}"))?;
        let pressure = waited.map(|waited| waited.as_secs_f64() / self.seconds as f64);
        Run::read(profile, seed, &report, pressure)
    }
}

/// A command that runs `program` at the lowest real-time priority.
fn urgently(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("chrt");
    command.args(["--rr", "1"]).arg(program);
    command
}

impl Run {
    pub const HEADINGS: &str =
        "profile    seed     real  simulated  ratio  late p99       max  waited for a processor";

    /// Reads the demo's report.
    ///
    /// # Errors
    /// If a figure is missing or nothing was delivered in virtual time.
    pub fn read(
        profile: &str,
        seed: u64,
        report: &Value,
        pressure: Option<f64>,
    ) -> Result<Self, String> {
        let number = |key: &str| {
            let number = report.get(key).and_then(Value::as_f64);
            number.ok_or_else(|| format!("the demo reports no number `{key}`"))
        };
        let (real, simulated) = (number("goodput_mbps")?, number("simulated_mbps")?);
        if simulated <= 0.0 {
            return Err(format!("{profile} delivers nothing in virtual time with seed {seed}"));
        }
        Ok(Run {
            profile: profile.to_owned(),
            seed,
            real_mbps: real,
            simulated_mbps: simulated,
            ratio: real / simulated,
            late_p99_ms: number("links_late_p99_ms")?,
            late_max_ms: number("links_late_max_ms")?,
            pressure,
        })
    }

    /// A line of the table.
    pub fn line(&self) -> String {
        let waited = self.pressure.map_or("unknown".to_owned(), |p| format!("{:.0} %", p * 100.0));
        format!(
            "{:9} {:5} {:8.3} {:10.3} {:6.3} {:6.2} ms {:6.2} ms  {waited}",
            self.profile,
            self.seed,
            self.real_mbps,
            self.simulated_mbps,
            self.ratio,
            self.late_p99_ms,
            self.late_max_ms
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_become_lines_of_the_table() {
        let mut report = json!({ "goodput_mbps": 49.5, "simulated_mbps": 50.0,
            "links_late_p99_ms": 0.25, "links_late_max_ms": 3.0 });
        let run = Run::read("mplot", 7, &report, Some(0.5)).unwrap();
        assert_eq!(
            run.line(),
            "mplot         7   49.500     50.000  0.990   0.25 ms   3.00 ms  50 %"
        );
        assert!(Run { pressure: None, ..run }.line().ends_with("unknown"));
        report["simulated_mbps"] = json!(0.0);
        assert!(Run::read("mplot", 7, &report, None).is_err());
        assert!(Run::read("mplot", 7, &json!({}), None).is_err());
    }
}
