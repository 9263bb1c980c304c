use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat, fstat};

/// Metadata of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether the entry is a regular file.
    pub is_file: bool,
    /// Whether the entry is a directory.
    pub is_directory: bool,
    /// Length in bytes.
    pub len: u64,
    /// When the bytes were last changed: seconds since 1970 and nanoseconds below a second.
    pub modified: (i64, u64),
    /// Device and inode number, which together identify a file.
    pub identity: (u64, u64),
    /// Number of hard links.
    pub names: u64,
    /// User id of its owner.
    pub owner: u32,
    /// The nine bits of its permissions.
    pub mode: u32,
}

impl Facts {
    /// Metadata of an open file.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Facts::from_stat(&fstat(file)?))
    }

    /// Whether the user of this process owns it. The owner of a file can change it at any time.
    pub fn is_ours(&self) -> bool {
        self.owner == rustix::process::geteuid().as_raw()
    }

    #[expect(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        let kind = FileType::from_raw_mode(stat.st_mode);
        Facts {
            is_file: kind == FileType::RegularFile,
            is_directory: kind == FileType::Directory,
            len: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            names: stat.st_nlink as u64,
            owner: stat.st_uid,
            mode: stat.st_mode as u32 & 0o777,
        }
    }
}
