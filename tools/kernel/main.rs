//! Compares our transport with the kernel's over the same emulated links: `cargo xtask kernel`.
//!
//! `anabranch emulate` joins two network namespaces by the links of a road. Over them run, one after the other, TCP on
//! each path alone, MPTCP over all paths and `anabranch bench`, always from the client's side to the server's, with
//! the links' random draws of the same seeds. docs/guide/compare.md tells how to read the table.

#[path = "../arguments.rs"]
mod arguments;
mod facts;
mod figures;
#[path = "../roads/files.rs"]
mod files;
mod options;
mod page;
mod roads;
mod systems;
mod table;
mod traffic;
mod trial;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use facts::Facts;
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
        Err(message) => {
            eprintln!("kernel: {message}");
            ExitCode::FAILURE
        }
    }
}

/// What is to be run; nothing if help or the list was asked for, which are printed.
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

/// Runs everything and shows it as it comes; tells whether every run succeeded.
fn compare(options: &Options, roads: Vec<Road>) -> Result<bool, String> {
    let bench = Bench::new(options)?;
    let facts = Facts::gather();
    println!("{}\n{}", facts.line(), options.line());
    facts.missing.iter().for_each(|why| println!("left out: {why}"));
    let mut rows = Vec::new();
    // What cannot be written is told before anything takes time.
    write(options, &facts, &rows)?;
    for road in roads {
        println!("\n{}", table::heading(&road));
        let of_road = road_rows(&bench, options, &facts, &road);
        println!("{}", table::verdict(&of_road));
        rows.extend(of_road);
        // After every road, so that an interruption loses little.
        write(options, &facts, &rows)?;
    }
    Ok(rows.iter().all(|row| row.runs.iter().all(Result::is_ok)))
}

/// Every system on one road, printed as each is done.
fn road_rows(bench: &Bench, options: &Options, facts: &Facts, road: &Road) -> Vec<Row> {
    let row = |system: System| {
        let runs = (1..=options.seeds).map(|seed| bench.run(road, system, seed)).collect();
        let row = Row { road: road.clone(), system, runs };
        println!("{}", table::line(&row));
        table::notes(&row).iter().for_each(|note| println!("    {note}"));
        row
    };
    System::chosen(road.paths, options, facts).into_iter().map(row).collect()
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
