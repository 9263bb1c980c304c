//! `sim merge`: merges runs from several results directories.

use std::path::Path;

use anabranch_results::{Journal, Manifest, MissingRuns, Sweep, conclude};

use super::args::MergeArgs;
use super::run::{default_directory, failure, held, show};
use crate::failure::Failure;
use crate::format;

/// Most points whose missing runs are named; the summary has all.
const NAMED_POINTS: usize = 5;

/// Takes over the runs kept in any of the directories, and writes tables and a summary of them.
///
/// # Errors
/// The errors of [`super::run`]; runs that are missing are a failure.
pub(super) fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let (first, others) = args
        .directories
        .split_first()
        .ok_or_else(|| Failure::usage("no directory to take runs from"))?;
    let mut sweep = Sweep::of(first).map_err(failure)?;
    for directory in others {
        let other = Manifest::of(directory).map_err(failure)?;
        if let Some(what) = sweep.provenance().conflict(&other.provenance) {
            let first = first.display();
            let what = format!("{}: {what}, unlike {first}", directory.display());
            return Err(Failure::usage(what));
        }
        sweep = sweep.with_seeds(&other.seeds);
    }
    let out = args.out.clone().unwrap_or_else(|| default_directory(&sweep));
    if out.join(Manifest::FILE).exists() {
        // Seeds that were asked for earlier still belong to the results in `out`.
        sweep = sweep.with_seeds(&Manifest::of(&out).map_err(failure)?.seeds);
    }
    let journal = Journal::open(&out, &sweep).map_err(failure)?;
    let mut taken = 0;
    for directory in args.directories.iter().filter(|directory| !is_same(directory, &out)) {
        taken += journal.take(directory).map_err(failure)?;
    }
    eprintln!(
        "anabranch sim: {}, {} taken from {}",
        sweep.scenario().name(),
        format::counted(taken as u64, "run"),
        match args.directories.len() {
            1 => "1 directory".to_owned(),
            count => format!("{count} directories"),
        }
    );
    let summary = conclude(&journal).map_err(failure)?;
    show(&sweep, &summary, &out, args.json)?;
    if summary.missing.is_empty() {
        return held(&summary);
    }
    let count: usize = summary.missing.iter().map(|runs| runs.seeds.len()).sum();
    Err(Failure::failed(format!(
        "{count} of {} missing: {}; `anabranch sim run FILE --out {}` makes them",
        format::counted(sweep.runs().count() as u64, "run"),
        named(&summary.missing),
        out.display()
    )))
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// `loss=2%, seeds 3, 7-9; loss=5%, seed 1; and at 12 points more`.
fn named(missing: &[MissingRuns]) -> String {
    let one = |runs: &MissingRuns| {
        let point: Vec<String> =
            runs.point.iter().map(|(key, value)| format!("{key}={value}, ")).collect();
        let noun = if runs.seeds.len() == 1 { "seed" } else { "seeds" };
        format!("{}{noun} {}", point.concat(), ranges(&runs.seeds))
    };
    let mut named: Vec<String> = missing.iter().take(NAMED_POINTS).map(one).collect();
    if missing.len() > NAMED_POINTS {
        let more = format::counted((missing.len() - NAMED_POINTS) as u64, "point");
        named.push(format!("and at {more} more"));
    }
    named.join("; ")
}

/// Numbers of seeds, neighbours together.
fn ranges(seeds: &[u64]) -> String {
    let mut sorted = seeds.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for seed in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(seed) => *last = seed,
            _ => ranges.push((seed, seed)),
        }
    }
    let shown = ranges.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_runs_are_named_briefly() {
        let runs = |value: &str, seeds: &[u64]| MissingRuns {
            point: [("loss".to_owned(), value.to_owned())].into(),
            seeds: seeds.to_vec(),
        };
        let mut missing = vec![runs("2%", &[9, 3, 7, 8]), runs("5%", &[1])];
        assert_eq!(named(&missing), "loss=2%, seeds 3, 7-9; loss=5%, seed 1");
        missing.extend((0..6).map(|_| runs("6%", &[u64::MAX])));
        assert!(named(&missing).ends_with("; and at 3 points more"), "{}", named(&missing));
        let alone = MissingRuns { seeds: vec![1, 2], ..MissingRuns::default() };
        assert_eq!(named(&[alone]), "seeds 1-2");
    }
}
