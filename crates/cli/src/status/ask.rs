//! Asks running commands for their state.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use super::State;
use crate::failure::Failure;

/// How long a command may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest answer that is read.
const MOST: u64 = 16 << 20;

/// The answers of all commands with a socket in `directories`, sorted by process id within each directory.
pub(super) fn all(directories: &[PathBuf]) -> Result<Vec<State>, Failure> {
    let mut all = Vec::new();
    for directory in directories {
        all.append(&mut those_in(directory)?);
    }
    Ok(all)
}

fn those_in(directory: &Path) -> Result<Vec<State>, Failure> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(Failure::failed(format!("cannot read {}: {error}", directory.display())));
        }
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        match one(&path) {
            Ok(state) => found.push(state),
            Err(error) => without_answer(&path, &error),
        }
    }
    found.sort_by_key(|state: &State| state.pid);
    Ok(found)
}

/// Removes the socket of a command that does not run any more, or says why there is no answer.
fn without_answer(path: &Path, error: &std::io::Error) {
    match error.kind() {
        // The process was killed before it could remove its socket.
        ErrorKind::ConnectionRefused => {
            let _ = std::fs::remove_file(path);
        }
        // The command has just ended, or another `status` has removed the socket.
        ErrorKind::NotFound => {}
        ErrorKind::WouldBlock | ErrorKind::TimedOut => eprintln!(
            "anabranch: {}: no answer in {} s; the command is stopped or overloaded",
            path.display(),
            PATIENCE.as_secs()
        ),
        _ => eprintln!("anabranch: {}: {error}", path.display()),
    }
}

fn one(path: &Path) -> std::io::Result<State> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A stopped process accepts no connection. Once its backlog is full, connecting does not return.
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(&SockAddr::unix(path)?)?;
    let mut text = String::new();
    socket.take(MOST).read_to_string(&mut text)?;
    let state: State = serde_json::from_str(&text).map_err(std::io::Error::from)?;
    // The answering process may be compromised, and the user who asks may be root.
    Ok(state.escaped())
}
