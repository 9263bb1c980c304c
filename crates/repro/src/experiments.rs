//! The scenarios of the papers, which are part of the program.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use anabranch_sim::scenario::Scenario;

/// A scenario file of `scenarios/papers`.
#[derive(Debug)]
pub struct Experiment {
    /// Path below `scenarios/papers` without the extension, such as `mplot/fig3`.
    pub name: &'static str,
    text: &'static str,
    /// Items that the scenario's claims, measures and figures are about.
    pub items: BTreeSet<String>,
}

/// Names and texts of every file.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// Every scenario, in the order of names.
pub fn all() -> &'static [Experiment] {
    static ALL: OnceLock<Vec<Experiment>> = OnceLock::new();
    let read = |(name, text): &(&'static str, &'static str)| Experiment {
        name,
        text,
        items: Scenario::items(text),
    };
    ALL.get_or_init(|| FILES.iter().map(read).collect())
}

/// The scenarios that say something about an item.
pub fn of_item(id: &str) -> impl Iterator<Item = &'static Experiment> {
    all().iter().filter(move |experiment| experiment.items.contains(id))
}

impl Experiment {
    /// Path of the scenario file in the repository.
    pub fn file(&self) -> String {
        format!("scenarios/papers/{}.toml", self.name)
    }

    /// The scenario, shortened if `quick`.
    ///
    /// # Errors
    /// If the scenario has mistakes. The error describes the first one and its place.
    pub fn scenario(&self, quick: bool) -> Result<Scenario, String> {
        let directory = self.name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut beside = |path: &str| {
            let name = format!("{directory}/{}", path.trim_end_matches(".toml"));
            let found = FILES.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such scenario".to_owned())
        };
        let scenario = Scenario::load(self.text, &self.file(), &[], &mut beside);
        scenario
            .and_then(|scenario| if quick { scenario.quick() } else { Ok(scenario) })
            .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn every_scenario_is_right_in_full_and_in_quick_runs() {
        for experiment in all() {
            assert!(!experiment.items.is_empty(), "{} is about no item", experiment.name);
            for id in &experiment.items {
                catalogue::find(id).unwrap_or_else(|error| panic!("{}: {error}", experiment.name));
            }
            let runs = [false, true].map(|quick| {
                let scenario = experiment.scenario(quick).unwrap_or_else(|e| panic!("{e}"));
                scenario.points().len() * scenario.seeds().len()
            });
            assert!(runs[1] < runs[0], "{}: {runs:?}", experiment.name);
        }
    }

    #[test]
    fn items_are_described_once_and_their_findings_have_names_of_their_own() {
        let ids: BTreeSet<&String> = all().iter().flat_map(|e| &e.items).collect();
        for id in ids {
            let mut described = 0;
            let mut names = BTreeSet::new();
            for experiment in of_item(id) {
                let scenario = experiment.scenario(false).unwrap_or_else(|e| panic!("{e}"));
                described += scenario.results().iter().filter(|r| r.item == *id).count();
                // Without runs nothing is measured, but every finding has its name.
                for finding in scenario.judge(&[]) {
                    if finding.item.as_ref() == Some(id) {
                        assert!(names.insert(finding.name.clone()), "{id}: two '{}'", finding.name);
                    }
                }
            }
            assert_eq!(described, 1, "{id}");
            assert!(!names.is_empty(), "{id}");
        }
    }
}
