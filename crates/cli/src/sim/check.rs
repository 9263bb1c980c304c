//! `sim check`: reports mistakes in a scenario, or what it would run.

use std::fmt::Write;

use anabranch_sim::scenario::{Scenario, ScenarioError};
use serde::Serialize;

use super::args::CheckArgs;
use super::load;
use crate::failure::Failure;
use crate::{format, output};

/// Summary of the runs that a scenario describes.
#[derive(Serialize)]
struct Outlook {
    name: String,
    title: String,
    hash: String,
    points: usize,
    seeds: usize,
    runs: usize,
    /// Smallest and largest number in a single run, over all points.
    links: (usize, usize),
    flows: (usize, usize),
    loads: (usize, usize),
    /// Virtual time of all runs together, s.
    virtual_seconds: f64,
    claims: usize,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    mistakes: &'a [ScenarioError],
    scenario: Option<&'a Outlook>,
}

/// Checks a scenario, or prints the schema of all.
///
/// # Errors
/// The errors of [`super::run`].
pub(super) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let Some(file) = args.file.as_deref().filter(|_| !args.schema) else {
        return output::print(&(Scenario::json_schema().trim_end().to_owned() + "\n"));
    };
    let checked = load::load(file, &args.settings)?.and_then(|scenario| {
        // The scenario must be right with `--quick` as well.
        scenario.quick()?;
        outlook(&scenario)
    });
    let (outlook, mistakes) = match checked {
        Ok(outlook) => (Some(outlook), Vec::new()),
        Err(mistakes) => (None, mistakes),
    };
    if args.json {
        let (ok, mistakes) = (outlook.is_some(), &mistakes);
        output::print_json(&Answer { ok, mistakes, scenario: outlook.as_ref() })?;
    } else if let Some(outlook) = &outlook {
        output::print(&text(outlook))?;
    }
    if outlook.is_none() { Err(load::refuse(&mistakes)) } else { Ok(()) }
}

fn outlook(scenario: &Scenario) -> Result<Outlook, Vec<ScenarioError>> {
    let seeds = scenario.seeds().len();
    let mut seconds = 0.0;
    let mut counts: [Option<(usize, usize)>; 3] = [None; 3];
    for point in scenario.points() {
        let plan = scenario.plan(point)?;
        seconds += plan.duration.as_secs_f64() * seeds as f64;
        let sizes = [plan.links.len(), plan.flows.len(), plan.loads.len()];
        for (count, size) in counts.iter_mut().zip(sizes) {
            let (least, most) = count.unwrap_or((size, size));
            *count = Some((least.min(size), most.max(size)));
        }
    }
    let [links, flows, loads] = counts.map(Option::unwrap_or_default);
    Ok(Outlook {
        name: scenario.name().to_owned(),
        title: scenario.title().to_owned(),
        hash: scenario.hash(),
        points: scenario.points().len(),
        seeds,
        runs: scenario.points().len() * seeds,
        links,
        flows,
        loads,
        virtual_seconds: seconds,
        claims: scenario.claims().iter().filter(|claim| claim.is_judged).count(),
    })
}

fn text(outlook: &Outlook) -> String {
    let counted = |count: usize, noun: &str| format::counted(count as u64, noun);
    let ranged = |(least, most): (usize, usize), noun: &str| {
        if least == most {
            counted(most, noun)
        } else {
            format!("{least} to {}", counted(most, noun))
        }
    };
    let mut text = format!("{}: no mistakes\n", outlook.name);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {}", outlook.title);
    let _ = writeln!(
        text,
        "  {} × {} = {}, at most {:.0} s of virtual time",
        counted(outlook.points, "point"),
        counted(outlook.seeds, "seed"),
        counted(outlook.runs, "run"),
        outlook.virtual_seconds
    );
    let _ = writeln!(
        text,
        "  each with {} (both directions counted), {}, {}",
        ranged(outlook.links, "link"),
        ranged(outlook.flows, "flow"),
        ranged(outlook.loads, "load")
    );
    let _ = writeln!(text, "  {} about the results", counted(outlook.claims, "claim"));
    text
}
