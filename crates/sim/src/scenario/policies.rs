//! Policies that a program brings to a scenario.

use core::cell::RefCell;

use anabranch_policy::Registry;

use super::error::{Flaw, ScenarioError};
use super::reader::{Context, Files};
use super::sources::Sources;
use super::{ReadFile, Scenario};

/// Policies that a program brings to a scenario, where they are named like the built-in ones: for every
/// flow, on every axis, and on single paths.
#[derive(Clone, Debug, Default)]
pub struct OwnPolicies {
    registry: Registry,
    version: String,
}

impl OwnPolicies {
    /// The policies of `registry`. Runs of scenarios whose policies have the same names and the same
    /// `version` count as runs of one scenario: the version has to change whenever a policy may decide
    /// otherwise than before, as a hash of the sources does.
    pub fn new(registry: Registry, version: &str) -> Self {
        OwnPolicies { registry, version: version.to_owned() }
    }

    /// Policies that can be named, the built-in ones included.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The version that tells these policies from others of the same names.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Texts that differ between policies whose runs must not be mixed; none if nothing was brought.
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
    /// Version of [`load`](Self::load) where flows and paths may also name `policies`. Scenarios derived from this
    /// one keep them.
    ///
    /// # Errors
    /// Every mistake found, in the order of the file, those of assignments last.
    pub fn load_with(
        text: &str,
        file_name: &str,
        assignments: &[String],
        policies: OwnPolicies,
        read: &mut ReadFile<'_>,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::read(Sources::new(file_name, text), assignments, false, policies, read)
    }

    /// The policies that a program has brought to the scenario.
    pub fn policies(&self) -> &OwnPolicies {
        &self.policies
    }
}
