//! Compares the simulator, above all its TCP, with measurements of established simulators, point by point.
//!
//! Run it as `cargo xtask oracle`, which builds it optimised.

mod arguments;
mod bottleneck;
mod cell;
mod dumbbell;
mod fairness;
mod mesh;
mod report;
mod senders;
mod single;
mod statistics;
mod table;
mod twostate;
#[path = "../workers.rs"]
mod workers;

use std::process::ExitCode;

use arguments::Arguments;
use report::Report;
use table::{Kind, Table};

fn main() -> ExitCode {
    match run() {
        Ok(Some(report)) => {
            report.print();
            if report.passes() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("oracle: {message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<Option<Report>, String> {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1))? else {
        print!("{}", arguments::HELP);
        return Ok(None);
    };
    let path = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file).map_err(|why| format!("{path}: {why}"))?;
    let table = Table::parse(&path, &text)?;
    let rows = match table.kind() {
        Kind::Single => single::compare(&table, &arguments)?,
        Kind::Dumbbell => dumbbell::compare(&table, &arguments)?,
        Kind::Fairness => fairness::compare(&table, &arguments)?,
        Kind::TwoState => twostate::compare(&table, &arguments)?,
        Kind::Cell => cell::compare(&table, &arguments)?,
        Kind::Mesh => mesh::compare(&table, &arguments)?,
    };
    Ok(Some(Report::new(rows, arguments.json)))
}
