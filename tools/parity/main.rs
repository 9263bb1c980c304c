//! Whether real time agrees with virtual time: `cargo xtask parity`.
//!
//! The demo sends over real UDP sockets through emulated links, then repeats itself in virtual time over links with the
//! same models and the same draws. One core does both, so their rates should agree, except for what the machine adds:
//! timers, system calls, and threads that wait for a processor. Each pair is printed with the lateness of the links'
//! thread and the waiting time of runnable threads, so that a difference caused by the machine can be distinguished
//! from one caused by the code.

mod pressure;
mod runs;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use runs::{Demo, Run};
use verdict::Verdict;

const HELP: &str = "\
Compares the demo over real UDP sockets with the same demo in virtual time

Usage: cargo xtask parity [--seeds N] [--time S] [--json]

  --seeds N   runs with the seeds 1 to N (10) of each profile
  --time S    each sends for S seconds (30), 60 at most
  --json      print JSON instead of tables

Fails if the mean ratio of any profile is off by more than 5 %. Where the system allows, the demo
runs at a real-time priority, so that other programs disturb it less.
";

/// The profiles compared.
const PROFILES: [&str; 5] = ["mplot", "fmtcp", "ptcp", "mtcp", "anabranch"];
/// The longest time that the demo simulates, seconds.
const LONGEST: u64 = 60;

/// Options of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    /// The program whose demo is run.
    program: PathBuf,
    seeds: u64,
    seconds: u64,
    json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match options(&arguments).and_then(|options| options.map_or(Ok(true), |it| compare(&it))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("parity: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the arguments; `None` if they ask for help, which is printed.
fn options(arguments: &[String]) -> Result<Option<Options>, String> {
    let mut rest = arguments.iter().map(String::as_str);
    let program = rest.next().ok_or("the first argument is the program to run")?.into();
    let mut options = Options { program, seeds: 10, seconds: 30, json: false };
    while let Some(argument) = rest.next() {
        let mut number = |most: u64| match rest.next().map(str::parse::<u64>) {
            Some(Ok(number)) if (1..=most).contains(&number) => Ok(number),
            _ => Err(format!("{argument} takes a number from 1 to {most}")),
        };
        match argument {
            "--seeds" => options.seeds = number(1000)?,
            "--time" => options.seconds = number(LONGEST)?,
            "--json" => options.json = true,
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(None);
            }
            other => return Err(format!("unknown argument `{other}`\n\n{HELP}")),
        }
    }
    Ok(Some(options))
}

/// Runs everything and prints it; returns whether every profile agrees.
fn compare(options: &Options) -> Result<bool, String> {
    let demo = Demo::new(&options.program, options.seconds);
    if !options.json {
        println!("{}\n{}", demo.about(), Run::HEADINGS);
    }
    let mut verdicts = Vec::new();
    for profile in PROFILES {
        let mut runs = Vec::new();
        for seed in 1..=options.seeds {
            let run = demo.run(profile, seed)?;
            if options.json {
                eprintln!("{}", run.line());
            } else {
                println!("{}", run.line());
            }
            runs.push(run);
        }
        verdicts.push(Verdict::new(profile, runs));
    }
    if options.json {
        let text = serde_json::to_string_pretty(&verdicts);
        println!("{}", text.map_err(|error| error.to_string())?);
    } else {
        println!();
        verdicts.iter().for_each(|verdict| println!("{}", verdict.line()));
    }
    Ok(verdicts.iter().all(|verdict| verdict.agrees))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<Options>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        options(&words)
    }

    #[test]
    fn arguments_are_read_or_refused() {
        let default = Options { program: "demo".into(), seeds: 10, seconds: 30, json: false };
        assert_eq!(read("demo"), Ok(Some(default.clone())));
        let asked = Options { seeds: 3, seconds: 5, json: true, ..default };
        assert_eq!(read("demo --time 5 --json --seeds 3"), Ok(Some(asked)));
        for wrong in ["", "demo --time 61", "demo --seeds 0", "demo --seeds", "demo --fast"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
