//! The command's options.

use std::path::PathBuf;

use crate::arguments::{LONGEST, number};
use crate::workload::Workload;

pub const HELP: &str = "\
Compares the transport with the kernel's TCP and MPTCP over the same emulated links, in real time

Usage: cargo xtask kernel [OPTIONS]

  --only PATTERN  only these roads of scenarios/roads, such as links/wifi, wifi, 'pairs/*' or 'lte*'; may be repeated.
                  A handful of distinct kinds if left out
  --system NAME   only these systems, such as anabranch, mplot or 'mptcp:*'; may be repeated
  --quic PROGRAM  run multipath QUIC by noq too: this program of tools/quic, which has a build of its own
  --measure WHAT  measure these beside the goodput: flows, gap or messages; may be repeated. All if left out; `none`
  --time S        measure S seconds (10) of each run
  --warm-up S     measure nothing in the S seconds (5) before
  --seeds N       seeds 1 to N (3) of the links' random draws
  --json FILE     write everything into this file, with the figures of each seed
  --out DIR       write kernel.json and kernel.html into this directory
  --list          name the roads that would be run

Example: cargo xtask kernel --only 'pairs/*lte*' --seeds 5 --out comparison

Needs Linux, the right to make network namespaces and TUN devices, and `ip`; what this kernel lacks is left out with the
reason. Each run takes real time, that of --time and --warm-up, 10 s for gap, 8 for messages and up to 20 for flows:
every system with every seed on each road. Ctrl-C ends it and keeps what was measured.

Exit codes: 0, or 1 if a run failed, 2 if something was asked wrongly, 130 after Ctrl-C. docs/guide/compare.md tells how to read the
table.
";

/// Options of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The program `anabranch`.
    pub program: PathBuf,
    /// Patterns of roads; the usual ones if empty.
    pub only: Vec<String>,
    /// Patterns of systems; all if empty.
    pub systems: Vec<String>,
    /// The program of tools/quic, if multipath QUIC is to be run.
    pub quic: Option<PathBuf>,
    /// Workloads measured beside the goodput.
    pub workloads: Vec<Workload>,
    pub warm_up: u64,
    pub seconds: u64,
    pub seeds: u64,
    pub json: Option<PathBuf>,
    pub out: Option<PathBuf>,
    /// Only name the roads.
    pub list: bool,
}

impl Options {
    /// Reads the arguments, of which the first is the program; none if they ask for help.
    ///
    /// # Errors
    /// The error says what was given and what is allowed.
    pub fn read(arguments: &[String]) -> Result<Option<Options>, String> {
        let mut rest = arguments.iter();
        let program = rest.next().ok_or("the first argument is the program to run")?.into();
        let mut options = Options {
            program,
            only: Vec::new(),
            systems: Vec::new(),
            quic: None,
            workloads: Vec::new(),
            warm_up: 5,
            seconds: 10,
            seeds: 3,
            json: None,
            out: None,
            list: false,
        };
        let mut measured = Vec::new();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("{argument} takes a value"));
            let number = |text: String, most| number(argument, &text, most);
            match argument.as_str() {
                "--only" => options.only.push(value()?),
                "--system" => options.systems.push(value()?),
                "--quic" => options.quic = Some(value()?.into()),
                "--measure" => measured.push(value()?),
                "--warm-up" => options.warm_up = number(value()?, LONGEST)?,
                "--time" => options.seconds = number(value()?, LONGEST)?,
                "--seeds" => options.seeds = number(value()?, 1000)?,
                "--json" => options.json = Some(value()?.into()),
                "--out" => options.out = Some(value()?.into()),
                "--list" => options.list = true,
                "--help" | "-h" => return Ok(None),
                other => return Err(format!("unknown argument `{other}`\n\n{HELP}")),
            }
        }
        options.workloads = workloads(&measured)?;
        Ok(Some(options))
    }

    /// The settings of the runs, in words.
    pub fn line(&self) -> String {
        let Options { seconds, warm_up, seeds, .. } = self;
        let runs =
            if *seeds == 1 { "one run".to_owned() } else { format!("medians of {seeds} seeds") };
        format!("{seconds} s each after a warm-up of {warm_up} s; {runs}")
    }
}

/// The workloads of these names; all if there are none.
fn workloads(names: &[String]) -> Result<Vec<Workload>, String> {
    if names.is_empty() {
        return Ok(Workload::ALL.to_vec());
    }
    let known = |name: &&String| name.as_str() != "none";
    let named = |name: &String| {
        Workload::named(name).ok_or_else(|| {
            let allowed = Workload::ALL.map(Workload::name).join(", ");
            format!("--measure: '{name}' is not accepted; allowed: {allowed}, none")
        })
    };
    names.iter().filter(known).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<Options>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(&words)
    }

    #[test]
    fn arguments_are_read_or_refused() {
        let options = read("a --only wifi --only pairs/* --seeds 5 --time 7 --json x --out y --system mptcp:* --warm-up 2")
            .expect("valid")
            .expect("no help");
        assert_eq!((options.seeds, options.seconds, options.only.len()), (5, 7, 2));
        assert_eq!((options.warm_up, options.systems), (2, vec!["mptcp:*".to_owned()]));
        assert_eq!((options.json, options.out), (Some("x".into()), Some("y".into())));
        assert_eq!((options.workloads, options.quic), (Workload::ALL.to_vec(), None));
        let workloads =
            |line| read(line).map(|options| options.map(|options| options.workloads.len()));
        assert_eq!(workloads("a --measure gap --measure flows"), Ok(Some(2)));
        assert_eq!(workloads("a --measure none"), Ok(Some(0)));
        assert_eq!(read("a --help"), Ok(None));
        for wrong in [
            "",
            "a --measure speed",
            "a --seeds 0",
            "a --seeds x",
            "a --only",
            "a --time 3601",
            "a --json",
            "a wifi",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
