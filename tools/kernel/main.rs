//! Compares our transport with the kernel's over the same emulated links: `cargo xtask kernel`.
//!
//! `anabranch emulate` joins two network namespaces by the links of a road. Over them run, one after the other, TCP on
//! each path alone, MPTCP over all paths and `anabranch bench`, always from the client's side to the server's, with
//! the links' random draws of the same seeds; and in virtual time the simulator's models of the kernel's transports.
//! docs/guide/compare.md tells how to read the table.

#[path = "../arguments.rs"]
mod arguments;
mod cpu;
mod facts;
mod figures;
#[path = "../roads/files.rs"]
mod files;
mod interrupted;
mod model;
mod options;
mod ours;
mod page;
mod roads;
mod side;
mod sockets;
mod systems;
mod table;
mod traffic;
mod trial;
mod workload;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use facts::Facts;
use interrupted::Interrupted;
use model::Model;
use options::Options;
use roads::Road;
use systems::System;
use table::Row;
use trial::Bench;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((side, rest)) if side == "send" => traffic::send(rest).map(|()| true),
        Some((side, rest)) if side == "receive" => traffic::receive(rest).map(|()| true),
        Some((side, rest)) if side == "side" => side::run(rest).map(|()| true),
        _ => match asked(&arguments) {
            Ok(Some((options, roads))) => compare(&options, roads),
            Ok(None) => Ok(true),
            Err(message) => {
                eprintln!("kernel: {message}");
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) if message == INTERRUPTED => {
            eprintln!("kernel: {message}");
            ExitCode::from(130)
        }
        Err(message) => {
            eprintln!("kernel: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Options and roads to run; `None` if help or the list was asked for, which are printed.
fn asked(arguments: &[String]) -> Result<Option<(Options, Vec<Road>)>, String> {
    let Some(options) = Options::read(arguments)? else {
        print!("{}", options::HELP);
        return Ok(None);
    };
    let roads = roads::choose(&options)?;
    systems::check(&options)?;
    if options.list {
        roads.iter().for_each(|road| println!("{:24} {}", road.name(), road.kind));
        return Ok(None);
    }
    Ok(Some((options, roads)))
}

/// Message after Ctrl-C.
const INTERRUPTED: &str = "interrupted; what was measured until then is kept";

/// Runs everything and shows it as it comes; tells whether every run succeeded.
fn compare(options: &Options, roads: Vec<Road>) -> Result<bool, String> {
    let interrupted = Interrupted::listen()?;
    let bench = Bench::new(options)?;
    let facts = Facts::gather();
    println!("{}\n{}", facts.line(), options.line());
    facts.missing.iter().for_each(|why| println!("left out: {why}"));
    let mut rows = Vec::new();
    // Fail on files that cannot be written before spending time on runs.
    write(options, &facts, &rows)?;
    for road in roads {
        println!("\n{}", table::heading(&road));
        let first = rows.len();
        for system in System::chosen(road.paths, options, &facts) {
            let row = row(&bench, options, (&road, system), &interrupted);
            let is_over = interrupted.is_so(false);
            if !row.runs.is_empty() {
                println!("{}", table::line(&row));
                table::notes(&row).iter().for_each(|note| println!("    {note}"));
                rows.push(row);
                let of_road = rows.get(first..).unwrap_or_default();
                let ratio = of_road.last().and_then(|row| table::of_kernel(row, of_road));
                ratio.iter().for_each(|ratio| println!("    {ratio:.2} of the kernel's"));
            }
            // Write after every system, so that an interruption loses little.
            write(options, &facts, &rows)?;
            if is_over {
                return Err(INTERRUPTED.to_owned());
            }
        }
        println!("{}", table::verdict(rows.get(first..).unwrap_or_default()));
    }
    Ok(rows.iter().all(Row::is_complete))
}

/// Runs a system on a road with every seed, or with fewer if Ctrl-C comes in between.
fn row(
    bench: &Bench,
    options: &Options,
    (road, system): (&Road, System),
    interrupted: &Interrupted,
) -> Row {
    let mut runs = Vec::new();
    for seed in 1..=options.seeds {
        let run = match Model::of(options, road, system) {
            Some(model) => model.and_then(|model| model.run(seed)),
            None => bench.run(road, system, seed, options),
        };
        let is_whole = run.as_ref().is_ok_and(|outcome| outcome.failures.is_empty());
        // Ctrl-C ends the programs of a run too, so that the run fails.
        if interrupted.is_so(!is_whole) && !is_whole {
            break;
        }
        runs.push(run);
        if interrupted.is_so(false) {
            break;
        }
    }
    Row { road: road.clone(), system, runs }
}

/// Writes the files that were asked for.
fn write(options: &Options, facts: &Facts, rows: &[Row]) -> Result<(), String> {
    let put = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    let report = table::report(options, facts, rows);
    let json = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())? + "\n";
    if let Some(file) = &options.json {
        put(file, &json)?;
    }
    if let Some(folder) = &options.out {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        put(&folder.join("kernel.json"), &json)?;
        put(&folder.join("kernel.html"), &page::html(options, facts, rows))?;
    }
    Ok(())
}
