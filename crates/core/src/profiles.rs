//! Profiles: a protocol is defined by a name and the choice of a policy on every axis.

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

/// The choice of a policy on every axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// A one-line summary.
    pub summary: String,
    /// The choices, in the order of [`Axis::ALL`].
    policies: [PolicySpec; Axis::ALL.len()],
    /// Congestion control of single paths.
    paths: BTreeMap<PathId, PolicySpec>,
    /// The available policies.
    registry: Registry,
}

impl Default for Profile {
    /// The first of [`Profile::all`].
    fn default() -> Self {
        anabranch::profile()
    }
}

impl Profile {
    /// Creates a built-in profile. `choice` returns its policy for each axis.
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

    /// The transport parameters of a side with this profile and these limits.
    pub fn parameters(&self, transport: &TransportConfig) -> TransportParameters {
        let code = &self.policy(Axis::Code).name;
        TransportParameters {
            codes: code::announcement(&self.registry, code),
            ..transport.parameters(&self.ack_profile())
        }
    }

    /// The profile name that tells the peer how to acknowledge. If the built-in profile of this
    /// name acknowledges differently, a `*` is appended. The peer does not know that name, so it
    /// acknowledges as its own profile says.
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

    /// Sets the policy of one axis to `policy`, a name or `name:key=value,…`, after checking it.
    ///
    /// # Errors
    /// Returns an error if there is no such policy or one of its options is invalid.
    pub fn set(&mut self, axis: Axis, policy: &str) -> Result<(), PolicyError> {
        let spec = policy.parse()?;
        self.registry.check(axis, &spec)?;
        self.policies[axis as usize] = spec;
        Ok(())
    }

    /// Registers a custom policy on the axis of `P`, for example `dyn Scheduler`. It can then be
    /// chosen by name ([`set`](Self::set)), with the options that `entry` lists, like a built-in
    /// one.
    ///
    /// `make` is called for each path or connection that uses the policy, and whenever a choice of
    /// the policy is checked. It must therefore have no side effects.
    ///
    /// # Errors
    /// Returns an error if the axis already has a policy of that name, or if a name in `entry`
    /// cannot be written in a specification.
    pub fn register<P: OnAxis + ?Sized>(
        &mut self,
        entry: &'static Entry,
        make: impl Fn(&Options<'_>) -> Result<Box<P>, PolicyError> + Send + Sync + 'static,
    ) -> Result<(), PolicyError> {
        self.registry.register(entry, make)
    }

    /// Replaces the registry by `registry`, which must contain every policy that the profile uses
    /// now.
    ///
    /// # Errors
    /// Returns an error if one of these policies is missing; the profile is then unchanged.
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

    /// The available policies: the built-in ones and those that were [registered](Self::register).
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Sets the congestion control of one path, independently of the other paths. Paths are
    /// numbered from 0 in the order in which they are opened.
    ///
    /// # Errors
    /// Returns an error if there is no such policy or one of its options is invalid.
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

    /// Creates the congestion controller of `path`, whose full packets have `packet_size` bytes on
    /// the wire.
    pub(crate) fn make_congestion(
        &self,
        path: PathId,
        packet_size: u64,
    ) -> Result<Box<dyn CongestionController>, PolicyError> {
        self.registry.build_for(self.congestion_of(path), packet_size)
    }

    /// Creates the policy of the axis of `P` for one connection.
    pub(crate) fn make<P: OnAxis + ?Sized>(&self) -> Result<Box<P>, PolicyError> {
        self.registry.build(self.policy(P::AXIS))
    }
}

/// A specification for a built-in profile. It needs no checks because tests build every profile.
fn spec(name: &str, options: &[(&str, &str)]) -> PolicySpec {
    options.iter().fold(PolicySpec::new(name), |spec, (key, value)| spec.with(key, value))
}

#[cfg(test)]
mod tests;
