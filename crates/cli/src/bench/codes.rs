//! `bench codes`: the CPU time that erasure codes take, and how many symbols they need.

pub mod args;
mod measure;
mod report;

use anabranch_policy::PolicySpec;
use anabranch_policy::code::{self, TABLE};

use crate::failure::Failure;
use crate::format;
use crate::output;
use args::CodesArgs;
use measure::{Sample, Shape, Trial};
use report::Row;

/// Measures the codes and prints the results as text or JSON.
///
/// # Errors
/// If a code does not exist, or rebuilds bytes that differ from those sent.
pub fn run(args: &CodesArgs) -> Result<(), Failure> {
    let specs = if args.codes.is_empty() {
        TABLE.iter().map(|(entry, _)| PolicySpec::new(entry.name)).collect()
    } else {
        args.codes.clone()
    };
    for spec in &specs {
        code::build(spec).map_err(Failure::usage)?;
    }
    let mut rows = Vec::new();
    for sources in &args.sources {
        for loss in &args.loss {
            let shape = Shape { sources: *sources, symbol: args.symbol.into(), loss: *loss };
            rows.extend(shaped(&specs, shape, args)?);
        }
    }
    if args.json {
        output::print_json(&rows)
    } else {
        output::print(&report::table(&rows, args.symbol))
    }
}

/// Measures all codes with blocks of one shape. In each round every code gets one block.
fn shaped(specs: &[PolicySpec], shape: Shape, args: &CodesArgs) -> Result<Vec<Row>, Failure> {
    let mut trials = Vec::new();
    for spec in specs {
        if let Some(trial) = Trial::new(spec, shape, args.seed).map_err(Failure::usage)? {
            trials.push((spec.to_string(), Some(trial), Vec::<Sample>::new()));
        }
    }
    // The first round fills caches and tables, and is not counted.
    for round in 0..=args.blocks {
        for (name, trial, samples) in &mut trials {
            match trial.as_mut().and_then(Trial::block) {
                Some(sample) if sample.wrong > 0 => {
                    let symbols = format::counted(sample.wrong, "symbol");
                    return Err(Failure::failed(format!("{name} rebuilt {symbols} wrongly")));
                }
                Some(sample) if round > 0 => samples.push(sample),
                Some(_) => {}
                None => *trial = None,
            }
        }
    }
    let complete = trials.into_iter().filter(|(_, trial, _)| trial.is_some());
    Ok(complete.map(|(name, _, samples)| Row::new(name, shape, &samples)).collect())
}
