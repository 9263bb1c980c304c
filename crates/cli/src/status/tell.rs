//! Answers `status` on a local socket.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::{State, of_command};

/// Longest time that a client may take to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause after accepting a connection has failed.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket on which this process reports its state. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct Telling {
    listener: UnixListener,
    path: PathBuf,
}

impl Telling {
    /// Makes the socket of `command`; `None` where there is no place for it. Must be called before the process drops
    /// its privileges.
    pub fn open(command: &str) -> Option<Self> {
        let directory = of_command()?;
        let made = std::fs::DirBuilder::new().mode(0o700).create(&directory);
        if made.is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
            return None;
        }
        let path = directory.join(format!("{command}-{}.sock", std::process::id()));
        // An earlier process with the same id may have left its socket.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Telling { listener, path })
    }

    /// The directory of the socket, which has to stay writable so that the socket's file can be removed.
    pub fn directory(&self) -> Option<PathBuf> {
        self.path.parent().map(PathBuf::from)
    }

    /// Answers requests with `state`, one after the other, for ever.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub async fn run(&self, state: impl Fn() -> State) -> io::Result<()> {
        let listener = tokio::net::UnixListener::from_std(self.listener.try_clone()?)?;
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let text = serde_json::to_string(&state()).map_err(io::Error::from)?;
            let answer = stream.write_all(text.as_bytes());
            // A client that does not read is given up after `PATIENCE`, so it delays others only
            // briefly.
            let _ = tokio::time::timeout(PATIENCE, answer).await;
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        // If removal fails, the next `status` removes the socket.
        let _ = std::fs::remove_file(&self.path);
    }
}
