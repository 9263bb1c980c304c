use core::fmt;
use core::str::FromStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::target::{FORWARD, ParseForwardError, Target, bound, local, parts};

/// Longest path of a Unix socket, bytes: the limit of Linux. Other systems allow a few less.
pub const MAX_SOCKET_PATH: usize = 107;

/// Where connections are accepted, or where they lead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A port of a host.
    Port(Target),
    /// A Unix socket.
    Socket(SocketPath),
}

impl From<Target> for Place {
    fn from(target: Target) -> Self {
        Place::Port(target)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Port(target) => target.fmt(f),
            Place::Socket(path) => path.fmt(f),
        }
    }
}

impl FromStr for Place {
    type Err = ParseForwardError;

    /// Reads `HOST:PORT`, or the path of a Unix socket.
    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        let error = || ParseForwardError {
            given: text.to_owned(),
            allowed: "HOST:PORT, such as localhost:22, or a socket's path, such as /run/app.sock",
        };
        if is_socket(text) {
            return SocketPath::new(text).map(Place::Socket).ok_or_else(error);
        }
        text.parse().map(Place::Port).map_err(|_| error())
    }
}

/// The path of a Unix socket. A relative path starts at the working directory of the program whose socket it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketPath(String);

impl SocketPath {
    /// A path, if it can be that of a socket and be written in a forward: at most 107 printable
    /// ASCII characters without colons and square brackets. No part of it is `..`, and it does not
    /// end in `/`.
    pub fn new(path: &str) -> Option<Self> {
        SocketPath::of_directory(path).filter(|_| !path.ends_with("/.") && path != ".")
    }

    /// The path of a directory with sockets, under the same rules, except that it may end in `.`.
    pub(super) fn of_directory(path: &str) -> Option<Self> {
        let fits = (1..=MAX_SOCKET_PATH).contains(&path.len())
            && path.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b":[]".contains(&byte))
            && path.split('/').all(|part| part != "..")
            && !path.ends_with('/');
        fits.then(|| SocketPath(path.to_owned()))
    }

    /// The path as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Path of the socket, taken from `directory` if it is relative.
    pub fn below(&self, directory: &Path) -> Self {
        let joined = directory.join(&self.0);
        // A directory whose name is not valid UTF-8 cannot be written in a forward.
        joined.to_str().map_or_else(|| self.clone(), |path| SocketPath(path.to_owned()))
    }

    /// The path from the root, without parts that are `.`.
    pub fn absolute(&self) -> PathBuf {
        // Fails only if the working directory is gone; then a relative path leads nowhere anyway.
        std::path::absolute(&self.0).unwrap_or_else(|_| PathBuf::from(&self.0))
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `text` stands for a Unix socket where a port might stand too.
pub(super) fn is_socket(text: &str) -> bool {
    text.contains('/') || text.ends_with(".sock") || text.ends_with(".socket")
}

/// Address that a place was resolved to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Address {
    Port(SocketAddr),
    Socket(PathBuf),
}

impl Address {
    /// Port of the address, 0 for a socket.
    pub(super) fn port(&self) -> u16 {
        match self {
            Address::Port(address) => address.port(),
            Address::Socket(_) => 0,
        }
    }

    /// The place that stands for this address in reports.
    pub(super) fn place(&self) -> Place {
        match self {
            Address::Port(address) => Place::from(*address),
            Address::Socket(path) => Place::Socket(SocketPath(path.display().to_string())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Port(address) => address.fmt(f),
            Address::Socket(path) => path.display().fmt(f),
        }
    }
}

/// A forward as ssh writes it: `[BIND:]PORT:HOST:PORT`, where the path of a Unix socket may stand for either side. A path
/// has a `/`, or ends in `.sock` or `.socket`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Where connections are accepted; at the loopback address unless another is given.
    pub bind: Place,
    /// Where the connections lead, as the other side sees it.
    pub target: Place,
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.bind, self.target)
    }
}

impl FromStr for Forward {
    type Err = ParseForwardError;

    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        let read = || {
            let all = parts(text);
            let (bind, target) = match all.as_slice() {
                [bind @ .., socket] if is_socket(socket) => {
                    (bind, Place::Socket(SocketPath::new(socket)?))
                }
                [bind @ .., host, port] if !is_socket(host) => {
                    (bind, Place::Port(Target::to_reach(host, port)?))
                }
                _ => return None,
            };
            let bind = match bind {
                [socket] if is_socket(socket) => Place::Socket(SocketPath::new(socket)?),
                [port] => Place::Port(local(port)?),
                [bind, port] if !is_socket(bind) => Place::Port(bound(bind, port)?),
                _ => return None,
            };
            Some(Forward { bind, target })
        };
        read().ok_or_else(|| ParseForwardError { given: text.to_owned(), allowed: FORWARD })
    }
}
