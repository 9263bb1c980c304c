//! The error type of commands.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use anabranch_forward::SocketError;
use anabranch_types::escaped;
use clap::error::{ContextKind, ContextValue};
use thiserror::Error;

/// One line for the user, and the exit code that goes with it.
#[derive(Debug, Error)]
pub enum Failure {
    /// The command line names something that does not exist, a file included, or that is impossible: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The command line was right, but the command failed: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// Nobody answered, or the connection was lost: exit code 3.
    #[error("{0}")]
    Unreached(String),
    /// The user interrupted the command: exit code 130.
    #[error("{0}")]
    Interrupted(String),
}

impl Failure {
    /// A [`Failure::Usage`] with `why` on one line.
    pub fn usage(why: impl Display) -> Self {
        Failure::Usage(one_line(&why.to_string()))
    }

    /// A [`Failure::Failed`] with `why` on one line.
    pub fn failed(why: impl Display) -> Self {
        Failure::Failed(one_line(&why.to_string()))
    }

    /// A [`Failure::Unreached`] with `why` on one line.
    pub fn unreached(why: impl Display) -> Self {
        Failure::Unreached(one_line(&why.to_string()))
    }

    /// A [`Failure::Interrupted`] with `how` on one line.
    pub fn interrupted(how: impl Display) -> Self {
        Failure::Interrupted(one_line(&how.to_string()))
    }

    /// A file that was named cannot be read.
    pub fn cannot_read(path: &Path, error: &io::Error) -> Self {
        Failure::of_file(error, format!("cannot read {}: {error}", path.display()))
    }

    /// A file cannot be written.
    pub fn cannot_write(path: &Path, error: impl Display) -> Self {
        Failure::failed(format!("cannot write {}: {error}", path.display()))
    }

    /// A failure that concerns a file or directory that was named; `text` says what is wrong. If nothing is there, or
    /// something of another kind, the command was used wrongly.
    pub fn of_file(error: &io::Error, text: impl Display) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::usage(format!("{text}; check its name and that it exists"))
            }
            io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename => Failure::usage(text),
            _ => Failure::failed(text),
        }
    }

    /// A socket could not be bound to `place`; adds advice.
    pub fn cannot_listen(place: impl Display, error: &io::Error) -> Self {
        // Errors of Unix sockets contain their advice already.
        let is_socket = error.get_ref().is_some_and(|inner| inner.is::<SocketError>());
        let advice = match error.kind() {
            _ if is_socket => "",
            io::ErrorKind::AddrInUse => {
                "; another program has this port: stop it, or name another port"
            }
            io::ErrorKind::PermissionDenied => {
                "; ports below 1024 need privileges: name a higher one"
            }
            io::ErrorKind::AddrNotAvailable => "; it is not an address of this machine",
            _ => "",
        };
        Failure::failed(format!("cannot listen on {place}: {error}{advice}"))
    }

    /// One of several sockets could not be bound.
    pub fn cannot_listen_on(places: &[SocketAddr], error: &io::Error) -> Self {
        let places: Vec<String> = places.iter().map(ToString::to_string).collect();
        Failure::cannot_listen(places.join(", "), error)
    }

    /// The error of the argument parser, with its paragraphs joined into one line.
    pub fn from_clap(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut parts: Vec<&str> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("Usage:") {
                break;
            }
            if !line.is_empty() && !line.starts_with("For more information") {
                parts.push(line);
            }
        }
        let line = parts.join("; ").replace(":; ", ": ");
        let line = line.strip_prefix("error: ").unwrap_or(&line);
        // The line names the given value already.
        let line = match error.get(ContextKind::InvalidValue) {
            Some(ContextValue::String(given)) => {
                line.replacen(&format!(": '{given}' is not accepted; allowed: "), ": write ", 1)
            }
            _ => line.to_owned(),
        };
        Failure::Usage(format!("{line}; --help shows what can be given"))
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Failed(_) => ExitCode::from(1),
            Failure::Interrupted(_) => ExitCode::from(130),
            Failure::Unreached(_) => ExitCode::from(3),
        }
    }
}

/// The text of an error on one line. Text from peers is escaped earlier; this replaces control
/// characters that were overlooked.
fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    escaped(&words).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_was_named_wrongly() {
        let code = |kind: io::ErrorKind| {
            let failure = Failure::cannot_read(Path::new("a"), &kind.into());
            (matches!(failure, Failure::Usage(_)), failure.to_string())
        };
        assert!(code(io::ErrorKind::NotFound).0 && code(io::ErrorKind::IsADirectory).0);
        assert!(code(io::ErrorKind::NotFound).1.contains("check its name and that it exists"));
        assert!(!code(io::ErrorKind::PermissionDenied).0 && !code(io::ErrorKind::Other).0);
    }

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::failed("no\nsuch\t\u{1b}[31mfi\u{202e}le");
        assert_eq!(failure.to_string(), "no such [31mfi\\u{202e}le");
    }
}
