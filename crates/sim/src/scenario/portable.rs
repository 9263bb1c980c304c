//! A scenario together with the contents of all its files, so that it can be read again without
//! these files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{OwnPolicies, Scenario, ScenarioError};

/// The text, assignments and files from which a scenario is read. Scenarios that are read from the
/// same source have the same hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioSource {
    /// Name of the file, for messages.
    pub file: String,
    /// Text of the file.
    pub text: String,
    /// The `KEY=VALUE` assignments that are applied to the text.
    pub assignments: Vec<String>,
    /// Whether the scenario is shortened by its `[quick]`.
    pub quick: bool,
    /// Contents of the files that the text names, by path.
    pub files: BTreeMap<String, String>,
}

impl ScenarioSource {
    /// Reads the scenario.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file; mistakes in assignments come last.
    pub fn read(&self) -> Result<Scenario, Vec<ScenarioError>> {
        self.read_with(OwnPolicies::default())
    }

    /// Like [`read`](Self::read), but flows and paths may also name `policies`, which are not part
    /// of the source.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn read_with(&self, policies: OwnPolicies) -> Result<Scenario, Vec<ScenarioError>> {
        let mut beside = |path: &str| {
            self.files.get(path).cloned().ok_or_else(|| "it was not kept with the text".to_owned())
        };
        let ScenarioSource { text, file, assignments, quick, .. } = self;
        let scenario = Scenario::load_with(text, file, assignments, policies, &mut beside)?;
        if *quick { scenario.quick() } else { Ok(scenario) }
    }
}

impl Scenario {
    /// The source that this scenario was read from.
    pub fn to_source(&self) -> ScenarioSource {
        ScenarioSource {
            file: self.sources.name().to_owned(),
            text: self.sources.text().to_owned(),
            assignments: self.assignments.clone(),
            quick: self.is_quick,
            files: self.attached.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "name = \"base\"\nduration = \"1s\"\n[[path]]\nname = \"p\"\nrate = \"1mbit\"\n\
        delay = \"1ms\"\n[[flow]]\nname = \"f\"\nprofile = \"tcp:sack\"\npaths = \"p\"\n";
    const TEXT: &str = "name = \"x\"\nbase = \"base.toml\"\n[quick]\nduration = \"500ms\"\n";

    #[test]
    fn a_scenario_can_be_read_again_without_its_files() {
        let mut read = |path: &str| match path {
            "base.toml" => Ok(BASE.to_owned()),
            _ => Err("no such file".to_owned()),
        };
        let settings = ["path.p.delay=3ms".to_owned()];
        let scenario = Scenario::load(TEXT, "x.toml", &settings, &mut read).unwrap();
        for scenario in [scenario.clone(), scenario.quick().unwrap()] {
            let source = scenario.to_source();
            let again = source.read().unwrap();
            assert_eq!(again.to_source(), source);
            assert_eq!(again.hash(), scenario.hash());
            assert_eq!(again.settings(), scenario.settings());
        }
        let without = ScenarioSource { files: BTreeMap::new(), ..scenario.to_source() };
        let mistakes = without.read().unwrap_err();
        assert!(mistakes[0].to_string().contains("base.toml"), "{}", mistakes[0]);
    }
}
