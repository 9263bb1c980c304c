//! Errors in keeping and reading results.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why results could not be kept or read. Each message is one line that begins with the path.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The directory is not a results directory, or holds results of another scenario or build.
    #[error("{}: {what}; give another directory", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Reason why the directory is not accepted.
        what: String,
    },
    /// Another process writes to the directory.
    #[error("{}: another run is writing its results here", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A file has wrong contents or cannot be encoded.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Defect of the file.
        why: String,
    },
    /// Reading or writing failed.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The operation attempted: "read", "write", ….
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
}

impl ResultsError {
    /// Whether the request was wrong. Otherwise an operation failed.
    pub fn is_usage(&self) -> bool {
        matches!(self, ResultsError::Foreign { .. })
    }

    /// A function that wraps an I/O error about `path`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| ResultsError::Io { path, action, source }
    }
}
