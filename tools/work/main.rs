//! `cargo xtask work`: counts the instructions that packets of honest and hostile peers cost a connection.
//!
//! Each case runs in a process of its own, which is single-stepped to count its instructions: unlike times, the count
//! is not noisy. A packet of a hostile peer may cost at most a fixed multiple of the honest one that it is compared
//! with. To add an attack, add a `Case` to `cases.rs`.

mod cases;
#[path = "../frames.rs"]
mod frames;
mod peer;
mod prepared;
mod steps;
#[path = "../workers.rs"]
mod workers;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::process::ExitCode;
use std::thread;

use cases::{CASES, Case, DATA, Kind};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A hostile packet may cost at most this many times the honest one that it is compared with.
const MOST: f64 = 20.0;

const HELP: &str = "\
Usage: cargo xtask work [CASE]...

  CASE   a part of a case's name; without any, all are run
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let outcome = match args.peek().map(String::as_str) {
        Some(steps::ROLE) => steps::deliver(args.nth(1)),
        Some("--help" | "-h") => {
            print!("{HELP}");
            Ok(true)
        }
        _ => run(&args.collect::<Vec<String>>()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("work: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Counts and judges; returns whether every hostile packet costs little enough.
fn run(names: &[String]) -> Result<bool, Failure> {
    let chosen = |case: &Case| names.is_empty() || names.iter().any(|n| case.name.contains(n));
    let (hostile, others): (Vec<&Case>, Vec<&Case>) =
        CASES.iter().partition(|case| case.kind == Kind::Hostile);
    let hostile: Vec<&Case> = hostile.into_iter().filter(|case| chosen(case)).collect();
    if !CASES.iter().any(chosen) {
        return Err(format!("no case has {} in its name", names.join(" or ")).into());
    }
    let likes = |name: &str| hostile.iter().any(|case| case.like == name);
    let is_needed = |case: &&Case| case.name == DATA || chosen(case) || likes(case.name);
    let others: Vec<&Case> = others.into_iter().filter(is_needed).collect();

    println!("{:<54} {:>12} {:>7}", "packets", "instructions", "ratio");
    let mut honest: BTreeMap<&str, f64> = BTreeMap::new();
    for (case, count) in others.iter().zip(count_all(&others, |_| u64::MAX)?) {
        honest.insert(case.name, count);
        if chosen(case) {
            println!("{:<54} {count:>12.0} {:>7.1}", case.name, count / honest[case.like]);
        }
    }
    let mut fine = true;
    // Stop counting at twice the limit.
    let most = |case: &Case| (2.0 * MOST * honest[case.like]) as u64;
    for (case, count) in hostile.iter().zip(count_all(&hostile, most)?) {
        let ratio = count / honest[case.like];
        let verdict = if ratio > MOST { "  too much" } else { "" };
        println!("{:<54} {count:>12.0} {ratio:>7.1}{verdict}", case.name);
        fine &= ratio <= MOST;
    }
    println!(
        "\nInstructions for each packet, on the average, and how many times those of an honest one that is: of a packet \
         with stream data, or of a repair of the same code. A hostile packet may cost {MOST} times as much."
    );
    Ok(fine)
}

/// Counts the cases on all processors at once; returns their counts in their order. Counting a case ends at `most`
/// instructions for each packet.
fn count_all(cases: &[&Case], most: impl Fn(&Case) -> u64 + Sync) -> Result<Vec<f64>, Failure> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let counts = workers::map(cases.len(), processors, |index| {
        let case = cases[index];
        steps::count(case, most(case)).map_err(|error| error.to_string())
    });
    Ok(counts?)
}
