//! Profiles: a named protocol is a choice on every policy axis.

mod anabranch;
mod fmtcp;
mod mplot;
mod mtcp;
mod ptcp;
mod uncoded;

use std::collections::BTreeMap;

use anabranch_policy::registry::{Entry, OnAxis, Options, PolicyError, PolicySpec, Registry};
use anabranch_policy::{Axis, CongestionController};
use anabranch_types::PathId;

use crate::coding::code;
use crate::config::TransportConfig;
use crate::wire::TransportParameters;

/// A choice on every policy axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// A line about the profile.
    pub summary: String,
    /// The choices, in the order of [`Axis::ALL`].
    policies: [PolicySpec; Axis::ALL.len()],
    /// Congestion control of single paths.
    paths: BTreeMap<PathId, PolicySpec>,
    /// The policies to choose from.
    registry: Registry,
}

impl Default for Profile {
    /// The first of [`Profile::all`].
    fn default() -> Self {
        anabranch::profile()
    }
}

impl Profile {
    /// A built-in profile, by what it chooses on each axis.
    fn built_in(name: &str, summary: &str, choice: impl Fn(Axis) -> PolicySpec) -> Profile {
        Profile {
            name: name.to_owned(),
            summary: summary.to_owned(),
            policies: Axis::ALL.map(choice),
            paths: BTreeMap::new(),
            registry: Registry::new(),
        }
    }

    /// The built-in profile of this name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::all().into_iter().find(|profile| profile.name == name)
    }

    /// Every built-in profile; the first is the default.
    pub fn all() -> Vec<Profile> {
        vec![
            anabranch::profile(),
            mplot::profile(),
            mplot::paper_profile(),
            mplot::tuned_profile(),
            fmtcp::profile(),
            ptcp::profile(),
            mtcp::profile(),
            uncoded::profile(),
        ]
    }

    /// The transport parameters of a side that has this profile and these limits.
    pub fn parameters(&self, transport: &TransportConfig) -> TransportParameters {
        let code = &self.policy(Axis::Code).name;
        TransportParameters {
            codes: code::announcement(&self.registry, code),
            ..transport.parameters(&self.ack_profile())
        }
    }

    /// Name of the profile by which the peer is asked to acknowledge. If a built-in one of this name
    /// acknowledges otherwise, a `*` makes it a name that the peer cannot know: it then goes by its own profile.
    fn ack_profile(&self) -> String {
        let built_in = Profile::named(&self.name);
        match built_in.is_some_and(|known| known.policy(Axis::Ack) != self.policy(Axis::Ack)) {
            true => format!("{}*", self.name),
            false => self.name.clone(),
        }
    }

    /// The choice on an axis.
    pub fn policy(&self, axis: Axis) -> &PolicySpec {
        &self.policies[axis as usize]
    }

    /// Changes the choice on one axis to `policy`, a name or `name:key=value,…`, and checks that it can be
    /// made.
    ///
    /// # Errors
    /// When there is no such policy, or an option of it is wrong.
    pub fn set(&mut self, axis: Axis, policy: &str) -> Result<(), PolicyError> {
        let spec = policy.parse()?;
        self.registry.check(axis, &spec)?;
        self.policies[axis as usize] = spec;
        Ok(())
    }

    /// Brings a policy of the program's own, on the axis of `P`: `dyn Scheduler` and the like. It can then be
    /// chosen by its name ([`set`](Self::set)), with the options that `entry` lists, like any other.
    ///
    /// `make` is called for every path or connection that wants one, and whenever a choice of it is checked:
    /// making a policy must have no effect of its own.
    ///
    /// # Errors
    /// When the axis has a policy of that name, or users could not write the names in `entry`.
    pub fn register<P: OnAxis + ?Sized>(
        &mut self,
        entry: &'static Entry,
        make: impl Fn(&Options<'_>) -> Result<Box<P>, PolicyError> + Send + Sync + 'static,
    ) -> Result<(), PolicyError> {
        self.registry.register(entry, make)
    }

    /// Lets policies be chosen from `registry`, which must have every policy that the profile uses now.
    ///
    /// # Errors
    /// When one of them is missing; the profile then stays as it was.
    pub fn set_registry(&mut self, registry: Registry) -> Result<(), PolicyError> {
        for axis in Axis::ALL {
            registry.check(axis, self.policy(axis))?;
        }
        for policy in self.paths.values() {
            registry.check(Axis::Congestion, policy)?;
        }
        self.registry = registry;
        Ok(())
    }

    /// The policies to choose from: the built-in ones, and those that were [registered](Self::register).
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Controls congestion on one path by `policy`, whatever controls it on the others. Paths are
    /// numbered as they are opened, from 0.
    ///
    /// # Errors
    /// When there is no such policy, or an option of it is wrong.
    pub fn set_path_congestion(
        &mut self,
        path: PathId,
        policy: PolicySpec,
    ) -> Result<(), PolicyError> {
        self.registry.check(Axis::Congestion, &policy)?;
        self.paths.insert(path, policy);
        Ok(())
    }

    /// Congestion control policy of a path.
    pub fn congestion_of(&self, path: PathId) -> &PolicySpec {
        self.paths.get(&path).unwrap_or_else(|| self.policy(Axis::Congestion))
    }

    /// A controller for `path`, whose full packets have this many bytes.
    pub(crate) fn make_congestion(
        &self,
        path: PathId,
        packet_size: u64,
    ) -> Result<Box<dyn CongestionController>, PolicyError> {
        self.registry.build_for(self.congestion_of(path), packet_size)
    }

    /// A policy of the axis of `P` for one connection.
    pub(crate) fn make<P: OnAxis + ?Sized>(&self) -> Result<Box<P>, PolicyError> {
        self.registry.build(self.policy(P::AXIS))
    }
}

/// A specification that is known to be well-formed because it is written here; tests build every profile.
fn spec(name: &str, options: &[(&str, &str)]) -> PolicySpec {
    options.iter().fold(PolicySpec::new(name), |spec, (key, value)| spec.with(key, value))
}

#[cfg(test)]
mod tests;
