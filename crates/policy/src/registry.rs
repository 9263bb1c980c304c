//! Policies by name.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;

/// A policy's name with its options, as users write it: `mean-sigma:kappa1=1,kappa2=0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// The policy.
    pub name: String,
    /// Its options, by name.
    pub options: BTreeMap<String, String>,
}

/// Why a policy could not be made from its specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// No policy of that name on the axis; the known names follow.
    Unknown {
        /// The axis.
        axis: &'static str,
        /// The name given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The policy has no such option, or its value is out of range.
    Option {
        /// The policy.
        policy: String,
        /// The option.
        option: String,
        /// What is allowed.
        allowed: String,
    },
    /// The text is not of the form `name` or `name:key=value,…`.
    Syntax(String),
}
