//! `repro`: the papers' figures and tables, with a verdict for each.

pub mod args;
mod progress;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anabranch_repro::{
    Failure as RunFailure, Item, PlannedRun, Report, Settings, catalogue, check, html, make,
    planned, reproduce,
};
use serde::Serialize;

use crate::failure::Failure;
use crate::sim::outlook;
use crate::{format, interrupt, output};
use args::ReproArgs;
use progress::Bar;

/// Lists items, or checks them and reports.
///
/// # Errors
/// Wrong usage for an unknown item or paper; a failure for a file that cannot be written.
pub fn run(args: &ReproArgs) -> Result<(), Failure> {
    let items = chosen(args)?;
    if args.list {
        return list(&items, args.json);
    }
    if args.plan {
        return plan(&items, args);
    }
    if let Some(missing) = args.merge.iter().find(|dir| !dir.is_dir()) {
        let missing = missing.display();
        return Err(Failure::usage(format!("{missing}: there is no such directory to merge")));
    }
    if let Some(dir) = &args.out {
        fs::create_dir_all(dir).map_err(|error| Failure::cannot_write(dir, error))?;
    }
    let bar = Bar::new();
    let settings = Settings {
        quick: args.quick,
        jobs: args.jobs.map_or_else(cores, usize::from),
        cancel: interrupt::flag(),
        progress: &|progress| bar.show(progress),
        runs: args.out.as_deref(),
        merged: &args.merge,
    };
    if let Some(shard) = args.shard {
        let made = make(&items, &settings, shard);
        bar.finish();
        let made = format::counted(made.map_err(|why| refuse(why, args))? as u64, "run");
        return output::print(&format!(
            "{made} of part {shard} finished. When all parts are finished, give the same command with --merge DIR for each part in place of --shard, and another --out\n"
        ));
    }
    let report = reproduce(&items, &settings);
    bar.finish();
    let report = report.map_err(|failure| refuse(failure, args))?;
    if let Some(dir) = &args.out {
        save(&report, args.quick, dir)?;
    }
    if args.json { output::print_json(&report) } else { output::print(&report.table()) }
}

/// The failure to report when the runs do not lead to verdicts.
fn refuse(failure: RunFailure, args: &ReproArgs) -> Failure {
    match (failure, &args.out) {
        (RunFailure::Cancelled, Some(dir)) => Failure::interrupted(format!(
            "interrupted; the same command continues with the runs kept in {}",
            dir.display()
        )),
        (RunFailure::Cancelled, None) => {
            Failure::interrupted("interrupted; with --out DIR finished runs are kept")
        }
        (RunFailure::Missing { runs, total, first }, Some(dir)) => Failure::failed(format!(
            "{runs} of {total} runs are missing, the first of them {first}; without --merge the \
             same command makes them, in {}",
            dir.display()
        )),
        (RunFailure::Results(error), _) if error.is_usage() => Failure::usage(error),
        (other, _) => Failure::failed(other),
    }
}

/// JSON output of `--plan`.
#[derive(Serialize)]
struct Plan {
    version: &'static str,
    commit: &'static str,
    /// CPU time of all runs, s.
    cost: f64,
    runs: Vec<PlannedRun>,
}

/// Prints the runs that the items need.
fn plan(items: &[&'static Item], args: &ReproArgs) -> Result<(), Failure> {
    let settings = Settings { quick: args.quick, ..Settings::default() };
    let runs = planned(items, &settings).map_err(|failure| refuse(failure, args))?;
    let costs: Vec<f64> = runs.iter().map(|run| run.cost).collect();
    if args.json {
        let (version, commit) = (anabranch_repro::VERSION, anabranch_repro::COMMIT);
        return output::print_json(&Plan { version, commit, cost: costs.iter().sum(), runs });
    }
    let count = format::counted(items.len() as u64, "item");
    output::print(&format!("{count}: {}", outlook(&costs, args.shards)))
}

/// The items asked for; all of them if only a list is wanted.
fn chosen(args: &ReproArgs) -> Result<Vec<&'static Item>, Failure> {
    let mut items = Vec::new();
    for id in &args.ids {
        items.push(catalogue::find(id).map_err(Failure::usage)?);
    }
    for paper in &args.paper {
        items.extend(catalogue::of_paper(paper).map_err(Failure::usage)?);
    }
    if args.all || (args.list && items.is_empty()) {
        items = catalogue::items().iter().collect();
    }
    if items.is_empty() {
        return Err(Failure::usage("name items, or give --paper NAME or --all; --list names them"));
    }
    Ok(items)
}

#[derive(Serialize)]
struct ListRow {
    id: &'static str,
    paper: &'static str,
    status: &'static str,
    scenario: &'static str,
}

#[derive(Serialize)]
struct List {
    items: Vec<ListRow>,
}

fn list(items: &[&'static Item], json: bool) -> Result<(), Failure> {
    let row = |item: &&'static Item| ListRow {
        id: item.id,
        paper: item.paper(),
        status: check::status(item.id),
        scenario: item.scenario,
    };
    let rows: Vec<ListRow> = items.iter().map(row).collect();
    if json {
        return output::print_json(&List { items: rows });
    }
    let mut text = String::new();
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
    for row in &rows {
        let ListRow { id, paper, status, scenario } = row;
        let _ = writeln!(text, "{id:width$}  {paper:5}  {status:10}  {scenario}");
    }
    let checked = rows.iter().filter(|row| row.status != check::NOT_YET).count();
    let _ = writeln!(text, "\n{} items, {checked} of them checked", rows.len());
    output::print(&text)
}

fn save(report: &Report, quick: bool, dir: &Path) -> Result<(), Failure> {
    let origin = html::Origin {
        version: anabranch_repro::VERSION.to_owned(),
        commit: anabranch_repro::COMMIT.to_owned(),
        quick,
    };
    let json = serde_json::to_string_pretty(report).map_err(Failure::failed)? + "\n";
    for (name, text) in [("report.json", json), ("report.html", html::page(report, &origin))] {
        let path = dir.join(name);
        anabranch_files::write(&path, text.as_bytes(), 0o666)
            .map_err(|error| Failure::cannot_write(&path, error))?;
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
