//! All sockets of an endpoint, and the numbers by which the core knows them.

use crate::socket::Socket;
use anabranch_core::path::SocketId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Most numbers of sockets and of local addresses on wildcard sockets; beyond that, addresses share their socket's
/// number.
const MAX_PORTS: usize = 256;

/// The sockets of an endpoint, for all its tasks.
#[derive(Debug, Default)]
pub(crate) struct Sockets(RwLock<SocketTable>);

/// Sockets by their index, and their numbers.
#[derive(Debug, Default)]
pub(crate) struct SocketTable {
    pub(crate) sockets: Vec<Arc<Socket>>,
    pub(crate) ports: Ports,
}

impl Sockets {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, SocketTable> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, SocketTable> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a new socket and returns its index, which is the count of those before it.
    pub(crate) fn add(&self, socket: Arc<Socket>) -> usize {
        let mut table = self.write();
        let index = table.ports.add(&socket);
        table.sockets.push(socket);
        index
    }

    /// Replaces the socket bound to exactly `old`; returns its index.
    pub(crate) fn replace(&self, old: SocketAddr, by: Arc<Socket>) -> Option<usize> {
        let mut table = self.write();
        let index = table.ports.replace(old, by.local_addr())?;
        *table.sockets.get_mut(index)? = by;
        Some(index)
    }

    /// See [`Ports::of_address`].
    pub(crate) fn of_address(&self, index: usize, local: Option<IpAddr>) -> Option<SocketId> {
        let known = self.read().ports.known_address(index, local);
        known.or_else(|| self.write().ports.of_address(index, local))
    }

    /// See [`Ports::of_path`].
    pub(crate) fn of_path(&self, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        self.write().ports.of_path(local, remote)
    }

    /// The local address of a socket.
    pub(crate) fn local_of(&self, id: SocketId) -> Option<SocketAddr> {
        self.read().ports.local_of(id)
    }

    /// Addresses of the sockets, in the order they were added.
    pub(crate) fn local_addrs(&self) -> Vec<SocketAddr> {
        self.read().ports.local_addrs()
    }
}

/// A socket as the core sees it: on a wildcard socket, each local address that peers used counts as
/// a socket, so that answers leave from the address that was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// Index of the socket.
    pub(crate) socket: usize,
    /// Source address to send from, if the socket is bound to the wildcard address.
    pub(crate) source: Option<IpAddr>,
    local: SocketAddr,
}

/// Numbers of sockets and of local addresses on them.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    ports: Vec<Port>,
    /// By index of the socket, the number of the socket itself.
    main: Vec<SocketId>,
    by_address: BTreeMap<(usize, IpAddr), SocketId>,
}

impl Ports {
    /// Numbers a new socket and returns its index, which is the count of those before it.
    pub(crate) fn add(&mut self, socket: &Socket) -> usize {
        let index = self.main.len();
        let id = self.push(Port { socket: index, source: None, local: socket.local_addr() });
        self.main.push(id);
        index
    }

    /// Replaces the socket bound to exactly `old` by one bound to `new`; returns its index.
    pub(crate) fn replace(&mut self, old: SocketAddr, new: SocketAddr) -> Option<usize> {
        let main = self.main.iter().copied();
        let index = main.enumerate().find_map(|(index, id)| {
            let port = self.ports.get(id.0 as usize)?;
            (port.local == old && !old.ip().is_unspecified()).then_some(index)
        })?;
        let SocketId(id) = *self.main.get(index)?;
        self.ports.get_mut(id as usize)?.local = new;
        Some(index)
    }

    fn push(&mut self, port: Port) -> SocketId {
        self.ports.push(port);
        SocketId(self.ports.len() as u32 - 1)
    }

    pub(crate) fn get(&self, id: SocketId) -> Option<&Port> {
        self.ports.get(id.0 as usize)
    }

    /// The result of [`Ports::of_address`], unless that needs a new number.
    fn known_address(&self, index: usize, local: Option<IpAddr>) -> Option<SocketId> {
        let main = *self.main.get(index)?;
        match local.filter(|_| self.get(main).is_some_and(|port| port.local.ip().is_unspecified()))
        {
            None => Some(main),
            Some(address) => match self.by_address.get(&(index, address)) {
                None if self.ports.len() >= MAX_PORTS => Some(main),
                known => known.copied(),
            },
        }
    }

    /// The number for datagrams that the socket `index` exchanges under its address `local`.
    pub(crate) fn of_address(&mut self, index: usize, local: Option<IpAddr>) -> Option<SocketId> {
        if let Some(known) = self.known_address(index, local) {
            return Some(known);
        }
        let port = *self.get(*self.main.get(index)?)?;
        let address = local?;
        let local = SocketAddr::new(address, port.local.port());
        let id = self.push(Port { socket: index, source: Some(address), local });
        self.by_address.insert((index, address), id);
        Some(id)
    }

    /// The number for a new path to `remote` from the socket bound to `local`. On a wildcard socket
    /// the local address is chosen now, as the peer's answers will be sent to it.
    pub(crate) fn of_path(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        let main = self.of_local(local)?;
        let port = *self.get(main)?;
        let source =
            if local.ip().is_unspecified() { route(port.local, remote) } else { Some(local.ip()) };
        self.of_address(port.socket, source)
    }

    /// The socket bound to `local`. Port 0 matches any port, and a wildcard socket every address of
    /// its family, if no other fits better.
    pub(crate) fn of_local(&self, local: SocketAddr) -> Option<SocketId> {
        let bound = |matches: &dyn Fn(SocketAddr) -> bool| {
            self.ports.iter().position(|port| port.source.is_none() && matches(port.local))
        };
        let port_fits = |port: u16| local.port() == 0 || local.port() == port;
        bound(&|address| address.ip() == local.ip() && port_fits(address.port()))
            .or_else(|| {
                bound(&|address| {
                    address.ip().is_unspecified()
                        && address.is_ipv4() == local.is_ipv4()
                        && port_fits(address.port())
                })
            })
            .map(|position| SocketId(position as u32))
    }

    /// Addresses of the sockets themselves, in the order they were added.
    pub(crate) fn local_addrs(&self) -> Vec<SocketAddr> {
        self.ports.iter().filter(|port| port.source.is_none()).map(|port| port.local).collect()
    }

    /// The local address of a number.
    pub(crate) fn local_of(&self, id: SocketId) -> Option<SocketAddr> {
        self.get(id).map(|port| port.local)
    }
}

/// The local address from which the system would send to `remote`; a connected UDP socket tells
/// without sending anything.
fn route(wildcard: SocketAddr, remote: SocketAddr) -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind(SocketAddr::new(wildcard.ip(), 0)).ok()?;
    socket.connect(remote).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(text: &str) -> Socket {
        Socket::bind(&text.parse::<SocketAddr>().unwrap().into()).unwrap()
    }

    #[tokio::test]
    async fn local_addresses_find_their_socket() {
        let sockets = [bind("127.0.0.1:0"), bind("127.0.0.2:0"), bind("0.0.0.0:0")];
        let mut ports = Ports::default();
        for socket in &sockets {
            ports.add(socket);
        }
        let find = |text: &str| ports.of_local(text.parse().unwrap());
        assert_eq!(ports.of_local(sockets[1].local_addr()), Some(SocketId(1)));
        assert_eq!(find("127.0.0.2:0"), Some(SocketId(1)));
        assert_eq!(find("127.0.0.3:0"), Some(SocketId(2)), "the wildcard takes the rest");
        assert_eq!(find("[::1]:0"), None);
        assert_eq!(ports.local_addrs().len(), 3);
    }

    #[tokio::test]
    async fn a_wildcard_socket_tells_its_addresses_apart() {
        let sockets = [bind("127.0.0.1:0"), bind("0.0.0.0:0")];
        let mut ports = Ports::default();
        for socket in &sockets {
            ports.add(socket);
        }
        let address = |text: &str| Some(text.parse().unwrap());
        assert_eq!(ports.of_address(0, address("127.0.0.1")), Some(SocketId(0)));
        let first = ports.of_address(1, address("127.0.0.7")).unwrap();
        let second = ports.of_address(1, address("127.0.0.8")).unwrap();
        assert_ne!(first, second);
        assert_eq!(ports.of_address(1, address("127.0.0.7")), Some(first));
        assert_eq!(ports.get(first).unwrap().source, address("127.0.0.7"));
        assert_eq!(ports.of_address(1, None), Some(SocketId(1)));
        assert_eq!(ports.of_address(2, None), None);
        let remote = "127.0.0.99:5000".parse().unwrap();
        let path = ports.of_path("0.0.0.0:0".parse().unwrap(), remote).unwrap();
        assert_eq!(ports.local_of(path).unwrap().ip(), address("127.0.0.1").unwrap());
        assert_eq!(ports.of_path("127.0.0.8:0".parse().unwrap(), remote), Some(second));
        assert_eq!(ports.local_addrs().len(), 2);
        assert_eq!(ports.replace("127.0.0.9:1".parse().unwrap(), sockets[1].local_addr()), None);
        let other = "127.0.0.77:7777".parse().unwrap();
        assert_eq!(ports.replace(sockets[0].local_addr(), other), Some(0));
        assert_eq!(ports.local_of(SocketId(0)), Some(other));
        for last in 0..=255 {
            ports.of_address(1, address(&format!("127.1.0.{last}")));
            ports.of_address(1, address(&format!("127.2.0.{last}")));
        }
        assert_eq!(ports.ports.len(), MAX_PORTS);
    }
}
