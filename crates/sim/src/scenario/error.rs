//! Mistakes in a scenario, with the place, the given value and the allowed values.

use core::fmt;

use serde::Serialize;
use strsim::levenshtein;

/// Maximum number of names that a message lists.
const MOST_NAMES: usize = 32;

/// One mistake in a scenario, located in its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ScenarioError {
    /// The file's name as the caller gave it, followed by the assignment if the mistake is in one.
    pub file: String,
    /// Line, from 1; 0 when the mistake is in an assignment.
    pub line: u32,
    /// Column in characters, from 1; 0 when the mistake is in an assignment.
    pub column: u32,
    /// The key with the mistake, such as `link.bottleneck.loss`; empty if there is none.
    pub key: String,
    /// Description of the mistake.
    pub given: String,
    /// The accepted values; empty if `given` alone explains the mistake.
    pub allowed: String,
}

impl fmt::Display for ScenarioError {
    /// Writes `FILE:LINE:COLUMN: KEY: what was given; allowed: what may be`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.given)?;
        if self.allowed.is_empty() { Ok(()) } else { write!(f, "; allowed: {}", self.allowed) }
    }
}

impl core::error::Error for ScenarioError {}

/// The place of a value: an offset in the file, or the number of an assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// One more than the assignment's index; 0 for the file.
    pub assignment: usize,
    /// Bytes from the start of the file.
    pub offset: usize,
}

/// A mistake before its line and column are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flaw {
    pub place: Place,
    pub key: String,
    pub given: String,
    pub allowed: String,
}

impl Flaw {
    /// A value that is not accepted.
    pub(super) fn value(
        place: Place,
        key: impl Into<String>,
        given: &str,
        allowed: impl Into<String>,
    ) -> Self {
        let given = format!("'{given}' is not accepted");
        Flaw { place, key: key.into(), given, allowed: allowed.into() }
    }

    /// Any other mistake, described by `given`.
    pub(super) fn other(
        place: Place,
        key: impl Into<String>,
        given: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Flaw { place, key: key.into(), given: given.into(), allowed: allowed.into() }
    }

    /// A name that is not one of `known`.
    pub(super) fn unknown(
        place: Place,
        key: impl Into<String>,
        what: &str,
        name: &str,
        known: &[&str],
    ) -> Self {
        let given = match nearest(name, known.iter().copied()) {
            Some(near) => format!("there is no {what} '{name}'; did you mean '{near}'?"),
            None => format!("there is no {what} '{name}'"),
        };
        let mut allowed = known.get(..MOST_NAMES.min(known.len())).unwrap_or_default().join(", ");
        if known.len() > MOST_NAMES {
            allowed.push_str(", …");
        }
        if known.is_empty() {
            allowed.push_str("none");
        }
        Flaw { place, key: key.into(), given, allowed }
    }

    /// The mistake with its line and column in `text`, or with the assignment that contains it.
    pub(super) fn locate(self, file: &str, text: &str, assignments: &[String]) -> ScenarioError {
        let Flaw { place, key, given, allowed } = self;
        if let Some(assignment) =
            place.assignment.checked_sub(1).and_then(|index| assignments.get(index))
        {
            let file = format!("{file} with {assignment}");
            return ScenarioError { file, line: 0, column: 0, key, given, allowed };
        }
        let before = text.get(..place.offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).map_or(0, |part| part.chars().count()) + 1;
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        ScenarioError {
            file: file.to_owned(),
            line: small(line),
            column: small(column),
            key,
            given,
            allowed,
        }
    }
}

/// The candidate that `name` most likely means: the nearest one that differs by at most a third of
/// the letters of `name`, or by two letters if that is more. `None` if there is none.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(2);
    let scored = candidates.into_iter().map(|candidate| (levenshtein(name, candidate), candidate));
    scored
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|s| s.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let names = ["loss", "delay", "rate", "start-jitter"];
        assert_eq!(nearest("los", names), Some("loss"));
        assert_eq!(nearest("dealy", names), Some("delay"));
        assert_eq!(nearest("startjitter", names), Some("start-jitter"));
        assert_eq!(nearest("bandwidth", names), None);
    }

    #[test]
    fn places_become_lines_and_columns() {
        let text = "a = 1\nb = \u{e9}\u{e9} 2\n";
        let offset = text.find('2').unwrap();
        let flaw = Flaw::value(Place { assignment: 0, offset }, "b", "2", "less");
        let error = flaw.clone().locate("x.toml", text, &[]);
        assert_eq!(error.to_string(), "x.toml:2:8: b: '2' is not accepted; allowed: less");
        let set = Flaw { place: Place { assignment: 1, offset: 0 }, ..flaw };
        let error = set.locate("x.toml", text, &["--set b=2".to_owned()]);
        assert_eq!(
            error.to_string(),
            "x.toml with --set b=2: b: '2' is not accepted; allowed: less"
        );
    }
}
