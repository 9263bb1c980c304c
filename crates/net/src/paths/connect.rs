use super::request::PathRequest;
use crate::connection::PathSpec;
use std::net::SocketAddr;

/// Paths that a connection is made over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectPaths {
    /// All of these paths, from sockets that the endpoint has. The connection keeps to them unless the application
    /// [adds](crate::Connection::add_path), [moves](crate::Connection::move_path) or
    /// [removes](crate::Connection::remove_path) paths.
    Fixed(Vec<PathSpec>),
    /// The requested paths that exist. Connecting continues, with the paths that come up, until the
    /// peer answers on one: put a timeout around it. Once connected, paths are added, moved and
    /// removed as interfaces come, change their address and go, for as long as the connection
    /// lives.
    Managed {
        /// Where the peer is, unless a request says otherwise.
        remote: SocketAddr,
        /// The paths asked for.
        requests: Vec<PathRequest>,
    },
}

impl From<SocketAddr> for ConnectPaths {
    /// Every interface that leads to the peer at this address.
    fn from(remote: SocketAddr) -> Self {
        ConnectPaths::Managed { remote, requests: vec![PathRequest::ANY] }
    }
}

impl From<(SocketAddr, Vec<PathRequest>)> for ConnectPaths {
    /// The requested paths to the peer at this address.
    fn from((remote, requests): (SocketAddr, Vec<PathRequest>)) -> Self {
        ConnectPaths::Managed { remote, requests }
    }
}

impl From<Vec<PathSpec>> for ConnectPaths {
    fn from(paths: Vec<PathSpec>) -> Self {
        ConnectPaths::Fixed(paths)
    }
}

impl From<&[PathSpec]> for ConnectPaths {
    fn from(paths: &[PathSpec]) -> Self {
        ConnectPaths::Fixed(paths.to_vec())
    }
}

impl<const N: usize> From<[PathSpec; N]> for ConnectPaths {
    fn from(paths: [PathSpec; N]) -> Self {
        ConnectPaths::Fixed(paths.into())
    }
}
