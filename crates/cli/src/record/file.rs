//! A file that appears whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The file being written, and what becomes of it.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    /// Where it grows until it is complete. `None` for a device or pipe, which is written to as it is.
    part: Option<PathBuf>,
}

impl Target {
    /// Opens `path` for writing. What is there stays until [`commit`](Self::commit).
    pub(super) fn open(path: &Path) -> io::Result<(Target, File)> {
        let path = path.to_owned();
        match fs::metadata(&path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // Renaming over a device would replace the device.
            Ok(there) if !there.is_file() => {
                let file = OpenOptions::new().write(true).open(&path)?;
                return Ok((Target { path, part: None }, file));
            }
            _ => {}
        }
        let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        name.push(format!(".part-{}", std::process::id()));
        let part = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        Ok((Target { path, part: Some(part) }, file))
    }

    /// The content is complete: the file takes its name.
    pub(super) fn commit(mut self, file: &File) -> io::Result<()> {
        let Some(part) = &self.part else { return Ok(()) };
        file.sync_all()?;
        fs::rename(part, &self.path)?;
        self.part = None;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // The failure that led here is the one to report.
            let _ = fs::remove_file(part);
        }
    }
}
