//! Names of files in a transfer: relative, and unable to leave the target directory.

use std::fmt;

use anabranch::types::escaped;

/// Longest name, bytes.
pub const MAX_NAME: usize = 4096;
/// Longest part of a name between slashes, bytes: what common file systems take.
pub const MAX_PART: usize = 255;
/// Parts of a name at most.
pub const MAX_DEPTH: usize = 64;
/// Prefix of the receiver's own files, such as partial ones; no part of a name may begin with it.
pub const RESERVED: &str = ".anabranch-";

/// The name of an entry: parts separated by `/`, none of them empty, `.`, `..` or [reserved](RESERVED),
/// and no control characters in them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text is no [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text or a part of it is empty: absolute, ending in a slash, or with two in a row.
    #[error("it is absolute, or a part of it is empty")]
    Empty,
    /// A part is `.` or `..`.
    #[error("it contains the part '.' or '..'")]
    Dots,
    /// A part begins with [`RESERVED`].
    #[error("names that begin with {RESERVED} are reserved for partial files")]
    Reserved,
    /// The text holds a control character, such as a line break or a zero byte.
    #[error("it holds a control character")]
    Control,
    /// The text or a part of it is too long, or it has too many parts.
    #[error("it is too long or too deep")]
    TooLong,
}

impl Name {
    /// Checks and keeps `text`.
    ///
    /// # Errors
    /// [`NameError`], if it could denote anything but a file below the directory it is put in.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        if text.len() > MAX_NAME || text.split('/').count() > MAX_DEPTH {
            return Err(NameError::TooLong);
        }
        text.split('/').try_for_each(check_part)?;
        Ok(Name(text))
    }

    /// A name that was checked before.
    pub(super) fn known(text: &str) -> Self {
        Name(text.to_owned())
    }

    /// The name as it is. To show it, use `Display`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts between the slashes; at least one.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The names of the directories it is in, from the top.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').filter_map(|(at, _)| self.0.get(..at))
    }

    /// Whether the name is `wanted` or below it.
    pub fn is_within(&self, wanted: &str) -> bool {
        let rest = self.0.strip_prefix(wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Safe to show, whoever chose the name: see [`escaped`]. Files are opened by [`Name::as_str`].
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(&self.0).fmt(f)
    }
}

pub(super) fn check_part(part: &str) -> Result<(), NameError> {
    match part {
        "" => Err(NameError::Empty),
        "." | ".." => Err(NameError::Dots),
        _ if part.len() > MAX_PART => Err(NameError::TooLong),
        _ if part.starts_with(RESERVED) => Err(NameError::Reserved),
        _ if part.chars().any(char::is_control) => Err(NameError::Control),
        _ => Ok(()),
    }
}
