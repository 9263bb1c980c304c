//! The provenance of results: scenario, settings, version and commit.

use serde::{Deserialize, Serialize};

/// Version of this build, `major.minor.patch`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that was built, in hexadecimal, or `unknown` outside a checkout.
///
/// Uncommitted changes do not show in the commit's hash.
pub const COMMIT: &str = env!("ANABRANCH_COMMIT");

/// Everything needed to make the same results again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The scenario's name.
    pub scenario: String,
    /// Hash of the scenario with its settings; equal hashes mean equal runs.
    pub hash: String,
    /// Settings made on the command line, `key=value`, in their order.
    pub settings: Vec<String>,
    /// [`VERSION`] of the build that ran the scenario.
    pub version: String,
    /// [`COMMIT`] of the build that ran the scenario.
    pub commit: String,
    /// The complete text of the scenario file.
    pub text: String,
}

impl Provenance {
    /// The provenance of a scenario run by this build.
    pub fn new(scenario: &str, hash: &str, settings: &[String], text: &str) -> Self {
        Provenance {
            scenario: scenario.to_owned(),
            hash: hash.to_owned(),
            settings: settings.to_vec(),
            version: VERSION.to_owned(),
            commit: COMMIT.to_owned(),
            text: text.to_owned(),
        }
    }

    /// The difference because of which the runs of `other` and of `self` must not be mixed; `None`
    /// if they may be mixed.
    pub fn conflict(&self, other: &Provenance) -> Option<String> {
        let short = |commit: &str| commit.get(..10).unwrap_or(commit).to_owned();
        if self.hash != other.hash {
            let same_name = self.scenario == other.scenario;
            let which = if same_name { "another version of scenario" } else { "scenario" };
            return Some(format!("it holds results of {which} `{}`", other.scenario));
        }
        if (&self.version, &self.commit) != (&other.version, &other.commit) {
            return Some(format!(
                "its results were made by version {} at commit {}, this is {} at {}",
                other.version,
                short(&other.commit),
                self.version,
                short(&self.commit)
            ));
        }
        None
    }
}
