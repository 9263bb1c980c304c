//! Policy specifications as users write them.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;

use super::PolicyError;

/// A policy's name with its options, as users write it: `mean-sigma:kappa1=1,kappa2=0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// The policy.
    pub name: String,
    /// The options given, by name.
    pub options: BTreeMap<String, String>,
}

impl PolicySpec {
    /// The policy `name` with every option at its default.
    pub fn new(name: &str) -> Self {
        PolicySpec { name: name.to_owned(), options: BTreeMap::new() }
    }

    /// The specification with one more option set.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// Longest name of a policy or an option, bytes.
pub(super) const MAX_NAME: usize = 64;

/// Whether a policy or an option can have this name.
pub(super) fn check_name(name: &str) -> Result<(), PolicyError> {
    if is_word(name) && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(PolicyError::Name(name.to_owned()))
}

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
