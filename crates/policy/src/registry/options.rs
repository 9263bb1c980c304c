//! Options of policies, and how builders read them.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::BTreeMap;

use anabranch_types::parse_duration;

use super::{Entry, PolicyError, PolicySpec};

/// One option of a policy, as `anabranch policies` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionEntry {
    /// The option's name.
    pub key: &'static str,
    /// Effect of the option, with its unit.
    pub what: &'static str,
    /// The option's value when none is given; the builder reads it as if the user had written it.
    pub default: &'static str,
}

/// Shorthand for tables: an option with its meaning and default.
pub const fn option(key: &'static str, what: &'static str, default: &'static str) -> OptionEntry {
    OptionEntry { key, what, default }
}

/// Parameters from which a policy is made: its options, each as given or else the entry's default,
/// and the size of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    entry: &'static Entry,
    spec: &'a PolicySpec,
    packet_size: u64,
}

impl<'a> Options<'a> {
    /// The options of `spec`; an error if `entry` lacks one of them.
    pub(super) fn new(
        entry: &'static Entry,
        spec: &'a PolicySpec,
        packet_size: u64,
    ) -> Result<Self, PolicyError> {
        let known = |key: &String| entry.options.iter().any(|option| option.key == key);
        match spec.options.keys().find(|key| !known(key)) {
            Some(key) => Err(no_such_option(entry, key)),
            None => Ok(Options { entry, spec, packet_size }),
        }
    }
}

impl Options<'_> {
    /// The size of a full packet on the congestion controller's path, bytes, IP and UDP headers
    /// included. Policies of other axes do not belong to a single path and do not need it.
    pub fn packet_size(&self) -> u64 {
        self.packet_size
    }

    /// The options that were given, by name, as they were written: for policies that read them their own way.
    pub fn given(&self) -> &BTreeMap<String, String> {
        &self.spec.options
    }

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

    /// A whole number within `range`, or `None` if the value is `word`.
    pub fn integer_unless(
        &self,
        key: &'static str,
        word: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, PolicyError> {
        let text = self.text(key)?;
        if text == word {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|value| range.contains(value));
        number.map(Some).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            self.value_error(key, format!("{word} or a whole number from {least} to {most}"))
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
