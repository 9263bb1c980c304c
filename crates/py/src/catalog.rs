//! The profiles and policies that scenarios can name.

use anabranch_policy::Axis;
use anabranch_policy::registry::{Entry, Registry};
use anabranch_sim::scenario;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A protocol that a flow can run, by its `profile`.
#[pyclass(frozen, get_all, module = "anabranch")]
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Name of the profile.
    name: String,
    /// A one-line description.
    summary: String,
}

#[pymethods]
impl Profile {
    fn __repr__(&self) -> String {
        format!("<Profile '{}': {}>", self.name, self.summary)
    }
}

/// A policy that a profile or a flow can choose on one axis.
#[pyclass(frozen, get_all, module = "anabranch")]
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// Decision that the policy makes: "scheduler", "congestion" and so on.
    axis: &'static str,
    /// Name of the policy on its axis.
    name: &'static str,
    /// One line on what it does.
    summary: &'static str,
    /// The paper and equation, or RFC and section, that it follows.
    source: &'static str,
    /// The options that it takes.
    options: Vec<PolicyOption>,
}

#[pymethods]
impl Policy {
    fn __repr__(&self) -> String {
        format!("<Policy '{}' ({}): {}>", self.name, self.axis, self.summary)
    }
}

/// An option of a policy, as in `redundancy = "target:failure=1e-4"`.
#[pyclass(frozen, get_all, module = "anabranch")]
#[derive(Clone, Debug)]
pub(crate) struct PolicyOption {
    /// Name of the option.
    key: &'static str,
    /// Effect of the option, with its unit.
    help: &'static str,
    /// Value of the option if none is given.
    default: &'static str,
}

#[pymethods]
impl PolicyOption {
    fn __repr__(&self) -> String {
        format!("<PolicyOption {}={}: {}>", self.key, self.default, self.help)
    }
}

/// The protocols that flows can run; the first is the default.
#[pyfunction]
pub(crate) fn profiles() -> Vec<Profile> {
    let profile = |(name, summary)| Profile { name, summary };
    scenario::profiles().into_iter().map(profile).collect()
}

/// The policies of every axis, or of one, such as "scheduler".
#[pyfunction]
#[pyo3(signature = (axis=None))]
pub(crate) fn policies(axis: Option<&str>) -> PyResult<Vec<Policy>> {
    if let Some(axis) = axis.filter(|axis| !Axis::ALL.iter().any(|known| known.name() == *axis)) {
        let known: Vec<&str> = Axis::ALL.iter().map(|known| known.name()).collect();
        let text = format!("there is no axis '{axis}'; there are: {}", known.join(", "));
        return Err(PyValueError::new_err(text));
    }
    let registry = Registry::new();
    let on = |axis: Axis| registry.entries(axis).into_iter().map(move |entry| policy(axis, entry));
    let wanted = Axis::ALL.into_iter().filter(|known| axis.is_none_or(|axis| known.name() == axis));
    Ok(wanted.flat_map(on).collect())
}

fn policy(axis: Axis, entry: &Entry) -> Policy {
    let option = |option: &anabranch_policy::registry::OptionEntry| PolicyOption {
        key: option.key,
        help: option.what,
        default: option.default,
    };
    Policy {
        axis: axis.name(),
        name: entry.name,
        summary: entry.summary,
        source: entry.source,
        options: entry.options.iter().map(option).collect(),
    }
}
