//! Reads scenario files and the files that they name.

use std::path::Path;
use std::{fmt, fs, io};

/// Largest size of a scenario or trace that is read, bytes.
pub const MAX_TEXT: u64 = 64 << 20;

/// Why a file was not read. It is displayed as one line without the file's name.
#[derive(Debug)]
pub enum Unread {
    /// The operating system's reason.
    System(io::Error),
    /// Length of the file, bytes; above [`MAX_TEXT`].
    TooLarge(u64),
    /// Offset of the first byte that is not UTF-8.
    NotText(usize),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::System(error) => write!(f, "cannot be read: {error}"),
            Unread::TooLarge(_) => write!(f, "is too large: more than {MAX_TEXT} bytes"),
            Unread::NotText(byte) => write!(f, "is not text: byte {byte} is not UTF-8"),
        }
    }
}

/// Reads a file as text.
///
/// # Errors
/// When the file cannot be read, is larger than [`MAX_TEXT`], or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Unread> {
    let length = fs::metadata(path).map_err(Unread::System)?.len();
    if length > MAX_TEXT {
        return Err(Unread::TooLarge(length));
    }
    let bytes = fs::read(path).map_err(Unread::System)?;
    String::from_utf8(bytes).map_err(|error| Unread::NotText(error.utf8_error().valid_up_to()))
}
