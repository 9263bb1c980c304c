//! Profiles: a named protocol is a choice on every policy axis.

mod anabranch;
mod custom;
mod mplot;
mod uncoded;

use anabranch_policy::registry::{PolicyError, PolicySpec};
use anabranch_policy::{ack, congestion, loss, recovery, redundancy, scheduler};

use crate::coding::code;
use crate::config::TransportConfig;
use crate::wire::TransportParameters;

/// A choice on every policy axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// A line about it.
    pub summary: String,
    /// Congestion control, per path.
    pub congestion: PolicySpec,
    /// Which packets are lost.
    pub loss_detector: PolicySpec,
    /// How likely losses are.
    pub loss_estimator: PolicySpec,
    /// What goes where.
    pub scheduler: PolicySpec,
    /// The erasure code.
    pub code: PolicySpec,
    /// Block shapes and repair counts.
    pub redundancy: PolicySpec,
    /// What to do about losses and dead paths.
    pub recovery: PolicySpec,
    /// When and where to acknowledge.
    pub ack: PolicySpec,
    /// Policies of the application's own, which then go by the names above.
    custom: custom::Custom,
}

/// The axes in the order that tables list them.
pub const AXES: [&str; 8] = [
    "congestion",
    "loss-detector",
    "loss-estimator",
    "scheduler",
    "code",
    "redundancy",
    "recovery",
    "ack",
];

impl Profile {
    /// The built-in profile of this name.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::all().into_iter().find(|profile| profile.name == name)
    }

    /// Every built-in profile; the first is the default.
    pub fn all() -> Vec<Profile> {
        vec![anabranch::profile(), mplot::profile(), mplot::paper_profile(), uncoded::profile()]
    }

    /// The transport parameters of a side that has this profile and these limits.
    pub fn parameters(&self, transport: &TransportConfig) -> TransportParameters {
        TransportParameters {
            codes: code::announcement(&self.code.name),
            ..transport.parameters(&self.name)
        }
    }

    /// The choice on an axis, as text.
    pub fn axis(&self, axis: &str) -> Option<String> {
        Some(match axis {
            "congestion" => self.congestion.to_string(),
            "loss-detector" => self.loss_detector.to_string(),
            "loss-estimator" => self.loss_estimator.to_string(),
            "scheduler" => self.scheduler.to_string(),
            "code" => self.code.to_string(),
            "redundancy" => self.redundancy.to_string(),
            "recovery" => self.recovery.to_string(),
            "ack" => self.ack.to_string(),
            _ => return None,
        })
    }

    /// Changes the choice on one axis and checks that it can be built.
    pub fn set(&mut self, axis: &str, value: &str) -> Result<(), PolicyError> {
        let spec: PolicySpec = value.parse()?;
        match axis {
            "congestion" => {
                congestion::build(&spec, 1200)?;
                self.congestion = spec;
            }
            "loss-detector" => {
                loss::build_detector(&spec)?;
                self.loss_detector = spec;
            }
            "loss-estimator" => {
                loss::build_estimator(&spec)?;
                self.loss_estimator = spec;
            }
            "scheduler" => {
                scheduler::build(&spec)?;
                self.scheduler = spec;
            }
            "redundancy" => {
                redundancy::build(&spec)?;
                self.redundancy = spec;
            }
            "recovery" => {
                recovery::build(&spec)?;
                self.recovery = spec;
            }
            "ack" => {
                ack::build(&spec)?;
                self.ack = spec;
            }
            "code" => {
                code::build(&spec)?;
                self.code = spec;
            }
            _ => {
                return Err(PolicyError::Unknown {
                    axis: "axis",
                    name: axis.to_owned(),
                    known: AXES.join(", "),
                });
            }
        }
        self.custom.clear(axis);
        Ok(())
    }
}

/// A specification that is known to be well-formed because it is written here; tests build every profile.
fn spec(name: &str, options: &[(&str, &str)]) -> PolicySpec {
    PolicySpec {
        name: name.to_owned(),
        options: options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
    }
}

#[cfg(test)]
mod tests;
