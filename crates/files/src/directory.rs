use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::facts::Facts;
use crate::lock::Locked;

/// A directory that is held open. Clones share it.
///
/// Every name that its methods take is that of something directly within: one that holds a slash, or
/// is `.` or `..`, is an error of kind [`ErrorKind::InvalidInput`]. No symbolic link of such a name is
/// followed: to open one is an error.
#[derive(Clone, Debug)]
pub struct Directory(Arc<OwnedFd>);

impl Directory {
    /// Opens the directory at `path`, following symbolic links: the caller chose the path.
    ///
    /// # Errors
    /// When it is not there, is not a directory, or may not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::at(rustix::fs::CWD, path, OFlags::empty())
    }

    /// Opens the directory at `path`, unless the last part of the path is a symbolic link.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when it is a link.
    pub fn open_itself(path: &Path) -> io::Result<Self> {
        Self::at(rustix::fs::CWD, path, OFlags::NOFOLLOW)
    }

    /// Opens a directory within this one.
    ///
    /// # Errors
    /// When it is not there, is a link or no directory, or may not be read.
    pub fn below(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        Self::at(self.fd(), Path::new(plain(name.as_ref())?), OFlags::NOFOLLOW)
    }

    fn at(from: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<Self> {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Directory(Arc::new(rustix::fs::openat(from, path, flags, Mode::empty())?)))
    }

    /// Makes a directory within this one, with permissions `mode` and all of them for its owner, less
    /// the process's umask.
    ///
    /// # Errors
    /// When something of that name is there, or the system refuses.
    pub fn make(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(self.fd(), plain(name.as_ref())?, permissions(mode | 0o700))?)
    }

    /// Metadata of what has this name, of a symbolic link rather than its target; `None` if nothing has it.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn look(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Facts>> {
        match rustix::fs::statat(self.fd(), plain(name.as_ref())?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Facts::from_stat(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// When it is not there, is a link or no regular file, or may not be read.
    pub fn read(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.existing(name.as_ref(), OFlags::RDONLY)
    }

    /// Opens a regular file for reading and writing; what is in it stays.
    ///
    /// # Errors
    /// When it is not there, is a link or no regular file, or may not be read and written.
    pub fn edit(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.existing(name.as_ref(), OFlags::RDWR)
    }

    fn existing(&self, name: &OsStr, access: OFlags) -> io::Result<File> {
        regular(self.fd(), plain(name)?, access)
    }

    /// Creates a new file, open for reading and writing, with permissions `mode` less the process's
    /// umask. Never opens one that exists.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if something has the name, even a dangling link.
    pub fn create(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = plain(name.as_ref())?;
        let file = rustix::fs::openat(self.fd(), name, flags, permissions(mode))?;
        Ok(File::from(file))
    }

    /// Creates a file as [`create`](Self::create) does, after removing what has the name, unless that is a directory.
    ///
    /// # Errors
    /// When what has the name cannot be removed, or another process creates the name in between.
    pub fn create_anew(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        self.remove(name.as_ref())?;
        self.create(name, mode)
    }

    /// Makes a symbolic link. Its target is not checked.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if something has the name.
    pub fn link(&self, target: impl AsRef<OsStr>, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target.as_ref(), self.fd(), plain(name.as_ref())?)?)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// When it is not there or no link.
    pub fn target(&self, name: impl AsRef<OsStr>) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(self.fd(), plain(name.as_ref())?, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Locks the file of this name against other processes until the returned value is dropped. If the file is
    /// missing, it is created for its owner alone; it is never removed.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if another process holds the lock; and when what has the name is a link or no regular
    /// file.
    pub fn lock(&self, name: impl AsRef<OsStr>) -> io::Result<Locked> {
        let name = name.as_ref();
        let file = match self.create(name, 0o600) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.edit(name)?,
            other => other?,
        };
        Locked::new(file)
    }

    /// Renames, and replaces what has the new name.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (plain(from.as_ref())?, plain(to.as_ref())?);
        Ok(rustix::fs::renameat(self.fd(), from, self.fd(), to)?)
    }

    /// Renames, and replaces nothing.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if something has the new name.
    pub fn rename_new(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (plain(from.as_ref())?, plain(to.as_ref())?);
        // Unlike renaming, linking never replaces.
        match rustix::fs::linkat(self.fd(), from, self.fd(), to, AtFlags::empty()) {
            Ok(()) => self.remove(from),
            Err(Errno::EXIST) => Err(ErrorKind::AlreadyExists.into()),
            // Not every file system has hard links. Without them, the name can only be checked
            // before the rename.
            Err(_) if self.look(to)?.is_none() => self.rename(from, to),
            Err(_) => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    /// Removes a file or a link. If there is none, that is not an error.
    ///
    /// # Errors
    /// When it is a directory, or the system refuses.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match rustix::fs::unlinkat(self.fd(), plain(name.as_ref())?, AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Syncs the directory, so that the names in it survive a power cut.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(self.fd()) {
            // Some file systems cannot sync a directory; nothing more can be done there.
            Err(Errno::INVAL) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Metadata of the directory itself.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn facts(&self) -> io::Result<Facts> {
        Facts::of(self.fd())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens the regular file that `path` leads to for reading, unless the last part of the path is a link. The directory
/// that it is in need not be readable.
///
/// # Errors
/// When it is not there, is a link or no regular file, or may not be read.
pub fn open(path: &Path) -> io::Result<File> {
    regular(rustix::fs::CWD, path.as_os_str(), OFlags::RDONLY)
}

/// Opens a regular file that is there.
fn regular(from: BorrowedFd<'_>, path: &OsStr, access: OFlags) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe would wait for somebody at its other end.
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::openat(from, path, flags, Mode::empty())?;
    if !Facts::of(&file)?.is_file {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(File::from(file))
}

/// The name of something directly within a directory.
fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') {
        return Err(io::Error::new(ErrorKind::InvalidInput, "a name within a directory is needed"));
    }
    Ok(name)
}

/// The nine bits of permissions.
fn permissions(mode: u32) -> Mode {
    // The raw mode has room for nine bits on every system.
    Mode::from_raw_mode((mode & 0o777) as rustix::fs::RawMode)
}
