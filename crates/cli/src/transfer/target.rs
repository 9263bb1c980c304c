//! The directory that files are put into; nothing outside of it can be reached.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anabranch::PublicKey;
use anabranch_files::{Directory, Facts};
use anabranch_transfer::{Code, Name};

use super::error::TransferError;

/// Where files go unless another place is named.
pub(super) const USUAL: &str = "anabranch-received";

/// A directory to put files into.
#[derive(Clone, Debug)]
pub(super) struct Root {
    directory: Directory,
    /// Path of the directory on this machine.
    path: PathBuf,
    /// Sender of the files, if it is known from one connection to the next.
    sender: Option<PublicKey>,
    /// The directory that the last file went to: the next one often goes there too.
    last: Option<(String, Directory)>,
}

/// Where one file belongs: the directory that it is in, and its name there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) directory: Directory,
    pub(super) name: String,
    /// Name of the file in the offer.
    pub(super) offered: Name,
    pub(super) sender: Option<PublicKey>,
    root: PathBuf,
}

impl Root {
    /// Opens the directory that was named, and makes it if it is not there.
    pub(super) fn open(path: &Path) -> Result<Self, TransferError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                let why =
                    format!("--out {}: a file is in the way; name a directory", path.display());
                TransferError::Local(Code::Storage, why)
            }
            _ => cannot_write(path, "the directory", &error),
        };
        fs::create_dir_all(path)
            .and_then(|()| Directory::open(path))
            .map(|d| Root::new(d, path))
            .map_err(failed)
    }

    /// Opens the [usual](USUAL) directory in the present one, and makes it if it is not there. Nobody has named
    /// it, so it must not be a link or another user's, which could lead files elsewhere.
    pub(super) fn open_usual() -> Result<Self, TransferError> {
        let path = std::path::absolute(USUAL).unwrap_or_else(|_| PathBuf::from(USUAL));
        let failed = |error: io::Error| cannot_write(&path, "the directory", &error);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let refused = |why: &str| {
            let path = path.display();
            let why = format!("{path} {why}; name the directory that you mean with --out");
            TransferError::Local(Code::Storage, why)
        };
        let directory = Directory::open_itself(&path)
            .map_err(|error| refused(&format!("is a link, or cannot be opened: {error}")))?;
        if !directory.facts().map_err(failed)?.is_ours() {
            return Err(refused("belongs to another user"));
        }
        Ok(Root::new(directory, &path))
    }

    fn new(directory: Directory, path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Root { directory, path, sender: None, last: None }
    }

    /// The directory for the files of one sender, whose partial files are kept apart from others'.
    pub(super) fn of_sender(&self, sender: PublicKey) -> Self {
        Root { sender: Some(sender), ..self.clone() }
    }

    /// Path of the directory on this machine.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory with these permissions, as far as the process's mask lets them.
    pub(super) fn make_directory(&mut self, name: &Name, mode: u16) -> Result<(), TransferError> {
        self.descend(name, name.as_str(), u32::from(mode)).map(|_| ())
    }

    /// Where a file belongs; makes the directories that it is in.
    pub(super) fn place(&mut self, name: &Name) -> Result<Place, TransferError> {
        let (above, last) = name.as_str().rsplit_once('/').unwrap_or(("", name.as_str()));
        Ok(Place {
            directory: self.descend(name, above, 0o777)?,
            name: last.to_owned(),
            offered: name.clone(),
            sender: self.sender,
            root: self.path.clone(),
        })
    }

    /// Facts about the file under this name; `None` if there is none, or it cannot be seen.
    pub(super) fn look(&self, name: &Name) -> Option<Facts> {
        let mut parts: Vec<&str> = name.parts().collect();
        let last = parts.pop()?;
        let mut directory = self.directory.clone();
        for part in parts {
            directory = directory.below(part).ok()?;
        }
        directory.look(last).ok()?
    }

    /// Goes down to `path` on the way to `name`. Makes directories that are missing and follows no link, since one
    /// could lead elsewhere. The last directory gets these permissions, those on the way the usual ones.
    fn descend(&mut self, name: &Name, path: &str, mode: u32) -> Result<Directory, TransferError> {
        if path.is_empty() {
            return Ok(self.directory.clone());
        }
        if let Some((last, directory)) = &self.last
            && last == path
        {
            return Ok(directory.clone());
        }
        let mut directory = self.directory.clone();
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let mode = if parts.peek().is_none() { mode } else { 0o777 };
            let failed = |error: io::Error| self.failed(name, &error);
            match directory.make(part, mode) {
                Ok(()) => directory.sync().map_err(failed)?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
            directory = directory.below(part).map_err(|error| match error.kind() {
                ErrorKind::PermissionDenied => failed(error),
                _ => TransferError::about(Code::Exists, &self.path, name, |what| {
                    format!("{part} is in the way of {what}: it is a link or not a directory")
                }),
            })?;
        }
        self.last = Some((path.to_owned(), directory.clone()));
        Ok(directory)
    }

    fn failed(&self, name: &Name, error: &io::Error) -> TransferError {
        storage(&self.path, name, error)
    }
}

impl Place {
    /// Facts about the file at this place; `None` if there is none.
    pub(super) fn look(&self) -> Result<Option<Facts>, TransferError> {
        self.directory.look(&self.name).map_err(|error| self.failed(&error))
    }

    /// The failure of writing the file.
    pub(super) fn failed(&self, error: &io::Error) -> TransferError {
        storage(&self.root, &self.offered, error)
    }

    /// A failure with the file; `text` makes a sentence of what it is called.
    pub(super) fn wrong(&self, code: Code, text: impl Fn(&str) -> String) -> TransferError {
        TransferError::about(code, &self.root, &self.offered, text)
    }
}

fn storage(root: &Path, name: &Name, error: &io::Error) -> TransferError {
    let advice = advice(error);
    TransferError::about(Code::Storage, root, name, |what| {
        format!("cannot write {what}: {error}{advice}")
    })
}

/// The failure of writing something that is not in the offer; the peer is told `to_peer` instead of the path.
pub(super) fn cannot_write(path: &Path, to_peer: &str, error: &io::Error) -> TransferError {
    let advice = advice(error);
    let text = |what: &str| format!("cannot write {what}: {error}{advice}");
    TransferError::File {
        code: Code::Storage,
        here: text(&path.display().to_string()),
        there: text(to_peer),
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; what has arrived is kept: make room and run the same command again to continue"
        }
        ErrorKind::FileTooLarge => "; no file may be that large here; see ulimit -f",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; name a directory that you may write to with --out"
        }
        _ => "",
    }
}
