//! The directory that files are put into, and nothing outside of it.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anabranch::transfer::{Code, Name};

use super::error::TransferError;

/// A directory to put files into.
#[derive(Clone, Debug)]
pub(super) struct Root(PathBuf);

/// What tells a file from another that has taken its place, or from itself after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) len: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Fingerprint {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Fingerprint {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            inode: inode(metadata),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

impl Root {
    /// Opens the directory, and makes it if it is not there.
    pub(super) fn open(path: &Path) -> Result<Self, TransferError> {
        fs::create_dir_all(path).map_err(|error| storage(path, &error))?;
        // A relative path would mean another directory if this process ever changed its own.
        path.canonicalize().map(Root).map_err(|error| storage(path, &error))
    }

    /// Makes a directory.
    pub(super) fn make_directory(&self, name: &Name) -> Result<(), TransferError> {
        self.descend(name.parts()).map(|_| ())
    }

    /// Where a file belongs; makes the directories that it is in.
    pub(super) fn place(&self, name: &Name) -> Result<PathBuf, TransferError> {
        let mut parts: Vec<&str> = name.parts().collect();
        let last = parts.pop().unwrap_or_default();
        Ok(self.descend(parts.into_iter())?.join(last))
    }

    /// Goes down, making what is not there and following no symbolic link: one that leads elsewhere
    /// would take the files along.
    fn descend<'a>(&self, parts: impl Iterator<Item = &'a str>) -> Result<PathBuf, TransferError> {
        let mut path = self.0.clone();
        for part in parts {
            path.push(part);
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => {
                    let why = format!("{} is in the way: it is no directory", path.display());
                    return Err(TransferError::Local(Code::Exists, why));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    fs::create_dir(&path).map_err(|error| storage(&path, &error))?;
                    sync_parent(&path)?;
                }
                Err(error) => return Err(storage(&path, &error)),
            }
        }
        Ok(path)
    }
}

/// What is at `path`, links not followed; `None` if nothing is.
pub(super) fn look(path: &Path) -> Result<Option<Metadata>, TransferError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(storage(path, &error)),
    }
}

/// Makes a new name in a directory survive a power cut.
pub(super) fn sync_parent(path: &Path) -> Result<(), TransferError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if cfg!(unix) {
        File::open(parent)
            .and_then(|dir| dir.sync_all())
            .map_err(|error| storage(parent, &error))?;
    }
    Ok(())
}

/// Writing failed.
pub(super) fn storage(path: &Path, error: &io::Error) -> TransferError {
    let what = path.display();
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; what has arrived is kept: make room, and the same command again continues"
        }
        ErrorKind::FileTooLarge => "; no file may be that large here; see ulimit -f",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; name a directory that you may write to with --out"
        }
        _ => "",
    };
    TransferError::Local(Code::Storage, format!("cannot write {what}: {error}{advice}"))
}
