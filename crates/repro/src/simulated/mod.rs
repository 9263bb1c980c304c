//! Items that are simulated: a scenario file each, or one shared by several, and a checker.

mod evidence;
pub(crate) mod mplot;

pub use evidence::Evidence;

use anabranch_sim::scenario::Scenario;

use crate::outcome::Outcome;

/// A scenario file of `scenarios/papers`.
#[derive(Debug)]
pub struct Experiment {
    /// Its path below that directory, without the extension: `mplot/fig3`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// What `--quick` changes, as `--set` of `sim run` takes it.
    pub quick: &'static [&'static str],
}

impl Experiment {
    /// The scenario, shortened if `quick`.
    ///
    /// # Errors
    /// The first mistake in it, with its place.
    pub fn scenario(&self, quick: bool) -> Result<Scenario, String> {
        let file = format!("scenarios/papers/{}.toml", self.name);
        let quick: &[&str] = if quick { self.quick } else { &[] };
        let assignments: Vec<String> = quick.iter().map(|text| (*text).to_owned()).collect();
        let mut no_files = |path: &str| Err(format!("'{path}' is not part of the program"));
        Scenario::load(self.text, &file, &assignments, &mut no_files)
            .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())
    }
}

/// An item that is simulated.
#[derive(Debug)]
pub struct Simulated {
    /// The item's identifier.
    pub id: &'static str,
    /// The experiments it looks at, shared with other items where they are the same.
    pub experiments: &'static [&'static Experiment],
    /// Reads off what the runs show.
    pub check: fn(&Evidence) -> Outcome,
}

/// Every simulated item.
const ALL: [&[Simulated]; 1] = [mplot::ITEMS];

/// The simulated item with this identifier.
pub fn find(id: &str) -> Option<&'static Simulated> {
    ALL.iter().flat_map(|items| items.iter()).find(|item| item.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn every_scenario_is_right_in_full_and_in_quick_runs() {
        for item in ALL.iter().flat_map(|items| items.iter()) {
            assert_eq!(catalogue::find(item.id).unwrap().id, item.id);
            for experiment in item.experiments {
                let points = [false, true].map(|quick| {
                    let scenario = experiment.scenario(quick).unwrap_or_else(|e| panic!("{e}"));
                    scenario.points().len() * scenario.seeds().len()
                });
                assert!(points[1] <= points[0], "{}", experiment.name);
            }
        }
    }
}
