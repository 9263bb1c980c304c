//! What is offered: entries in the order they can be fetched, checked as they come in.

use super::frame::FrameError;
use super::name::Name;
use super::wire::Fields;
use ring::digest::{Context, SHA256};
use std::collections::BTreeMap;

/// Entries of an offer at most.
pub const MAX_ENTRIES: usize = 1_000_000;
/// Bytes of all names of an offer at most, which bounds what a peer makes the receiver keep.
pub const MAX_NAMES: usize = 64 << 20;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file of known size, which can be fetched from any offset.
    File,
    /// A directory; there is nothing to fetch.
    Directory,
    /// Bytes that can be read once and whose number is not known, as from a pipe.
    Stream,
}

/// When a file was last changed: seconds since 1970 and nanoseconds below a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modified {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds, below 10⁹.
    pub nanos: u32,
}

/// One thing on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it belongs.
    pub name: Name,
    /// What it is.
    pub kind: Kind,
    /// Whether it may be executed.
    pub executable: bool,
    /// Bytes; 0 for what is not a [`Kind::File`].
    pub size: u64,
    /// When it was last changed; zero for a [`Kind::Stream`].
    pub modified: Modified,
}

const EXECUTABLE: u8 = 1;

impl Entry {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            Kind::File => 0,
            Kind::Directory => 1,
            Kind::Stream => 2,
        });
        out.push(if self.executable { EXECUTABLE } else { 0 });
        out.extend_from_slice(&self.size.to_be_bytes());
        out.extend_from_slice(&self.modified.seconds.to_be_bytes());
        out.extend_from_slice(&self.modified.nanos.to_be_bytes());
        out.extend_from_slice(self.name.as_str().as_bytes());
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, FrameError> {
        let kind = match fields.u8()? {
            0 => Kind::File,
            1 => Kind::Directory,
            2 => Kind::Stream,
            _ => return Err(FrameError::Value),
        };
        let executable = match fields.u8()? {
            0 => false,
            EXECUTABLE => true,
            _ => return Err(FrameError::Value),
        };
        let size = fields.u64()?;
        let modified = Modified { seconds: fields.i64()?, nanos: fields.u32()? };
        if modified.nanos >= 1_000_000_000 || (kind != Kind::File && size != 0) {
            return Err(FrameError::Value);
        }
        let name = Name::new(fields.text()?).map_err(FrameError::Name)?;
        Ok(Entry { name, kind, executable, size, modified })
    }
}

/// Why an entry cannot be part of an offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// There are more than [`MAX_ENTRIES`], or their names take more than [`MAX_NAMES`] bytes.
    #[error("there are too many files")]
    TooMany,
    /// Two entries have this name.
    #[error("{0} is there twice")]
    Twice(Name),
    /// The file of this name would have to be a directory as well.
    #[error("{0} would be a file and a directory")]
    FileAndDirectory(String),
    /// The sizes add up to more than 2⁶⁴ bytes.
    #[error("the sizes add up to more than can be counted")]
    TooLarge,
}

/// An offer, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
    /// Every name, and whether it is a directory's.
    names: BTreeMap<String, bool>,
    name_bytes: usize,
    total: u64,
}

impl Manifest {
    /// Adds an entry.
    ///
    /// # Errors
    /// If it cannot stand beside those before it, or there are too many; the offer stays as it was.
    pub fn push(&mut self, entry: Entry) -> Result<(), ManifestError> {
        let name = entry.name.as_str();
        let name_bytes = self.name_bytes.saturating_add(name.len());
        if self.entries.len() >= MAX_ENTRIES || name_bytes > MAX_NAMES {
            return Err(ManifestError::TooMany);
        }
        if self.names.contains_key(name) {
            return Err(ManifestError::Twice(entry.name));
        }
        if let Some(file) = entry.name.ancestors().find(|up| self.names.get(*up) == Some(&false)) {
            return Err(ManifestError::FileAndDirectory(file.to_owned()));
        }
        let directory = entry.kind == Kind::Directory;
        let below = format!("{name}/");
        let next = self.names.range(below.clone()..).next();
        if !directory && next.is_some_and(|(other, _)| other.starts_with(&below)) {
            return Err(ManifestError::FileAndDirectory(name.to_owned()));
        }
        self.total = self.total.checked_add(entry.size).ok_or(ManifestError::TooLarge)?;
        self.name_bytes = name_bytes;
        self.names.insert(name.to_owned(), directory);
        self.entries.push(entry);
        Ok(())
    }

    /// The entries, in order; an entry's index is its position.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// A SHA-256 that offers share only if they are alike in every entry.
    pub fn identity(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let mut bytes = Vec::new();
        for entry in &self.entries {
            bytes.clear();
            entry.encode(&mut bytes);
            context.update(&(bytes.len() as u64).to_be_bytes());
            context.update(&bytes);
        }
        let mut identity = [0; 32];
        identity.copy_from_slice(context.finish().as_ref());
        identity
    }
}
