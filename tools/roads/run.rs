//! Runs every system on every road with every seed, on all cores.

use anabranch_sim::scenario::Plan;

use crate::files::{self, FILES, first, load};
use crate::measure::Measured;
use crate::options::Options;
use crate::systems::{self, System};
use crate::workers;

/// Warm-up without measurement, seconds.
const WARM_UP: u64 = 5;

/// One system on one road.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The file that has the road.
    pub file: &'static str,
    /// The road.
    pub road: String,
    /// System that runs over the road.
    pub system: String,
    plan: Plan,
}

/// The results of a trial, by seed.
#[derive(Clone, Debug)]
pub struct Row {
    /// The trial that was run.
    pub trial: Trial,
    /// One for each seed, from 1 on.
    pub runs: Vec<Measured>,
}

/// Reads the roads that `options` asks for, and everything that runs over them.
///
/// # Errors
/// If there is no road or policy of a given name, or the scenarios or the settings have other
/// mistakes.
pub fn prepare(options: &Options) -> Result<Vec<Trial>, String> {
    let mut known = Vec::new();
    let mut trials = Vec::new();
    for file in FILES {
        let names = files::roads(&load(file, &[])?);
        for road in &names {
            if options.list {
                println!("{file}/{road}");
            } else if is_chosen(options, file, road) {
                road_trials(options, file, road, &mut trials)?;
            }
        }
        known.push((file, names));
    }
    match options.only.iter().find(|name| !exists(name, &known)) {
        Some(unknown) => {
            let roads: Vec<String> =
                known.iter().map(|(file, names)| format!("{file}: {}", names.join(", "))).collect();
            let roads = roads.join("; ");
            Err(format!(
                "--only: there is no road '{unknown}'; allowed: {}; {roads}",
                FILES.join(", ")
            ))
        }
        None => Ok(trials),
    }
}

/// Whether `name` is a file, a road, or a road of a file.
fn exists(name: &str, known: &[(&'static str, Vec<String>)]) -> bool {
    known.iter().any(|(file, names)| {
        let of_file = name.strip_prefix(file).and_then(|rest| rest.strip_prefix('/'));
        name == *file || names.iter().any(|road| road == name || of_file == Some(road))
    })
}

fn is_chosen(options: &Options, file: &str, road: &str) -> bool {
    let means =
        |name: &String| name == file || name == road || name.split_once('/') == Some((file, road));
    options.only.is_empty() || options.only.iter().any(means)
}

fn road_trials(
    options: &Options,
    file: &'static str,
    road: &str,
    trials: &mut Vec<Trial>,
) -> Result<(), String> {
    let systems = match file {
        "pairs" => systems::over_a_pair(&options.congestion),
        _ => systems::over_a_link(&options.congestion),
    };
    for System { name, settings } in systems {
        let mut assignments = vec![
            format!("variants={road}"),
            format!("duration={}s", options.seconds + WARM_UP),
            format!("warm-up={WARM_UP}s"),
        ];
        assignments.extend(settings);
        assignments.extend(options.settings.iter().cloned());
        let scenario = load(file, &assignments)?;
        let point = scenario.points().first().ok_or("a road without a point")?;
        let plan = scenario.plan(point).map_err(|errors| first(&errors))?;
        trials.push(Trial { file, road: road.to_owned(), system: name, plan });
    }
    Ok(())
}

/// Runs all trials; the rows are in the order of the trials, not in the order in which they end.
/// Progress goes to the standard error stream.
///
/// # Errors
/// The error names the first run that failed.
pub fn all(trials: Vec<Trial>, options: &Options) -> Result<Vec<Row>, String> {
    let seeds = options.seeds as usize;
    let outcomes = workers::map(trials.len() * seeds, options.jobs, |index| {
        let Some(trial) = trials.get(index / seeds) else {
            return Err(format!("there is no trial for run {index}"));
        };
        let seed = (index % seeds) as u64 + 1;
        Measured::run(&trial.plan, seed).map_err(|why| {
            format!("{}/{}, {}, seed {seed}: {why}", trial.file, trial.road, trial.system)
        })
    })?;
    let runs = outcomes.chunks(seeds.max(1)).map(<[Measured]>::to_vec);
    Ok(trials.into_iter().zip(runs).map(|(trial, runs)| Row { trial, runs }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Options {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Options::read(&words).expect("valid").expect("no help")
    }

    #[test]
    fn there_are_roads_enough() {
        let trials = prepare(&options(&[])).expect("valid");
        let roads = |file, systems| {
            let of_file = trials.iter().filter(|trial| trial.file == file);
            of_file.count() / systems
        };
        assert!(roads("links", 3) >= 40 && roads("pairs", 7) >= 20);
    }

    #[test]
    fn roads_are_chosen_by_name_and_unknown_ones_refused() {
        let chosen = |words: &[&str]| prepare(&options(words)).map(|trials| trials.len());
        assert_eq!(chosen(&["--only", "wifi"]), Ok(3));
        assert_eq!(chosen(&["--only", "normal-5"]), Ok(10), "a link and a pair");
        assert_eq!(chosen(&["--only", "pairs/normal-5"]), Ok(7));
        assert_eq!(chosen(&["--only", "wifi", "--congestion", "vegas"]), Ok(2));
        for (words, said) in [
            (
                ["--only", "autobahn"],
                "there is no road 'autobahn'; allowed: links, pairs; links: fibre,",
            ),
            (["--only", "pairs/wifi"], "there is no road 'pairs/wifi'"),
            (["--congestion", "warp"], "warp"),
            (["--set", "flow.bulk.colour=red"], "there is no key 'colour'"),
        ] {
            let message = chosen(&words).expect_err(said);
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn the_same_rows_come_out_whatever_runs_at_once() {
        let measured = |jobs| {
            let options = options(&[
                "--only",
                "links/dsl-slow",
                "--seconds",
                "3",
                "--seeds",
                "2",
                "--jobs",
                jobs,
            ]);
            let rows = all(prepare(&options).expect("valid"), &options).expect("runs");
            rows.into_iter().map(|row| (row.trial.system, row.runs)).collect::<Vec<_>>()
        };
        let rows = measured("1");
        assert_eq!(rows, measured("3"));
        assert_eq!(rows.len(), 3);
        for (system, runs) in rows {
            assert_eq!(runs.len(), 2);
            let good = |run: &Measured| (0.5..1.0).contains(&run.efficiency);
            assert!(runs.iter().all(good), "{system}: {runs:?}");
        }
    }
}
