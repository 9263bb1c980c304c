use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use crate::directory::Directory;

/// A file under another name until it is complete. One that is given up leaves nothing behind.
#[derive(Debug)]
pub struct Atomic {
    directory: Directory,
    name: OsString,
    /// The name meanwhile; none once the file has its own.
    meanwhile: Option<OsString>,
    file: File,
}

impl Atomic {
    /// Begins the file that will be `path`, with these permissions as far as the process's mask lets
    /// them. Meanwhile it is beside, under a name that tells this process from others.
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

    /// Begins the file that will be `name` in a directory, and is `meanwhile` until then. What has
    /// that name is removed: it was left by a process that was killed, or planted.
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

    /// The file is complete: it gets its name, and what had it before is gone. `durable` waits until
    /// the disk has both.
    ///
    /// # Errors
    /// When the disk refuses; then nothing is left of it.
    pub fn replace(mut self, durable: bool) -> io::Result<()> {
        self.settle(durable, |directory, from, to| directory.rename(from, to))
    }

    /// The same, unless something has the name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], and when the disk refuses; then nothing is left of it.
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
            // What led here is the error to report.
            let _ = self.directory.remove(meanwhile);
        }
    }
}

/// Writes a file as a whole, with these permissions as far as the process's mask lets them, in the
/// place of what has its name.
///
/// # Errors
/// When it cannot be written; then what was there is there still.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let whole = Atomic::begin(path, mode)?;
    whole.file().write_all(bytes)?;
    whole.replace(true)
}
