//! Facts about the machine and its kernel.

use std::fs;
use std::process::Command;

use crate::systems::CONGESTION;

/// The machine, the kernel and the program's version.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Version of our transport.
    pub version: &'static str,
    /// The commit that is checked out, with `-dirty` if files have changed since; empty if git does not tell.
    pub commit: String,
    /// The kernel's release, such as 6.12.0.
    pub kernel: String,
    pub cores: usize,
    /// The kernel's congestion controls.
    pub congestion: Vec<String>,
    pub has_mptcp: bool,
    /// Why some systems are left out.
    pub missing: Vec<String>,
}

impl Facts {
    /// Gathers the facts; loads modules of congestion controls.
    pub fn gather() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut facts = Facts {
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            kernel: read("/proc/sys/kernel/osrelease"),
            cores,
            ..Facts::default()
        };
        // Load the modules first: the list below names only those that are loaded.
        for name in CONGESTION {
            let _ = Command::new("modprobe").args(["-q", &format!("tcp_{name}")]).status();
        }
        let available = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
        facts.congestion = available.split_whitespace().map(str::to_owned).collect();
        for name in CONGESTION {
            if !facts.has(name) {
                facts.missing.push(format!("{name}: this kernel offers only {available}"));
            }
        }
        match no_mptcp() {
            Some(why) => facts.missing.push(format!("mptcp: {why}")),
            None => facts.has_mptcp = true,
        }
        facts
    }

    /// Whether the kernel has this congestion control.
    pub fn has(&self, congestion: &str) -> bool {
        self.congestion.iter().any(|name| name == congestion)
    }

    /// The facts on one line.
    pub fn line(&self) -> String {
        let Facts { version, commit, kernel, cores, .. } = self;
        format!("anabranch {version} ({commit}), Linux {kernel}, {cores} cores")
    }
}

/// Why MPTCP cannot be run; `None` if it can.
fn no_mptcp() -> Option<String> {
    match read("/proc/sys/net/mptcp/enabled").as_str() {
        "1" => {}
        "" => return Some("this kernel has none".to_owned()),
        _ => return Some("it is off: `sysctl net.mptcp.enabled=1`".to_owned()),
    }
    let told = Command::new("ip").args(["mptcp", "limits", "show"]).output();
    match told {
        Ok(output) if output.status.success() => None,
        _ => Some("`ip mptcp` does not work; iproute2 5.8 has it".to_owned()),
    }
}

fn commit() -> String {
    let folder = env!("CARGO_MANIFEST_DIR");
    let describe = ["-C", folder, "describe", "--always", "--dirty", "--exclude=*"];
    let output = Command::new("git").args(describe).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).unwrap_or_default()
}

/// A file of the kernel's, without the line's end; empty if it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
