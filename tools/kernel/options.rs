//! The command's options.

use std::path::PathBuf;

use crate::arguments::{LONGEST, number};

pub const HELP: &str = "\
Compares the transport with the kernel's TCP and MPTCP over the same emulated links, in real time

Usage: cargo xtask kernel [OPTIONS]

  --only PATTERN  only these roads of scenarios/roads, such as links/wifi, wifi, 'pairs/*' or 'lte*'; may be repeated.
                  A handful of distinct kinds if left out
  --system NAME   only these systems, such as anabranch, mplot or 'mptcp:*'; may be repeated
  --time S        measure S seconds (10) of each run
  --warm-up S     measure nothing in the S seconds (5) before
  --seeds N       seeds 1 to N (3) of the links' random draws
  --json FILE     write everything into this file, with the figures of each seed
  --out DIR       write kernel.json and kernel.html into this directory
  --list          name the roads that would be run

Example: cargo xtask kernel --only 'pairs/*lte*' --seeds 5 --out comparison

Needs Linux, the right to make network namespaces and TUN devices, and `ip`; what this kernel lacks is left out with the
reason. Each run takes real time, that of --time and --warm-up: every system with every seed on each road.

Exit codes: 0, or 1 if a run failed, or 2 if something was asked wrongly. docs/guide/compare.md tells how to read the
table.
";

/// What to run and where to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The program `anabranch`.
    pub program: PathBuf,
    /// Patterns of roads; the usual ones if empty.
    pub only: Vec<String>,
    /// Patterns of systems; all if empty.
    pub systems: Vec<String>,
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
    /// In words: what was given and what is allowed.
    pub fn read(arguments: &[String]) -> Result<Option<Options>, String> {
        let mut rest = arguments.iter();
        let program = rest.next().ok_or("the first argument is the program to run")?.into();
        let mut options = Options {
            program,
            only: Vec::new(),
            systems: Vec::new(),
            warm_up: 5,
            seconds: 10,
            seeds: 3,
            json: None,
            out: None,
            list: false,
        };
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("{argument} takes a value"));
            let number = |text: String, most| number(argument, &text, most);
            match argument.as_str() {
                "--only" => options.only.push(value()?),
                "--system" => options.systems.push(value()?),
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
        assert_eq!(read("a --help"), Ok(None));
        for wrong in
            ["", "a --seeds 0", "a --seeds x", "a --only", "a --time 3601", "a --json", "a wifi"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
