//! `sim plan`: lists the runs of a scenario and their estimated cost.

use std::collections::BTreeMap;
use std::fmt::Write;

use anabranch_results::{Provenance, Sweep, divide};
use serde::Serialize;

use super::args::PlanArgs;
use super::load::load_sweep;
use crate::failure::Failure;
use crate::{format, output};

/// Every run, for programs that distribute them.
#[derive(Serialize)]
struct Plan<'a> {
    scenario: &'a str,
    hash: &'a str,
    settings: &'a [String],
    version: &'a str,
    commit: &'a str,
    seeds: &'a [u64],
    /// CPU time of all runs, s.
    cost: f64,
    points: Vec<PlannedPoint<'a>>,
    runs: Vec<PlannedRun>,
}

#[derive(Serialize)]
struct PlannedPoint<'a> {
    /// The sweep's keys with their values.
    point: BTreeMap<&'a str, &'a str>,
    /// Estimated CPU time of one run of the point, s.
    cost: f64,
}

#[derive(Serialize)]
struct PlannedRun {
    id: String,
    /// Index among the points.
    point: usize,
    seed: u64,
    cost: f64,
}

/// Prints the runs, or how much there is to do.
///
/// # Errors
/// The errors of [`super::run`].
pub(super) fn plan(args: &PlanArgs) -> Result<(), Failure> {
    let sweep = load_sweep(&args.scenario)?;
    if args.json {
        return output::print_json(&listed(&sweep));
    }
    output::print(&text(&sweep, args.shards))
}

fn listed(sweep: &Sweep) -> Plan<'_> {
    let Provenance { scenario, hash, settings, version, commit, .. } = sweep.provenance();
    let points = sweep.scenario().points().iter().map(|point| PlannedPoint {
        point: point.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        cost: sweep.scenario().cost(point),
    });
    let run = |id| PlannedRun {
        id: sweep.key(id).map(|key| key.to_string()).unwrap_or_default(),
        point: id.point,
        seed: id.seed,
        cost: sweep.cost(id),
    };
    Plan {
        scenario,
        hash,
        settings,
        version,
        commit,
        seeds: sweep.seeds(),
        cost: sweep.runs().map(|id| sweep.cost(id)).sum(),
        points: points.collect(),
        runs: sweep.runs().map(run).collect(),
    }
}

fn text(sweep: &Sweep, shards: Option<u32>) -> String {
    let costs: Vec<f64> = sweep.runs().map(|id| sweep.cost(id)).collect();
    format!(
        "{}: {} × {} = {}",
        sweep.scenario().name(),
        format::counted(sweep.scenario().points().len() as u64, "point"),
        format::counted(sweep.seeds().len() as u64, "seed"),
        outlook(&costs, shards)
    )
}

/// How many runs there are and how long they may take, together and in each of this many parts.
pub fn outlook(costs: &[f64], shards: Option<u32>) -> String {
    let runs = |count: usize| format::counted(count as u64, "run");
    let total: f64 = costs.iter().sum();
    let longest = costs.iter().copied().fold(0.0, f64::max);
    let (count, total, longest) = (runs(costs.len()), time(total), time(longest));
    let mut text = format!("{count}, about {total} of CPU time, the longest run {longest}\n");
    let Some(shards) = shards else { return text };
    for (number, chosen) in (1..).zip(divide(costs, shards)) {
        let cost: f64 = chosen.iter().filter_map(|place| costs.get(*place)).sum();
        // Writing to a string cannot fail.
        let (count, cost) = (runs(chosen.len()), time(cost));
        let _ = writeln!(text, "  --shard {number}/{shards}  {count}, {cost}");
    }
    text
}

/// An estimate, in the unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.01 => "less than 0.01 s".to_owned(),
        _ if seconds < 10.0 => format!("{seconds:.2} s"),
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}
