//! `cargo xtask work`: counts the instructions that packets of honest and hostile peers cost a connection.
//!
//! Each case runs in a process of its own, which is single-stepped to count its instructions: unlike times, the count
//! is not noisy. A packet of a hostile peer may cost at most a fixed multiple of an honest one with data. To add an
//! attack, add a `Case` to `cases.rs`.

mod cases;
#[path = "../frames.rs"]
mod frames;
mod peer;
mod prepared;
mod steps;

use std::collections::BTreeMap;
use std::process::ExitCode;

use cases::{CASES, Case, Kind};

/// What can go wrong.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A hostile packet may cost at most this many times what an honest one with data costs.
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

/// Counts and judges; returns whether no hostile packet costs too much.
fn run(names: &[String]) -> Result<bool, Failure> {
    println!("{:<54} {:>12} {:>7}", "packets", "instructions", "ratio");
    let mut honest: BTreeMap<&str, f64> = BTreeMap::new();
    let mut fine = true;
    let chosen = |case: &&Case| names.is_empty() || names.iter().any(|n| case.name.contains(n));
    for case in CASES.iter().filter(chosen) {
        let like = match honest.get(case.like) {
            Some(count) => *count,
            None => {
                let like = CASES.iter().find(|other| other.name == case.like);
                steps::count(like.ok_or("no such case")?, u64::MAX)?
            }
        };
        honest.insert(case.like, like);
        // What is twice too much need not be counted to its end.
        let most = if case.kind == Kind::Hostile { (2.0 * MOST * like) as u64 } else { u64::MAX };
        let count = steps::count(case, most)?;
        let ratio = count / like;
        let too_much = case.kind == Kind::Hostile && ratio > MOST;
        fine &= !too_much;
        let verdict = if too_much { "  too much" } else { "" };
        println!("{:<54} {count:>12.0} {ratio:>7.1}{verdict}", case.name);
    }
    println!(
        "\nInstructions for each packet, on the average, and how many times those of an honest one that is: of a packet \
         with stream data, or of a repair of the same code. A hostile packet may cost {MOST} times as much."
    );
    Ok(fine)
}
