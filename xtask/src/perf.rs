//! Measurements of speed: `cargo xtask perf net`, `cargo xtask perf sim`.

use std::process::ExitCode;

use crate::process;
use crate::workspace::Workspace;

/// Runs the measurement that the first of `arguments` names with the others.
///
/// # Errors
/// If it names none, or the measurement cannot be started.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<ExitCode, String> {
    match arguments.split_first() {
        Some((name, rest)) if name == "net" => net(workspace, rest),
        // Packet-hops per second of the simulator beside ns-2 and ns-3.
        Some((name, rest)) if name == "sim" => process::program(workspace, "perf-sim", rest),
        Some((name, _)) => Err(format!("there is no measurement `{name}`; known: net, sim")),
        None => Err("`perf` needs the name of a measurement: net or sim".into()),
    }
}

/// Throughput over loopback beside quinn's. A workspace of its own, so that nothing else builds quinn.
fn net(workspace: &Workspace, arguments: &[String]) -> Result<ExitCode, String> {
    let mut command = workspace.cargo(&["run", "--quiet", "--release", "--locked"]);
    command.args(["--manifest-path", "tools/perf-net/Cargo.toml", "--"]).args(arguments);
    process::to_end(&mut command)
}
