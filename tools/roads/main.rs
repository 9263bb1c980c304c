//! Runs several congestion controls over roads, which are links that behave like real ones: `cargo
//! xtask roads`.
//!
//! The roads are the variants of two scenarios, one link or two at a time. Every system under test runs over each of
//! them with each seed, in virtual time, so the table is the same on every machine. docs/roads.md tells how to read it.

#[path = "../arguments.rs"]
mod arguments;
mod files;
mod measure;
mod options;
mod run;
mod systems;
mod table;
#[path = "../workers.rs"]
mod workers;

use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::read(&arguments) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(message) => return refuse(&message),
    };
    let trials = match run::prepare(&options) {
        Ok(trials) => trials,
        Err(message) => return refuse(&message),
    };
    let shown = run::all(trials, &options).and_then(|rows| {
        table::print(&rows, options.json)?;
        Ok(rows.iter().all(|row| table::failures(row).next().is_none()))
    });
    match shown {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("roads: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Reports wrong usage.
fn refuse(message: &str) -> ExitCode {
    eprintln!("roads: {message}");
    ExitCode::from(2)
}
