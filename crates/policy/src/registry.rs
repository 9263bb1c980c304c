//! Policies by name: specifications, the tables of what exists, and option reading.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use core::time::Duration;
use std::collections::BTreeMap;

use anabranch_types::parse_duration;

use crate::{ack, congestion, loss, recovery, redundancy, scheduler};

/// A policy's name with its options, as users write it: `mean-sigma:kappa1=1,kappa2=0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// The policy.
    pub name: String,
    /// Its options, by name.
    pub options: BTreeMap<String, String>,
}

impl PolicySpec {
    /// The policy `name` with every option at its default.
    pub fn new(name: &str) -> Self {
        PolicySpec { name: name.to_owned(), options: BTreeMap::new() }
    }

    /// The same with one more option set.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// One option of a policy, as `anabranch policies` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionEntry {
    /// Its name.
    pub key: &'static str,
    /// What it does, with its unit.
    pub what: &'static str,
    /// Its value when it is not given; the text is what the builder reads.
    pub default: &'static str,
}

/// Shorthand for tables: an option with its meaning and default.
pub const fn option(key: &'static str, what: &'static str, default: &'static str) -> OptionEntry {
    OptionEntry { key, what, default }
}

/// One policy, as `anabranch policies` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The axis: "congestion", "scheduler", …
    pub axis: &'static str,
    /// The name on that axis.
    pub name: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// The paper and equation or RFC and section it follows.
    pub source: &'static str,
    /// Its options.
    pub options: &'static [OptionEntry],
}

/// A row of an axis's table: what the policy is, and how it is made from its options.
pub type Row<B> = (&'static Entry, B);

/// All policies of all axes, axis by axis.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    congestion::TABLE
        .iter()
        .map(|row| row.0)
        .chain(loss::DETECTORS.iter().map(|row| row.0))
        .chain(loss::ESTIMATORS.iter().map(|row| row.0))
        .chain(scheduler::TABLE.iter().map(|row| row.0))
        .chain(redundancy::TABLE.iter().map(|row| row.0))
        .chain(recovery::TABLE.iter().map(|row| row.0))
        .chain(ack::TABLE.iter().map(|row| row.0))
}

/// Why a policy could not be made from its specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// No policy of that name on the axis.
    Unknown {
        /// The axis.
        axis: &'static str,
        /// The name given.
        name: String,
        /// The names that exist.
        known: String,
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
    /// The option's value is not of its form or out of its range.
    Value {
        /// The policy.
        policy: String,
        /// The option.
        option: String,
        /// The value given.
        given: String,
        /// What is allowed.
        allowed: String,
    },
    /// The text is not of the form `name` or `name:key=value,…`.
    Syntax(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Unknown { axis, name, known } => {
                write!(f, "there is no {axis} policy '{name}'; known: {known}")
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
            PolicyError::Syntax(text) => {
                write!(f, "'{text}' is not a policy; write name or name:key=value,key=value")
            }
        }
    }
}

impl core::error::Error for PolicyError {}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    /// Reads `name` or `name:key=value,…`; names and keys are lower case letters, digits and hyphens.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let syntax = || PolicyError::Syntax(text.to_owned());
        let (name, rest) = match text.trim().split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text.trim(), None),
        };
        if !is_word(name) {
            return Err(syntax());
        }
        let mut spec = PolicySpec::new(name);
        for pair in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (key, value) = pair.split_once('=').ok_or_else(syntax)?;
            let (key, value) = (key.trim(), value.trim());
            if !is_word(key) || value.is_empty() {
                return Err(syntax());
            }
            if spec.options.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(syntax());
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (i, (key, value)) in self.options.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// A policy's options as its builder reads them: the given value, else the entry's default.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    entry: &'static Entry,
    spec: &'a PolicySpec,
}

impl Options<'_> {
    /// A real number within `range`.
    pub fn real(&self, key: &'static str, range: RangeInclusive<f64>) -> Result<f64, PolicyError> {
        let text = self.text(key)?;
        text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
            self.value_error(key, format!("a number from {} to {}", range.start(), range.end()))
        })
    }

    /// A whole number within `range`.
    pub fn integer(
        &self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, PolicyError> {
        let text = self.text(key)?;
        text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
            let allowed = format!("a whole number from {} to {}", range.start(), range.end());
            self.value_error(key, allowed)
        })
    }

    /// A duration such as `25ms` within `range`.
    pub fn duration(
        &self,
        key: &'static str,
        range: RangeInclusive<Duration>,
    ) -> Result<Duration, PolicyError> {
        let text = self.text(key)?;
        parse_duration(text).ok().filter(|value| range.contains(value)).ok_or_else(|| {
            let allowed = format!("a duration from {:?} to {:?}", range.start(), range.end());
            self.value_error(key, allowed)
        })
    }

    /// One of several words, each standing for a value.
    pub fn choice<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<T, PolicyError> {
        let text = self.text(key)?;
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.value_error(key, format!("one of {}", known.join(", ")))
        })
    }

    fn text(&self, key: &'static str) -> Result<&str, PolicyError> {
        if let Some(given) = self.spec.options.get(key) {
            return Ok(given);
        }
        match self.entry.options.iter().find(|option| option.key == key) {
            Some(option) => Ok(option.default),
            None => Err(no_such_option(self.entry, key)),
        }
    }

    fn value_error(&self, key: &'static str, allowed: String) -> PolicyError {
        PolicyError::Value {
            policy: self.entry.name.to_owned(),
            option: key.to_owned(),
            given: self.text(key).unwrap_or_default().to_owned(),
            allowed,
        }
    }
}

fn no_such_option(entry: &Entry, option: &str) -> PolicyError {
    let known: Vec<&str> = entry.options.iter().map(|option| option.key).collect();
    PolicyError::Option {
        policy: entry.name.to_owned(),
        option: option.to_owned(),
        allowed: known.join(", "),
    }
}

/// The row of `table` that `spec` names, and its options, once every option given is known.
///
/// # Errors
/// If the table has no such row, or the row no such option.
pub fn find<'a, B: Copy>(
    axis: &'static str,
    table: &[Row<B>],
    spec: &'a PolicySpec,
) -> Result<(B, Options<'a>), PolicyError> {
    let Some((entry, build)) = table.iter().find(|(entry, _)| entry.name == spec.name) else {
        let known: Vec<&str> = table.iter().map(|(entry, _)| entry.name).collect();
        return Err(PolicyError::Unknown {
            axis,
            name: spec.name.clone(),
            known: known.join(", "),
        });
    };
    for key in spec.options.keys() {
        if !entry.options.iter().any(|option| option.key == key) {
            return Err(no_such_option(entry, key));
        }
    }
    Ok((*build, Options { entry, spec }))
}

#[cfg(test)]
mod tests;
