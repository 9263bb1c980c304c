//! Errors: no such policy, or no such axis.

use core::fmt;

use crate::axis::Axis;

/// Why a policy could not be named, made or registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// There is no axis of this name.
    Axis(String),
    /// The axis has no policy of this name.
    Unknown {
        /// The axis.
        axis: Axis,
        /// The name given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The axis already has a policy of this name.
    Taken {
        /// The axis.
        axis: Axis,
        /// The name.
        name: String,
    },
    /// The policy has no such option.
    Option {
        /// The policy.
        policy: String,
        /// The option.
        option: String,
        /// The options that exist.
        allowed: String,
    },
    /// The option's value has the wrong form or is out of range.
    Value {
        /// The policy.
        policy: String,
        /// The option.
        option: String,
        /// The value given.
        given: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// A policy that the program registered cannot be made.
    Failed {
        /// The policy.
        policy: String,
        /// Why, in one line.
        why: String,
    },
    /// The text is not of the form `name` or `name:key=value,…`.
    Syntax(String),
    /// The text cannot name a policy or an option.
    Name(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Axis(name) => {
                let known = Axis::ALL.map(Axis::name).join(", ");
                write!(f, "there is no policy axis '{name}'; known: {known}")
            }
            PolicyError::Unknown { axis, name, known } => {
                write!(f, "there is no {axis} policy '{name}'; known: {known}")
            }
            PolicyError::Taken { axis, name } => {
                write!(f, "there is a {axis} policy '{name}' already; choose another name")
            }
            PolicyError::Option { policy, option, allowed } if allowed.is_empty() => {
                write!(f, "policy '{policy}' has no option '{option}'; it takes none")
            }
            PolicyError::Option { policy, option, allowed } => {
                write!(f, "policy '{policy}' has no option '{option}'; it takes {allowed}")
            }
            PolicyError::Value { policy, option, given, allowed } => {
                write!(f, "policy '{policy}': {option}={given} is not {allowed}")
            }
            PolicyError::Failed { policy, why } => {
                write!(f, "policy '{policy}' cannot be made: {why}")
            }
            PolicyError::Syntax(text) => {
                write!(f, "'{text}' is not a policy; write name or name:key=value,key=value")
            }
            PolicyError::Name(text) => write!(
                f,
                "'{text}' cannot be a name: names are 1 to {} lower case letters, digits and hyphens",
                super::spec::MAX_NAME
            ),
        }
    }
}

impl core::error::Error for PolicyError {}
