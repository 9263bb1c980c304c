//! A file that appears whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use anabranch_files::Atomic;

/// The file that takes its name once it is complete. `None` for a device or
/// pipe, which is written to as it is.
#[derive(Debug)]
pub(super) struct Target(Option<Atomic>);

impl Target {
    /// Opens `path` for writing. What is there stays until [`commit`](Self::commit).
    pub(super) fn open(path: &Path) -> io::Result<(Target, File)> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // Renaming over a device would replace the device.
            Ok(there) if !there.is_file() => {
                Ok((Target(None), OpenOptions::new().write(true).open(path)?))
            }
            _ => {
                let whole = Atomic::begin(path, 0o666)?;
                let file = whole.file().try_clone()?;
                Ok((Target(Some(whole)), file))
            }
        }
    }

    /// Completes the file and gives it its name.
    pub(super) fn commit(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |whole| whole.replace(true))
    }
}
