//! Unix sockets to listen on and to connect to: the mode of their files, and files that a program left behind.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Mode of a socket's file: only the user that the program runs as may connect.
const MODE: u32 = 0o600;
/// Attempts to lock a directory, and the pause between two. Others hold the lock for an instant only.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Why a Unix socket cannot be used, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Somebody listens on it.
    #[error("another program listens on this socket: stop that program, or name another path")]
    InUse,
    /// A file of this name is no socket.
    #[error("a file that is not a socket has this name: remove it, or name another path")]
    NoSocket,
    /// The socket is another user's, so whether somebody listens on it cannot be found out.
    #[error("a socket of another user is there: remove it, or name another path")]
    Foreign,
    /// The directory is missing.
    #[error("its directory does not exist: create it, or name another path")]
    NoDirectory,
    /// The program may not make files in the directory.
    #[error(
        "this program may not create sockets in that directory: choose a directory that its user may write to; after \
         a reload, restart the program, because it creates sockets only in the directories that it had at its start"
    )]
    Denied,
    /// The system has no room for the path.
    #[error("the path is too long for a socket: name a shorter one")]
    TooLong,
    /// There is no such socket to connect to, or nobody listens on it.
    #[error("nobody listens on that socket: start the program that does")]
    Refused,
    /// The user may not connect to it.
    #[error(
        "the user that this program runs as may not write to that socket: change its mode or owner"
    )]
    Forbidden,
}

impl SocketError {
    fn kind(self) -> ErrorKind {
        match self {
            SocketError::InUse => ErrorKind::AddrInUse,
            SocketError::Refused => ErrorKind::ConnectionRefused,
            SocketError::Denied | SocketError::Forbidden => ErrorKind::PermissionDenied,
            SocketError::NoSocket
            | SocketError::Foreign
            | SocketError::NoDirectory
            | SocketError::TooLong => ErrorKind::Other,
        }
    }
}

impl From<SocketError> for io::Error {
    fn from(error: SocketError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// A listening Unix socket. Its file is removed when this is dropped.
#[derive(Debug)]
pub(super) struct SocketListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode number of the file that was made.
    made: (u64, u64),
}

impl SocketListener {
    /// Listens on `path`; only the user that the program runs as may connect. A socket on which nobody listens any more is
    /// replaced.
    ///
    /// # Errors
    /// If somebody listens on it, or it cannot be made.
    pub(super) async fn bind(path: &Path) -> io::Result<Self> {
        let address = SockAddr::unix(path).map_err(|_| SocketError::TooLong)?;
        // The lock keeps two programs that find the same stale socket from removing each other's new one.
        let _lock = locked(path.parent().unwrap_or(Path::new("/"))).await;
        let socket = match bound(&address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                remove_if_left(path, &address)?;
                bound(&address)
            }
            socket => socket,
        };
        let socket = socket.map_err(explained)?;
        listening(socket, path).inspect_err(|_| {
            // If this fails, the next to listen there replaces it.
            let _ = fs::remove_file(path);
        })
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        // Another program may have replaced the file.
        if number(&self.path).is_ok_and(|number| number == self.made) {
            // If this fails, the next to listen there replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a socket that is bound to `path`.
fn listening(socket: Socket, path: &Path) -> io::Result<SocketListener> {
    restrict(path)?;
    let made = number(path)?;
    socket.listen(BACKLOG)?;
    let listener = UnixListener::from_std(socket.into())?;
    Ok(SocketListener { listener, path: path.to_owned(), made })
}

/// Connects to a Unix socket.
pub(super) async fn dial(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => {
            SocketError::Refused.into()
        }
        ErrorKind::PermissionDenied => SocketError::Forbidden.into(),
        ErrorKind::InvalidInput => SocketError::TooLong.into(),
        _ => error,
    })
}

/// Locks a directory against other programs of this kind that make sockets in it; `None` if the lock stays taken.
async fn locked(directory: &Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    for _ in 0..ATTEMPTS {
        match directory.try_lock() {
            Ok(()) => return Some(directory),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// A bound socket with its file. Nobody can connect to it before it listens.
fn bound(address: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // On Linux the file is made with the mode that the socket has; other systems refuse this.
    let file = File::from(OwnedFd::from(socket));
    let _ = file.set_permissions(Permissions::from_mode(MODE));
    let socket = Socket::from(OwnedFd::from(file));
    socket.bind(address)?;
    Ok(socket)
}

/// Sets the mode of the file of a socket that does not listen yet, unless the system has set it
/// already.
fn restrict(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.mode() & 0o7777 == MODE {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(MODE))
}

/// Removes a socket on which nobody listens.
fn remove_if_left(path: &Path, address: &SockAddr) -> Result<(), SocketError> {
    let is_socket = fs::symlink_metadata(path).map(|there| there.file_type().is_socket());
    if !is_socket.map_err(|_| SocketError::Denied)? {
        return Err(SocketError::NoSocket);
    }
    // A datagram socket cannot connect to a listener of streams, which therefore never sees this probe.
    let asking = Socket::new(Domain::UNIX, Type::DGRAM, None).map_err(|_| SocketError::Foreign)?;
    asking.set_nonblocking(true).map_err(|_| SocketError::Foreign)?;
    match asking.connect(address) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|_| SocketError::Denied)
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(SocketError::Foreign),
        _ => Err(SocketError::InUse),
    }
}

fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => SocketError::NoDirectory.into(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => SocketError::Denied.into(),
        ErrorKind::AddrInUse => SocketError::InUse.into(),
        _ => error,
    }
}

fn number(path: &Path) -> io::Result<(u64, u64)> {
    let there = fs::symlink_metadata(path)?;
    Ok((there.dev(), there.ino()))
}
