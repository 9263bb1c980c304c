//! Standard output and standard error, with errors handled when writing fails.

use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Prints `text` as it is.
///
/// # Errors
/// When standard output cannot take it, as on a full disk. It is not an error if the reader has
/// closed the pipe, as `head` does.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line on standard error. If that fails, as on a closed terminal, the process goes on.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "anabranch: {text}");
}

/// Prints `value` as JSON on a line of its own.
///
/// # Errors
/// The errors of [`print`].
pub fn print_json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::failed)?;
    print(&(text + "\n"))
}

/// Prints `value` as indented JSON with a newline at its end.
///
/// # Errors
/// The errors of [`print`].
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::failed)?;
    print(&(text + "\n"))
}
