//! Policies that a program adds to those that a scenario can name.

use core::cell::RefCell;

use anabranch_policy::Registry;

use super::error::{Flaw, ScenarioError};
use super::reader::{Context, Files};
use super::sources::Sources;
use super::{ReadFile, Scenario};

/// A program's own policies. A scenario names them like the built-in policies: for any flow, on any
/// axis, and for single paths.
#[derive(Clone, Debug, Default)]
pub struct OwnPolicies {
    registry: Registry,
    version: String,
}

impl OwnPolicies {
    /// The policies of `registry`. Runs of a scenario with policies of the same names and the same
    /// `version` count as runs of one scenario, so the version must change whenever a policy may
    /// decide differently. A hash of the source code can serve as version.
    pub fn new(registry: Registry, version: &str) -> Self {
        OwnPolicies { registry, version: version.to_owned() }
    }

    /// All policies that can be named, including the built-in ones.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The version that distinguishes these policies from others with the same names.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Texts that differ between policies whose runs must not be mixed; none if the program has no
    /// policies of its own.
    pub(super) fn identity(&self) -> impl Iterator<Item = String> + '_ {
        let mut names: Vec<String> =
            self.registry.own().map(|(axis, entry)| format!("{axis} {}", entry.name)).collect();
        names.sort();
        let version = (!names.is_empty()).then(|| self.version.clone());
        names.into_iter().chain(version)
    }

    /// The context in which a scenario with these policies is read.
    pub(super) fn context<'a>(
        &'a self,
        flaws: &'a RefCell<Vec<Flaw>>,
        files: &'a dyn Files,
    ) -> Context<'a> {
        Context { flaws, files, registry: &self.registry }
    }
}

impl Scenario {
    /// Like [`load`](Self::load), but flows and paths may also name `policies`. Scenarios that are
    /// derived from this one keep these policies.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file; mistakes in assignments come last.
    pub fn load_with(
        text: &str,
        file_name: &str,
        assignments: &[String],
        policies: OwnPolicies,
        read: &mut ReadFile<'_>,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::read(Sources::new(file_name, text), assignments, false, policies, read)
    }

    /// The program's own policies for this scenario.
    pub fn policies(&self) -> &OwnPolicies {
        &self.policies
    }
}
