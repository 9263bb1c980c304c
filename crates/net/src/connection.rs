use crate::error::{ConnectionError, DatagramError, PathError};
use crate::shared::{Core, Phase, Shared};
use crate::stream::{RecvStream, SendStream};
use anabranch_core::connection::{CloseReason, ConnectionStats};
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::Handle;
use anabranch_core::observe::Observer;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::stream::{StreamError, StreamId};
use anabranch_policy::view::TrafficClass;
use anabranch_policy::{PolicyError, PolicySpec};
use anabranch_types::PathId;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Notify;

/// Where a path begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// Address of one of the endpoint's sockets. Port 0 stands for whatever port it has.
    pub local: SocketAddr,
    /// Address of the peer.
    pub remote: SocketAddr,
}

/// Something happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// It became usable.
    Up(PathId),
    /// It stopped answering; its data goes over others, and it is tried again and again.
    Down(PathId),
    /// Its address changed, by either side or by a translator between them.
    Moved(PathId),
    /// It was taken out of use for good, by either side.
    Closed(PathId),
}

/// A connection over several paths. Clones are the same connection.
///
/// It is closed when the last clone and the last of its streams are dropped; what was written and not
/// delivered is then lost. [`SendStream::acked`] and [`Connection::drained`] wait for delivery.
#[derive(Clone, Debug)]
pub struct Connection(Arc<ConnectionRef>);

#[derive(Debug)]
pub(crate) struct ConnectionRef {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Handle,
    peer: PublicKey,
    news: Arc<Notify>,
    datagrams: Arc<Notify>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, handle: Handle, peer: PublicKey) -> Self {
        let (news, datagrams) = {
            let mut core = shared.lock();
            let state = core.state(handle);
            state.referenced = true;
            (Arc::clone(&state.news), Arc::clone(&state.datagrams))
        };
        Connection(Arc::new(ConnectionRef { shared, handle, peer, news, datagrams }))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0.handle
    }

    /// The peer's public key, which it has proven to hold.
    pub fn peer(&self) -> PublicKey {
        self.0.peer
    }

    /// Opens a stream both sides can write to; waits while the peer allows no further one. The peer
    /// learns of it from its first bytes.
    pub async fn open_stream(
        &self,
        class: TrafficClass,
    ) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self
            .until(&self.0.news, |core| {
                if let Some(error) = core.error(self.0.handle) {
                    return Some(Err(error));
                }
                match core.endpoint.connection(self.0.handle)?.open_stream(class) {
                    Ok(id) => {
                        core.state(self.0.handle).streams.entry(id).or_default();
                        Some(Ok(id))
                    }
                    // `Limit`: an event follows when there is room.
                    Err(_) => None,
                }
            })
            .await?;
        Ok(self.halves(id))
    }

    /// The next stream that the peer opens.
    pub async fn accept_stream(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self
            .until(&self.0.news, |core| {
                if let Some(id) = core.state(self.0.handle).incoming.pop_front() {
                    return Some(Ok(id));
                }
                core.error(self.0.handle).map(Err)
            })
            .await?;
        Ok(self.halves(id))
    }

    fn halves(&self, id: StreamId) -> (SendStream, RecvStream) {
        (SendStream::new(Arc::clone(&self.0), id), RecvStream::new(Arc::clone(&self.0), id))
    }

    /// Queues a datagram if there is space now: delivered at most once, in no order.
    pub fn try_send_datagram(&self, data: &[u8], class: TrafficClass) -> Result<(), DatagramError> {
        let mut core = self.0.shared.lock();
        self.queue_datagram(&mut core, data, class)
    }

    /// Queues a datagram, once there is space.
    pub async fn send_datagram(
        &self,
        data: &[u8],
        class: TrafficClass,
    ) -> Result<(), DatagramError> {
        self.until(&self.0.datagrams, |core| match self.queue_datagram(core, data, class) {
            Err(DatagramError::Full) => None,
            result => Some(result),
        })
        .await
    }

    fn queue_datagram(
        &self,
        core: &mut Core,
        data: &[u8],
        class: TrafficClass,
    ) -> Result<(), DatagramError> {
        if let Some(error) = core.error(self.0.handle) {
            return Err(error.into());
        }
        let connection = core.endpoint.connection(self.0.handle).ok_or(ConnectionError::Stopped)?;
        match connection.send_datagram(data, class) {
            Ok(()) => {
                core.wake_driver();
                Ok(())
            }
            Err(StreamError::TooLong) => Err(DatagramError::TooLong),
            Err(_) => Err(DatagramError::Full),
        }
    }

    /// The next datagram of the peer.
    pub async fn recv_datagram(&self) -> Result<Vec<u8>, ConnectionError> {
        self.until(&self.0.datagrams, |core| {
            if let Some(connection) = core.endpoint.connection(self.0.handle)
                && let Some(len) = connection.recv_datagram(&mut core.scratch)
            {
                return Some(Ok(core.scratch[..len.min(core.scratch.len())].to_vec()));
            }
            core.error(self.0.handle).map(Err)
        })
        .await
    }

    /// Adds a path. Only the side that opened the connection can.
    pub fn add_path(&self, path: PathSpec) -> Result<PathId, PathError> {
        let shared = &self.0.shared;
        let mut core = shared.lock();
        let socket = core.ports.of_path(path.local, path.remote);
        let socket = socket.ok_or(PathError::NoSocket(path.local))?;
        let address = PathAddress { socket, remote: path.remote };
        let connection = core.endpoint.connection(self.0.handle).ok_or(PathError::Closed)?;
        let id = connection.add_path(shared.clock.now(), address)?;
        core.wake_driver();
        Ok(id)
    }

    /// Takes a path out of use for good; what it carried goes over the others. Without any path left the
    /// connection waits for another until its idle timeout.
    pub fn remove_path(&self, path: PathId) {
        let shared = &self.0.shared;
        let mut core = shared.lock();
        if let Some(connection) = core.endpoint.connection(self.0.handle) {
            connection.remove_path(shared.clock.now(), path, 0);
        }
        core.wake_driver();
    }

    /// Moves a path to another socket or another address of the peer: its interface came back with a
    /// new address, or its socket was [replaced](crate::Endpoint::replace_socket). The way is proved
    /// anew before much is sent.
    pub fn move_path(&self, path: PathId, to: PathSpec) -> Result<(), PathError> {
        let shared = &self.0.shared;
        let mut core = shared.lock();
        let socket = core.ports.of_path(to.local, to.remote);
        let socket = socket.ok_or(PathError::NoSocket(to.local))?;
        let address = PathAddress { socket, remote: to.remote };
        let connection = core.endpoint.connection(self.0.handle).ok_or(PathError::Closed)?;
        connection.move_path(shared.clock.now(), path, address);
        core.wake_driver();
        Ok(())
    }

    /// The next thing that happens to a path; `None` once the connection is over. Events that nobody
    /// asks for are kept, the newest 64 of them.
    pub async fn path_event(&self) -> Option<PathEvent> {
        self.until(&self.0.news, |core| {
            if let Some(event) = core.state(self.0.handle).path_events.pop_front() {
                return Some(Some(event));
            }
            core.error(self.0.handle).map(|_| None)
        })
        .await
    }

    /// Waits until more than `seen` things have happened to paths; `None` once the connection is over.
    pub(crate) async fn path_changes(&self, seen: u64) -> Option<u64> {
        self.until(&self.0.news, |core| {
            let changes = core.state(self.0.handle).path_changes;
            if changes > seen {
                return Some(Some(changes));
            }
            core.error(self.0.handle).map(|_| None)
        })
        .await
    }

    /// Asks for so many signs of life on a path, each by a packet of its own, at once. The answers show in
    /// [`Connection::stats`].
    pub fn ping(&self, path: PathId, count: u8) {
        let mut core = self.0.shared.lock();
        if let Some(connection) = core.endpoint.connection(self.0.handle) {
            connection.ping(path, count);
        }
        core.wake_driver();
    }

    /// Uses a path only when the others cannot carry the load, or again like them.
    pub fn set_backup(&self, path: PathId, backup: bool) {
        let mut core = self.0.shared.lock();
        if let Some(connection) = core.endpoint.connection(self.0.handle) {
            connection.set_backup(path, backup);
        }
        core.wake_driver();
    }

    /// Controls congestion on a path by `policy` from now on, whatever the profile says: what this side
    /// sends, not what the peer does. Best said before anything is written, as the window starts over.
    ///
    /// # Errors
    /// When there is no such policy, or an option of it is wrong.
    pub fn set_congestion(&self, path: PathId, policy: &PolicySpec) -> Result<(), PolicyError> {
        let shared = &self.0.shared;
        let mut core = shared.lock();
        let now = shared.clock.now();
        let connection = core.endpoint.connection(self.0.handle);
        let set = connection.map_or(Ok(()), |own| own.set_congestion(now, path, policy));
        core.wake_driver();
        set
    }

    /// The local address that a path of [`Connection::stats`] leaves from.
    pub fn local_addr(&self, socket: SocketId) -> Option<SocketAddr> {
        self.0.shared.lock().ports.local_of(socket)
    }

    /// Figures as of now, or of the connection's end; `None` if it never began.
    pub fn stats(&self) -> Option<ConnectionStats> {
        let mut core = self.0.shared.lock();
        let handle = self.0.handle;
        let now = core.endpoint.connection(handle).map(|connection| connection.stats());
        now.or_else(|| core.state(handle).last_stats.clone())
    }

    /// Records what the connection does and why, from now on.
    pub fn set_observer(&self, observer: Option<Box<dyn Observer>>) {
        let mut core = self.0.shared.lock();
        if let Some(connection) = core.endpoint.connection(self.0.handle) {
            connection.set_observer(observer);
        }
    }

    /// Ready when the peer has everything written so far.
    pub async fn drained(&self) -> Result<(), ConnectionError> {
        self.until(&self.0.news, |core| {
            let drained = core
                .endpoint
                .connection(self.0.handle)
                .is_some_and(|connection| connection.is_drained());
            if drained { Some(Ok(())) } else { core.error(self.0.handle).map(Err) }
        })
        .await
    }

    /// Closes the connection at once; what was not delivered is lost. Codes from 256 are the
    /// application's, 0 says that nothing went wrong.
    pub fn close(&self, code: u64, reason: &str) {
        let shared = &self.0.shared;
        shared.lock().close(self.0.handle, shared.clock.now(), code, reason);
    }

    /// Ready when the connection is over, and why; `None` if the endpoint stopped under it.
    pub async fn closed(&self) -> Option<CloseReason> {
        self.until(&self.0.news, |core| match core.error(self.0.handle)? {
            ConnectionError::Closed(reason) => Some(Some(reason)),
            ConnectionError::Stopped => Some(None),
        })
        .await
    }

    /// Asks again at every notification until there is an answer.
    async fn until<T>(&self, notify: &Notify, mut ask: impl FnMut(&mut Core) -> Option<T>) -> T {
        loop {
            let notified = notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let answer = ask(&mut self.0.shared.lock());
            if let Some(answer) = answer {
                return answer;
            }
            notified.await;
        }
    }
}

impl ConnectionRef {
    /// Waits on behalf of a stream; see [`Connection::until`].
    pub(crate) async fn until_news<T>(&self, mut ask: impl FnMut(&mut Core) -> Option<T>) -> T {
        loop {
            let notified = self.news.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let answer = ask(&mut self.shared.lock());
            if let Some(answer) = answer {
                return answer;
            }
            notified.await;
        }
    }
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        let state = core.state(self.handle);
        state.referenced = false;
        if state.phase == Phase::Open {
            core.close(self.handle, self.shared.clock.now(), 0, "");
        }
        self.shared.forget(&mut core, self.handle);
    }
}
