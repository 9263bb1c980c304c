//! Chooses the runs of a sweep that this process makes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anabranch_results::{RunId, RunKey, Sweep};
use serde::Deserialize;

use super::args::RunArgs;
use crate::failure::Failure;

/// Lists of runs are not longer than this, bytes.
const MAX_SIZE: u64 = 1 << 30;

/// The runs that `args` ask for, in the sweep's order.
///
/// # Errors
/// When the list of runs cannot be read, or has one that is not of this sweep.
pub(super) fn selected(args: &RunArgs, sweep: &Sweep) -> Result<Vec<RunId>, Failure> {
    match (args.shard, &args.runs) {
        (Some(shard), _) => Ok(sweep.shard(shard)),
        (None, Some(file)) => listed(file, sweep),
        (None, None) => Ok(sweep.runs().collect()),
    }
}

/// Output of `sim plan --json`, as far as it matters here.
#[derive(Deserialize)]
struct Plan {
    runs: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Id(String),
    Run { id: String },
}

fn listed(file: &Path, sweep: &Sweep) -> Result<Vec<RunId>, Failure> {
    let name = file.display();
    let text = read(file).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    let ids = ids(&text).map_err(|why| Failure::usage(format!("{name}: {why}")))?;
    if ids.is_empty() {
        return Err(Failure::usage(format!(
            "{name}: no runs in it; `anabranch sim plan` lists them"
        )));
    }
    let known: BTreeMap<RunKey, RunId> =
        sweep.runs().filter_map(|id| Some((sweep.key(id)?, id))).collect();
    let mut chosen = BTreeSet::new();
    for id in ids {
        let key: RunKey = id.parse().map_err(|why| Failure::usage(format!("{name}: {why}")))?;
        let Some(run) = known.get(&key) else {
            return Err(Failure::usage(format!(
                "{name}: {key} is not a run of this scenario with these settings, seeds and version; \
                 `anabranch sim plan` lists them"
            )));
        };
        chosen.insert(*run);
    }
    Ok(sweep.runs().filter(|id| chosen.contains(id)).collect())
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        io::stdin().lock().take(MAX_SIZE).read_to_string(&mut text)?;
    } else {
        fs::File::open(file)?.take(MAX_SIZE).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// The ids in a list: JSON, or the first word of every line that is neither empty nor a comment.
fn ids(text: &str) -> Result<Vec<String>, String> {
    let id = |listed: Listed| match listed {
        Listed::Id(id) | Listed::Run { id } => id,
    };
    let listed = match text.trim_start().chars().next() {
        Some('{') => serde_json::from_str::<Plan>(text).map(|plan| plan.runs),
        Some('[') => serde_json::from_str::<Vec<Listed>>(text),
        _ => {
            let words = text.lines().filter_map(|line| line.split_whitespace().next());
            return Ok(words.filter(|word| !word.starts_with('#')).map(str::to_owned).collect());
        }
    };
    let listed = listed.map_err(|error| format!("no list of runs: {error}"))?;
    Ok(listed.into_iter().map(id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_lines_or_json() {
        let expected = Ok(vec!["aa".to_owned(), "bb".to_owned()]);
        for text in [
            "aa\nbb\n",
            "# two runs\n\n  aa point 0\n bb\n",
            "[\"aa\", \"bb\"]",
            " {\"scenario\": \"x\", \"runs\": [{\"id\": \"aa\", \"seed\": 1}, \"bb\"]}",
        ] {
            assert_eq!(ids(text), expected, "{text}");
        }
        assert_eq!(ids(" \n"), Ok(Vec::new()));
        for wrong in ["{}", "[1]", "{\"runs\": 3}", "[\"aa\""] {
            assert!(ids(wrong).unwrap_err().contains("no list of runs"), "{wrong}");
        }
    }
}
