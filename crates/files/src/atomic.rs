use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use crate::directory::Directory;

/// A file that is written under a temporary name until it is complete. Dropping it earlier removes it.
#[derive(Debug)]
pub struct Atomic {
    directory: Directory,
    name: OsString,
    /// Temporary name; none once the file has its final one.
    meanwhile: Option<OsString>,
    file: File,
}

impl Atomic {
    /// Begins the file that will be `path`, with permissions `mode` less the process's umask. Until
    /// it is complete, it lies in the same directory under a name of this process's own.
    ///
    /// # Errors
    /// When the directory cannot be opened or the file not be made.
    pub fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = Directory::open(parent.unwrap_or(Path::new(".")))?;
        let mut meanwhile = OsString::from(".");
        meanwhile.push(name);
        meanwhile.push(format!(".part-{}", std::process::id()));
        Self::within(&directory, name, &meanwhile, mode)
    }

    /// Begins the file that will be `name` in a directory and is called `meanwhile` until then. A file already called
    /// `meanwhile` is removed: it was left by a process that was killed, or planted.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn within(
        directory: &Directory,
        name: impl AsRef<OsStr>,
        meanwhile: impl AsRef<OsStr>,
        mode: u32,
    ) -> io::Result<Self> {
        let file = directory.create_anew(meanwhile.as_ref(), mode)?;
        Ok(Atomic {
            directory: directory.clone(),
            name: name.as_ref().to_owned(),
            meanwhile: Some(meanwhile.as_ref().to_owned()),
            file,
        })
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Completes the file: renames it to its final name, replacing what had that name. `durable`
    /// waits until both content and name are on disk.
    ///
    /// # Errors
    /// When the disk refuses. The temporary file is then removed, unless it was renamed already and
    /// only syncing the directory failed.
    pub fn replace(mut self, durable: bool) -> io::Result<()> {
        self.settle(durable, |directory, from, to| directory.rename(from, to))
    }

    /// Completes the file as [`replace`](Self::replace) does, unless something already has the name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], and when the disk refuses; in either case the temporary file is removed.
    pub fn keep(mut self, durable: bool) -> io::Result<()> {
        self.settle(durable, |directory, from, to| directory.rename_new(from, to))
    }

    fn settle(
        &mut self,
        durable: bool,
        rename: impl Fn(&Directory, &OsStr, &OsStr) -> io::Result<()>,
    ) -> io::Result<()> {
        if durable {
            self.file.sync_all()?;
        }
        if let Some(meanwhile) = &self.meanwhile {
            rename(&self.directory, meanwhile, &self.name)?;
        }
        self.meanwhile = None;
        if durable { self.directory.sync() } else { Ok(()) }
    }
}

impl Drop for Atomic {
    fn drop(&mut self) {
        if let Some(meanwhile) = &self.meanwhile {
            // Failing to remove it is ignored: the error that led here is the one to report.
            let _ = self.directory.remove(meanwhile);
        }
    }
}

/// Writes a whole file with permissions `mode` less the process's umask, replacing what has its name.
///
/// # Errors
/// When it cannot be written; the old file stays unless only syncing the directory failed.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let whole = Atomic::begin(path, mode)?;
    whole.file().write_all(bytes)?;
    whole.replace(true)
}
