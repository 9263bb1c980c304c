//! Checks where symbolic links lead: to an entry that is sent with them.

use std::fmt;

use anabranch::types::escaped;

#[cfg(doc)]
use super::name::Name;
use super::name::{NameError, check_part};

/// Longest target, bytes: with the longest name beside it, an entry still fits into a frame.
pub const MAX_TARGET: usize = 4000;

/// Where a link leads, from the directory that it is in: up one level for each leading `..`, then
/// down by at least one part that a [`Name`] could have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(String);

impl Target {
    /// Checks and keeps `text`.
    ///
    /// # Errors
    /// [`NameError`], if it is absolute, goes up after it went down, or has a part that no name may have.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        if text.len() > MAX_TARGET {
            return Err(NameError::TooLong);
        }
        let mut down = text.split('/').skip_while(|part| *part == "..").peekable();
        if down.peek().is_none() {
            return Err(NameError::Dots);
        }
        down.try_for_each(check_part)?;
        Ok(Target(text))
    }

    /// A target that was checked before.
    pub(super) fn known(text: &str) -> Self {
        Target(text.to_owned())
    }

    /// The target as it was sent. To show it, use `Display`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that it leads to from the link called `link`, if it stays below the top.
    pub(super) fn seen_from(&self, link: &str) -> Option<String> {
        let mut above = link.rsplit_once('/').map(|(above, _)| above);
        let mut down = self.0.as_str();
        while let Some(rest) = down.strip_prefix("../") {
            above = above?.rsplit_once('/').map(|(above, _)| above);
            down = rest;
        }
        Some(above.map_or_else(|| down.to_owned(), |above| format!("{above}/{down}")))
    }
}

/// Safe to show, whoever chose the target: see [`escaped`].
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(&self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_goes_up_only_at_its_beginning() {
        for good in ["a", "../a", "../../a/b", ".hidden", "...", "a b/c..d"] {
            assert_eq!(Target::new(good).map(|target| target.0), Ok(good.to_owned()));
        }
        for (bad, error) in [
            ("", NameError::Empty),
            ("/etc/passwd", NameError::Empty),
            ("../", NameError::Empty),
            ("a//b", NameError::Empty),
            ("a/", NameError::Empty),
            (".", NameError::Dots),
            ("..", NameError::Dots),
            ("../..", NameError::Dots),
            ("a/../b", NameError::Dots),
            ("../a/../../b", NameError::Dots),
            ("./a", NameError::Dots),
            ("a\n", NameError::Control),
            ("a\0b", NameError::Control),
            ("../.anabranch-x.part", NameError::Reserved),
        ] {
            assert_eq!(Target::new(bad), Err(error), "{bad:?}");
        }
        assert!(Target::new("a/".repeat(1999) + "ab").is_ok());
        assert_eq!(Target::new("a/".repeat(2000) + "a"), Err(NameError::TooLong));
    }

    #[test]
    fn a_target_is_read_from_the_directory_of_its_link() {
        for (link, target, name) in [
            ("l", "a", Some("a")),
            ("d/l", "a/b", Some("d/a/b")),
            ("d/l", "../a", Some("a")),
            ("d/e/l", "../a", Some("d/a")),
            ("d/e/l", "../../a", Some("a")),
            ("l", "../a", None),
            ("d/l", "../../a", None),
        ] {
            let seen = Target::new(target).unwrap().seen_from(link);
            assert_eq!(seen.as_deref(), name, "{link} {target}");
        }
    }
}
