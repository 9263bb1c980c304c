//! Reads scenario files and the files they name.

use std::path::Path;
use std::{fmt, fs, io};

/// Largest size of a scenario or trace that is read, bytes.
pub const MAX_TEXT: u64 = 64 << 20;

/// Why a file was not read; displayed as one line without the file's name.
#[derive(Debug)]
pub enum Unread {
    /// The operating system's reason.
    System(io::Error),
    /// Length of the file, bytes; above [`MAX_TEXT`].
    TooLarge(u64),
    /// The first byte that is not UTF-8.
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

/// The text of a file.
///
/// # Errors
/// When it cannot be read, is too large, or is not text.
pub fn read_text(path: &Path) -> Result<String, Unread> {
    let length = fs::metadata(path).map_err(Unread::System)?.len();
    if length > MAX_TEXT {
        return Err(Unread::TooLarge(length));
    }
    let bytes = fs::read(path).map_err(Unread::System)?;
    String::from_utf8(bytes).map_err(|error| Unread::NotText(error.utf8_error().valid_up_to()))
}
