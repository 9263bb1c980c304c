use crate::error::{ConnectionError, DatagramError, PathError};
use crate::paths::{NamedPath, Naming};
use crate::shared::{ConnectionShared, ConnectionState, Phase, StreamWait, StreamWaits};
use crate::stream::{RecvStream, SendStream};
use anabranch_core::connection::{Connection as CoreConnection, ConnectionStats};
use anabranch_core::crypto::PublicKey;
use anabranch_core::observe::Observer;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::stream::{StreamError, StreamId};
use anabranch_core::wire::Direction;
use anabranch_policy::view::TrafficClass;
use anabranch_policy::{PolicyError, PolicySpec};
use anabranch_types::{PathId, Time};
use core::fmt;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// Interval at which a connection is checked for the sign of life that its peer was asked for.
const ALIVE_TURN: Duration = Duration::from_millis(10);
/// [`ALIVE_TURN`]s after which the request is repeated, since the request or its answer can be lost.
const ASK_AGAIN: u32 = 15;
/// Least time that a peer has to give a sign of life.
const LEAST_PATIENCE: Duration = Duration::from_millis(100);
/// A peer without a sign of life for this long is taken for dead, unless three measured round trips last longer. The
/// paths' timeouts do not prolong the wait: the timeout of a new path is a guess, and would make it two seconds.
const ENOUGH_PATIENCE: Duration = Duration::from_millis(750);
/// The longest time that a peer has, however long round trips take.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

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
    /// The path became usable.
    Up(PathId),
    /// The path stopped answering; its data goes over others, and it is tried repeatedly.
    Down(PathId),
    /// The path's address changed, by either side or by a NAT between them.
    Moved(PathId),
    /// The path was taken out of use for good, by either side.
    Closed(PathId),
}

/// A connection over several paths. Clones are the same connection.
///
/// The connection is closed when the last clone and the last of its streams are dropped; what was written and not
/// delivered is then lost. [`SendStream::acked`] and [`Connection::drained`] wait for delivery.
#[derive(Clone)]
pub struct Connection(Arc<ConnectionRef>);

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.0.peer).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct ConnectionRef {
    pub(crate) shared: Arc<ConnectionShared>,
    peer: PublicKey,
}

/// A reference that does not keep the connection open.
#[derive(Clone, Debug)]
pub(crate) struct WeakConnection {
    connection: Weak<ConnectionRef>,
    shared: Arc<ConnectionShared>,
}

impl WeakConnection {
    /// The connection, if the application still holds it.
    pub(crate) fn upgrade(&self) -> Option<Connection> {
        self.connection.upgrade().map(Connection)
    }

    /// Waits until more than `seen` things have happened to paths; `None` once the connection is over.
    pub(crate) async fn path_changes(&self, seen: u64) -> Option<u64> {
        let wait = &self.shared.wait.paths;
        let changes = self.shared.until(wait, |state| {
            let changes = state.path_changes;
            if changes > seen { Some(Some(changes)) } else { state.error().map(|_| None) }
        });
        changes.await
    }
}

impl Connection {
    pub(crate) fn downgrade(&self) -> WeakConnection {
        let shared = Arc::clone(self.shared());
        WeakConnection { connection: Arc::downgrade(&self.0), shared }
    }

    /// A handle of `shared`, whose state says already that the application holds it.
    pub(crate) fn new(shared: Arc<ConnectionShared>, peer: PublicKey) -> Self {
        Connection(Arc::new(ConnectionRef { shared, peer }))
    }

    pub(crate) fn shared(&self) -> &Arc<ConnectionShared> {
        &self.0.shared
    }

    /// Whether both are handles of the same connection.
    pub fn is_same(&self, other: &Connection) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The peer's public key, which it has proven to hold.
    pub fn peer(&self) -> PublicKey {
        self.0.peer
    }

    /// Opens a stream both sides can write to; waits while the peer allows no further one. The peer
    /// learns of the stream from its first bytes.
    pub async fn open_bi(
        &self,
        class: TrafficClass,
    ) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(class, CoreConnection::open_stream).await?;
        Ok((self.send_half(id), self.recv_half(id)))
    }

    /// Opens a stream that only this side writes to; waits while the peer allows no further one. The peer
    /// learns of the stream from its first bytes.
    pub async fn open_uni(&self, class: TrafficClass) -> Result<SendStream, ConnectionError> {
        let id = self.open(class, CoreConnection::open_uni_stream).await?;
        Ok(self.send_half(id))
    }

    async fn open(
        &self,
        class: TrafficClass,
        open: fn(&mut CoreConnection, TrafficClass) -> Result<StreamId, StreamError>,
    ) -> Result<StreamId, ConnectionError> {
        let wait = &self.shared().wait.openable;
        let mut waits = None;
        let id = self.shared().until(wait, |state| {
            let id = match state.usable() {
                Ok(connection) => open(connection, class),
                Err(error) => return Some(Err(error)),
            };
            let Ok(id) = id else {
                // `Limit`: an event follows when there is room.
                waits.get_or_insert_with(|| StreamWait::begin(self.shared(), state.voice.as_ref()));
                return None;
            };
            state.track(id);
            Some(Ok(id))
        });
        id.await
    }

    /// How often opening a stream had to wait because the peer allows no more at a time.
    pub fn stream_waits(&self) -> StreamWaits {
        self.shared().stream_waits.counts()
    }

    /// The next stream that the peer opens for both sides to write to.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(Direction::Bidirectional).await?;
        Ok((self.send_half(id), self.recv_half(id)))
    }

    /// The next unidirectional stream that the peer opens.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        Ok(self.recv_half(self.accept(Direction::Unidirectional).await?))
    }

    async fn accept(&self, direction: Direction) -> Result<StreamId, ConnectionError> {
        let wait = &self.shared().wait.incoming;
        let id = self.shared().until(wait, |state| {
            match state.incoming[direction as usize].pop_front() {
                Some(id) => Some(Ok(id)),
                None => state.error().map(Err),
            }
        });
        id.await
    }

    fn send_half(&self, id: StreamId) -> SendStream {
        SendStream::new(Arc::clone(&self.0), id)
    }

    fn recv_half(&self, id: StreamId) -> RecvStream {
        RecvStream::new(Arc::clone(&self.0), id)
    }

    /// The longest datagram that can be sent now, bytes; `None` when the connection is over. It follows the
    /// sizes of packets that the paths carry.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let state = self.shared().lock();
        state.connection.as_ref().map(CoreConnection::max_datagram_size)
    }

    /// Bytes free in the send queue of a class's datagrams; `None` when the connection is over. Each datagram
    /// takes its length and [`DATAGRAM_COST`](crate::DATAGRAM_COST). If several
    /// datagrams are of use only together, ask this first.
    pub fn datagram_send_buffer_space(&self, class: TrafficClass) -> Option<usize> {
        let state = self.shared().lock();
        state.connection.as_ref().map(|connection| connection.datagram_send_buffer_space(class))
    }

    /// Queues a datagram if there is space now: delivered at most once, in no order.
    pub fn try_send_datagram(&self, data: &[u8], class: TrafficClass) -> Result<(), DatagramError> {
        self.queue_datagram(&mut self.shared().lock(), data, class)
    }

    /// Queues a datagram, once there is space.
    pub async fn send_datagram(
        &self,
        data: &[u8],
        class: TrafficClass,
    ) -> Result<(), DatagramError> {
        let wait = &self.shared().wait.datagram_space;
        let queued =
            self.shared().until(wait, |state| match self.queue_datagram(state, data, class) {
                Err(DatagramError::Full) => None,
                result => Some(result),
            });
        queued.await
    }

    fn queue_datagram(
        &self,
        state: &mut ConnectionState,
        data: &[u8],
        class: TrafficClass,
    ) -> Result<(), DatagramError> {
        match state.usable()?.send_datagram(data, class) {
            Ok(()) => {
                self.shared().mailbox.ring();
                Ok(())
            }
            Err(StreamError::TooLong) => Err(DatagramError::TooLong),
            Err(_) => Err(DatagramError::Full),
        }
    }

    /// The next datagram of the peer.
    pub async fn recv_datagram(&self) -> Result<Vec<u8>, ConnectionError> {
        let wait = &self.shared().wait.datagram;
        let datagram = self.shared().until(wait, |state| match state.recv_datagram() {
            Some(datagram) => Some(Ok(datagram)),
            None => state.error().map(Err),
        });
        datagram.await
    }

    /// Adds a path. Only the side that opened the connection can.
    pub fn add_path(&self, path: PathSpec) -> Result<PathId, PathError> {
        let address = self.address(path)?;
        let now = self.now();
        let added = self.shared().act(|connection| connection.add_path(now, address));
        Ok(added.ok_or(PathError::Closed)??)
    }

    /// Takes a path out of use for good; what it carried goes over the others. Without any path left the
    /// connection waits for another until its idle timeout.
    pub fn remove_path(&self, path: PathId) {
        let now = self.now();
        self.shared().act(|connection| connection.remove_path(now, path, 0));
        // Recorded before another path takes the place of this one.
        self.shared().note_paths(&mut self.shared().lock());
    }

    /// Moves a path to another socket or another address of the peer: its interface came back with a
    /// new address, or its socket was [replaced](crate::Endpoint::replace_socket). The new address
    /// is validated before much is sent.
    pub fn move_path(&self, path: PathId, to: PathSpec) -> Result<(), PathError> {
        let address = self.address(to)?;
        let now = self.now();
        let moved = self.shared().act(|connection| connection.move_path(now, path, address));
        moved.ok_or(PathError::Closed)
    }

    /// Tells the side that opened the connection that this side can also be reached at `address`, or soon will be.
    /// That side then follows paths that are moved there, and tries the address for a silent path. Call this before
    /// or right after [`move_path`](Self::move_path) on the side that accepted; on the side that opened the
    /// connection it does nothing.
    pub fn announce_address(&self, address: SocketAddr) {
        self.shared().act(|connection| connection.announce_address(address));
    }

    /// The addresses that the accepting side has announced, the newest last; empty on the accepting side itself. They
    /// stay available after the connection is over, to connect again.
    pub fn peer_addresses(&self) -> Vec<SocketAddr> {
        self.shared().lock().peer_addresses.clone()
    }

    fn address(&self, path: PathSpec) -> Result<PathAddress, PathError> {
        let socket = self.shared().endpoint.sockets.of_path(path.local, path.remote);
        let socket = socket.ok_or(PathError::NoSocket(path.local))?;
        Ok(PathAddress { socket, remote: path.remote })
    }

    fn now(&self) -> Time {
        self.shared().endpoint.clock.now()
    }

    /// The next thing that happens to a path; `None` once the connection is over. Events that nobody
    /// asks for are kept, the newest 64 of them.
    pub async fn path_event(&self) -> Option<PathEvent> {
        let wait = &self.shared().wait.paths;
        let event = self.shared().until(wait, |state| match state.path_events.pop_front() {
            Some(event) => Some(Some(event)),
            None => state.error().map(|_| None),
        });
        event.await
    }

    /// How long the peer has been silent, if every path has been asked for a sign of life without an answer. The
    /// connection goes on where it was when the peer is heard again. `None` when the connection is over.
    pub fn silence(&self) -> Option<Duration> {
        let state = self.shared().lock();
        if state.error().is_some() {
            return None;
        }
        let since = state.connection.as_ref()?.silent_since()?;
        Some(self.now().since(since))
    }

    /// Why the connection is over; `None` while it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.shared().lock().error()
    }

    /// How long ago the peer was last heard; `None` when the connection is over.
    pub fn last_heard(&self) -> Option<Duration> {
        let state = self.shared().lock();
        let since = state.connection.as_ref()?.last_heard();
        Some(self.now().since(since))
    }

    /// Waits until the peer falls silent or, if `silent`, until it is heard again. Also returns when the connection
    /// is over.
    pub async fn silence_changed(&self, silent: bool) {
        let wait = &self.shared().wait.hearing;
        let changed = self.shared().until(wait, |state| {
            let connection = state.connection.as_ref();
            let now = connection.is_some_and(|connection| connection.silent_since().is_some());
            (state.error().is_some() || now != silent).then_some(())
        });
        changed.await;
    }

    /// Asks the peer for a sign of life, by one packet and its answer, whenever nothing was heard of it for
    /// `interval`, so that its end is noticed a few round trips later. With `None`, only other traffic shows it.
    pub fn set_heartbeat(&self, interval: Option<Duration>) {
        self.shared().act(|connection| connection.set_heartbeat(interval));
    }

    /// Asks the peer for a sign of life on every path, several times. Returns whether one came within three round
    /// trips (100 ms to 10 s) or, unless every path has been found silent by then, within 750 ms if that is longer.
    pub async fn is_alive(&self) -> bool {
        let asked = self.now();
        // Even a peer that was silent before gets time to answer.
        let patience = self.shared().act(|connection| {
            connection.ask_for_signs(asked);
            let paths = connection.stats().paths;
            // Without a sample, a path's round-trip time is only a guess.
            let measured = paths.iter().filter(|path| path.rtt.samples > 0);
            measured.map(|path| path.rtt.smoothed * 3).max().unwrap_or_default()
        });
        let patience = patience.unwrap_or_default().clamp(LEAST_PATIENCE, MOST_PATIENCE);
        for turn in 1_u32.. {
            tokio::time::sleep(ALIVE_TURN).await;
            let waited = self.now().since(asked);
            let judged = self.shared().act(|connection| {
                if connection.has_given_sign() {
                    return Some(true);
                }
                let silent = connection.silent_since().is_some() && waited >= patience;
                if connection.is_closed() || silent || waited >= patience.max(ENOUGH_PATIENCE) {
                    return Some(false);
                }
                if turn.is_multiple_of(ASK_AGAIN) {
                    connection.ask_again_for_signs();
                }
                None
            });
            // A connection that is not there any more is not alive.
            if let Some(alive) = judged.unwrap_or(Some(false)) {
                return alive;
            }
        }
        false
    }

    /// Asks for this many signs of life on a path, each by a packet of its own, at once. The answers show in
    /// [`Connection::stats`].
    pub fn ping(&self, path: PathId, count: u8) {
        self.shared().act(|connection| connection.ping(path, count));
    }

    /// With `backup`, uses a path only when the others cannot carry the load; without, uses it like the others again.
    pub fn set_backup(&self, path: PathId, backup: bool) {
        self.shared().act(|connection| connection.set_backup(path, backup));
    }

    /// Controls the congestion of what this side sends on a path by `policy` from now on, whatever the profile says.
    /// Best set before anything is written, as the congestion window starts over.
    ///
    /// # Errors
    /// When there is no such policy, or an option of it is wrong.
    pub fn set_congestion(&self, path: PathId, policy: &PolicySpec) -> Result<(), PolicyError> {
        let now = self.now();
        let set = self.shared().act(|connection| connection.set_congestion(now, path, policy));
        set.unwrap_or(Ok(()))
    }

    /// The local address that a path of [`Connection::stats`] leaves from.
    pub fn local_addr(&self, socket: SocketId) -> Option<SocketAddr> {
        self.shared().endpoint.sockets.local_of(socket)
    }

    /// Figures as of now, or of the connection's end; `None` if it never began.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.shared().lock().stats()
    }

    /// Every path under its name, as of now or of the connection's end, in the order in which they were opened. Paths
    /// that replaced each other, as when an interface went and came back, count as one.
    pub fn named_paths(&self) -> Vec<NamedPath> {
        let mut state = self.shared().lock();
        self.shared().note_paths(&mut state);
        state.names.list()
    }

    /// The name of a path, as long as no other path has replaced it.
    pub fn path_name(&self, path: PathId) -> Option<String> {
        self.shared().lock().names.name(path).map(str::to_owned)
    }

    /// A function that returns the [name](Self::path_name) of a path, without keeping the connection open.
    pub fn path_namer(&self) -> impl Fn(PathId) -> Option<String> + Send + 'static {
        let connection = self.downgrade();
        move |path| connection.upgrade()?.path_name(path)
    }

    pub(crate) fn name_path(&self, path: PathId, naming: Naming) {
        self.shared().lock().names.assign(path, naming);
    }

    /// Records what the connection does and why, from now on.
    pub fn set_observer(&self, observer: Option<Box<dyn Observer>>) {
        self.shared().act(|connection| connection.set_observer(observer));
    }

    /// Waits until the peer has everything written so far.
    pub async fn drained(&self) -> Result<(), ConnectionError> {
        let wait = &self.shared().wait.drained;
        let drained = self.shared().until(wait, |state| {
            let drained = state.connection.as_ref().is_some_and(|own| own.is_drained());
            if drained { Some(Ok(())) } else { state.error().map(Err) }
        });
        drained.await
    }

    /// Closes the connection at once; what was not delivered is lost. Codes from 256 are the
    /// application's, 0 says that nothing went wrong.
    pub fn close(&self, code: u64, reason: &str) {
        self.shared().close(self.now(), code, reason);
    }

    /// Waits until the connection is over; returns why.
    pub async fn closed(&self) -> ConnectionError {
        let wait = &self.shared().wait.phase;
        self.shared().until(wait, |state| state.error()).await
    }
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.referenced = false;
        match state.phase {
            Phase::Open => {
                state.close(self.shared.endpoint.clock.now(), 0, "");
                self.shared.mailbox.ring();
            }
            Phase::Connecting if state.connection.is_none() => {
                self.shared.endpoint.lock().router.abandon(self.shared.handle);
                self.shared.end(&mut state);
                return;
            }
            _ => {}
        }
        self.shared.forget_if_unused(&state);
    }
}
