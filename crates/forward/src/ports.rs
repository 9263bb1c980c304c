use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::acceptor::{Acceptor, Carried};
use super::place::Address;
use anabranch::Connection;

/// Longest wait for a listener to release its port.
const LET_GO: Duration = Duration::from_secs(1);

/// The ports and Unix sockets that an endpoint listens on for its peers, over all connections.
/// Because they are shared, a peer that has crashed and comes back gets its ports again at once.
///
/// A port passes from one connection to another of the same key when the first does not answer any more. Of two
/// clients that share a key and are both alive, the one that listens keeps its port.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports(Arc<Mutex<BTreeMap<Address, Holder>>>);

/// For whom a port is held.
#[derive(Clone, Debug)]
struct Holder {
    connection: Connection,
    /// Asks the listener to release the port; `gone` tells those who wait that it has.
    let_go: Arc<Notify>,
    gone: Arc<Notify>,
}

/// A port that is listened on, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    /// Held until the port is released.
    listener: Option<Acceptor>,
    pub(super) local: Address,
    ports: Ports,
    holder: Holder,
}

impl Ports {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Address, Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens on `address` for the peer of `connection`.
    pub(super) async fn bind(
        &self,
        address: &Address,
        connection: &Connection,
    ) -> io::Result<Held> {
        match Acceptor::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let holder = self.holder_before(address, connection).ok_or(error)?;
                if holder.connection.is_alive().await {
                    let why = "another live connection of this key listens there";
                    return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
                }
                let gone = holder.gone.notified();
                tokio::pin!(gone);
                gone.as_mut().enable();
                holder.let_go.notify_one();
                // If the port was released before, no notification will come.
                if self.holder_before(address, connection).is_some() {
                    let _ = tokio::time::timeout(LET_GO, gone).await;
                }
                self.hold(Acceptor::bind(address).await?, connection)
            }
            bound => self.hold(bound?, connection),
        }
    }

    /// Another connection of the same peer that `address` is held for.
    fn holder_before(&self, address: &Address, connection: &Connection) -> Option<Holder> {
        let overlaps = |held: &Address| match (held, address) {
            (Address::Port(held), Address::Port(address)) => {
                let any = held.ip().is_unspecified() || address.ip().is_unspecified();
                held.port() == address.port() && (held.ip() == address.ip() || any)
            }
            (held, address) => held == address,
        };
        let ports = self.lock();
        let (_, holder) = ports.iter().find(|(held, _)| overlaps(held))?;
        let other = &holder.connection;
        let same_peer = other.peer() == connection.peer() && !other.is_same(connection);
        same_peer.then(|| holder.clone())
    }

    fn hold(&self, listener: Acceptor, connection: &Connection) -> io::Result<Held> {
        let local = listener.local()?;
        let holder =
            Holder { connection: connection.clone(), let_go: Arc::default(), gone: Arc::default() };
        self.lock().insert(local.clone(), holder.clone());
        Ok(Held { listener: Some(listener), local, ports: self.clone(), holder })
    }
}

impl Held {
    /// Waits until another connection of the same peer wants the port.
    pub(super) async fn is_to_let_go(&self) {
        self.holder.let_go.notified().await;
    }

    /// The next connection.
    pub(super) async fn accept(&self) -> io::Result<Carried> {
        let Some(listener) = &self.listener else { return core::future::pending().await };
        listener.accept().await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Close the port before notifying those who wait for it.
        self.listener = None;
        let mut held = self.ports.lock();
        // Somebody else may have bound it already.
        if held.get(&self.local).is_some_and(|now| Arc::ptr_eq(&now.gone, &self.holder.gone)) {
            held.remove(&self.local);
        }
        drop(held);
        self.holder.gone.notify_waiters();
    }
}
