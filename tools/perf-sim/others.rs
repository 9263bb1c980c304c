//! The workloads in other simulators that are installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Workload;
use crate::clock;

/// A simulator that runs the workloads as a program of its own.
#[derive(Debug)]
pub struct Other {
    /// Name of the simulator in reports.
    pub name: &'static str,
    program: PathBuf,
    script: Option<PathBuf>,
}

/// Results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Processor seconds of the whole process.
    pub seconds: f64,
    /// Data packets delivered.
    pub data_packets: u64,
}

impl Run {
    /// Packets forwarded by links: three hops for each data packet, and three back for its acknowledgement.
    pub fn packet_hops(&self) -> u64 {
        6 * self.data_packets
    }
}

impl Other {
    /// The simulators that are installed. `scripts` holds what they run, `work` takes what has to be built.
    pub fn installed(scripts: &Path, work: &Path) -> Vec<Other> {
        ns2(scripts).into_iter().chain(ns3(scripts, work)).collect()
    }

    /// Runs a workload once; `None` if that fails, with a line that says why.
    pub fn run(&self, workload: &Workload) -> Option<Run> {
        let before = clock::of_children();
        let mut command = Command::new(&self.program);
        command.args(&self.script).args(workload.arguments());
        let output = command.output().ok()?;
        let seconds = clock::of_children() - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().and_then(|line| line.trim().parse().ok());
        if last.is_none() {
            eprintln!("{}: {}", self.name, String::from_utf8_lossy(&output.stderr).trim());
        }
        Some(Run { seconds, data_packets: last? })
    }
}

fn ns2(scripts: &Path) -> Option<Other> {
    let script = scripts.join("dumbbell.tcl");
    let probe = Command::new("ns").args(["/dev/null"]).output();
    probe.is_ok().then(|| Other { name: "ns-2", program: "ns".into(), script: Some(script) })
}

/// ns-3 is a library, so its program is built first, optimised.
fn ns3(scripts: &Path, work: &Path) -> Option<Other> {
    let modules = ["core", "network", "internet", "point-to-point", "applications"];
    let packages = modules.map(|module| format!("ns3-{module}"));
    let flags = Command::new("pkg-config").args(["--cflags", "--libs"]).args(packages).output();
    let flags = flags.ok().filter(|output| output.status.success())?;
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let program = work.join("ns3-dumbbell");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O2", "-o"]).arg(&program).arg(scripts.join("dumbbell.cc"));
    let built = compiler.args(flags.split_whitespace()).status().ok()?.success();
    built.then_some(Other { name: "ns-3", program, script: None })
}
