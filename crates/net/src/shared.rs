//! State that an endpoint's task, its connections' tasks and the application's handles share.
//!
//! Each connection has a lock of its own, under which its task and the application take turns; the
//! endpoint's lock is held for moments only. Anyone who needs both takes the connection's first.

mod connection;
mod events;
mod mailbox;
mod memory;
mod names;
mod routes;
mod stream_waits;

pub(crate) use self::connection::{ConnectionShared, ConnectionState, Phase, Rest};
pub(crate) use self::mailbox::{Letters, Mailbox};
use self::routes::Routes;
pub use self::stream_waits::StreamWaits;
pub(crate) use self::stream_waits::{StreamWait, StreamWaitCounts};

use crate::buffers::Buffers;
use crate::clock::{Clock, wall_clock};
use crate::log::{self, Voice};
use crate::socket::Socket;
use crate::sockets::Sockets;
use anabranch_core::connection::Connection;
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::{
    AcceptConfig, AcceptError, Check, Handle, IdChanges, Incoming, Router, RouterEvent,
};
use anabranch_core::wire::ConnectionId;
use anabranch_types::Time;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// State shared by all handles of an endpoint.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<EndpointState>,
    routes: Routes,
    pub(crate) sockets: Sockets,
    pub(crate) buffers: Buffers,
    pub(crate) clock: Clock,
    /// Default profile and limits of accepted connections.
    pub(crate) accept_config: AcceptConfig,
    /// Limits of the log lines about each peer, and about refused handshakes.
    peers: log::Peers,
    refusals: log::Refusals,
    /// Rung when the endpoint's task has something to do.
    pub(crate) mailbox: Mailbox,
    /// Notified when a peer asks for a connection, or when none will be accepted any more.
    pub(crate) incoming: Notify,
    /// Notified when the last connection is gone.
    pub(crate) idle: Notify,
}

/// The endpoint except for its connections, under its lock.
#[derive(Debug)]
pub(crate) struct EndpointState {
    pub(crate) router: Router,
    /// Peers that ask for a connection and that the application has not taken yet. The router counts all of them as
    /// half open, and so bounds their number.
    pub(crate) incoming: VecDeque<Incoming>,
    /// Sockets that the endpoint's task has not taken yet, by their index; one may replace another.
    pub(crate) new_sockets: Vec<(usize, Arc<Socket>)>,
    /// Connections that are not over.
    pub(crate) live: usize,
    /// No connections are accepted any more.
    pub(crate) refuses: bool,
    /// The application has dropped the endpoint.
    pub(crate) released: bool,
    /// The endpoint's task has ended.
    pub(crate) stopped: bool,
}

impl Shared {
    pub(crate) fn new(router: Router, clock: Clock, accept_config: AcceptConfig) -> Self {
        let state = EndpointState {
            router,
            incoming: VecDeque::new(),
            new_sockets: Vec::new(),
            live: 0,
            refuses: false,
            released: false,
            stopped: false,
        };
        Shared {
            state: Mutex::new(state),
            routes: Routes::default(),
            sockets: Sockets::default(),
            buffers: Buffers::default(),
            clock,
            accept_config,
            peers: log::Peers::default(),
            refusals: log::Refusals::default(),
            mailbox: Mailbox::default(),
            incoming: Notify::new(),
            idle: Notify::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, EndpointState> {
        // A panic elsewhere under the lock leaves the protocol's state as sound as any error does.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection of a handle, as long as its task or the application needs it.
    pub(crate) fn connection(&self, handle: Handle) -> Option<Arc<ConnectionShared>> {
        self.routes.of(handle)
    }

    /// The connection to which packets with this id belong.
    pub(crate) fn receiver(&self, id: ConnectionId) -> Option<Arc<ConnectionShared>> {
        self.routes.of_id(id)
    }

    /// All connections that are known.
    pub(crate) fn connections(&self) -> Vec<Arc<ConnectionShared>> {
        self.routes.all()
    }

    /// Whether no connection is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The log of a connection; `side` is this endpoint's role in it, "client" or "server".
    pub(crate) fn voice(&self, handle: Handle, peer: &PublicKey, side: &'static str) -> Voice {
        Voice::new((&self.peers, self.clock), handle, peer, side)
    }

    /// Registers a connection.
    pub(crate) fn insert(
        self: &Arc<Self>,
        endpoint: &mut EndpointState,
        handle: Handle,
        state: ConnectionState,
    ) -> Arc<ConnectionShared> {
        let connection = Arc::new(ConnectionShared::new(Arc::clone(self), handle, state));
        endpoint.live += 1;
        self.routes.insert(handle, Arc::clone(&connection));
        connection
    }

    /// Handles the results of handshakes. Returns the connections that have begun, which need a task each.
    pub(crate) fn take_events(self: &Arc<Self>, now: Time) -> Vec<Arc<ConnectionShared>> {
        let mut begun = Vec::new();
        loop {
            let event = self.lock().router.poll_event();
            match event {
                None => return begun,
                Some(RouterEvent::Incoming(asked)) => self.on_incoming(asked),
                Some(RouterEvent::Begun(handle, connection)) => {
                    if let Some(shared) = self.connection(handle) {
                        let added = connection.local_ids().collect();
                        self.routes.change(handle, &IdChanges { added, removed: Vec::new() });
                        shared.begin(*connection, now);
                        begun.push(shared);
                    }
                }
                Some(RouterEvent::Failed(handle)) => {
                    if let Some(connection) = self.connection(handle) {
                        connection.fail();
                    }
                }
                Some(RouterEvent::GivenUp(handle)) => {
                    self.lock().incoming.retain(|asked| asked.handle != handle);
                    if let Some(connection) = self.connection(handle) {
                        connection.give_up();
                    }
                }
                Some(RouterEvent::Checked(handle, known)) => {
                    if let Some(connection) = self.connection(handle) {
                        connection.act(|connection| connection.on_check(now, known));
                    }
                }
                Some(RouterEvent::Refused(remote, why)) => {
                    log::refused(&self.refusals, now, remote, why);
                }
            }
        }
    }

    /// Queues a peer that asks for a connection, or refuses it if none is wanted any more.
    fn on_incoming(self: &Arc<Self>, asked: Incoming) {
        let mut endpoint = self.lock();
        if endpoint.refuses {
            drop(endpoint);
            self.refuse(&asked);
            return;
        }
        endpoint.incoming.push_back(asked);
        drop(endpoint);
        self.incoming.notify_waiters();
    }

    /// The next peer that asks for a connection.
    pub(crate) fn next_incoming(&self) -> Option<Incoming> {
        self.lock().incoming.pop_front()
    }

    /// Answers a peer that asks. Unless the connection is `wanted` by the application, it is closed as soon as it is open.
    pub(crate) fn accept(
        self: &Arc<Self>,
        asked: &Incoming,
        config: AcceptConfig,
        wanted: bool,
    ) -> Result<Arc<ConnectionShared>, AcceptError> {
        let AcceptConfig { profile, mut transport } = config;
        let own = &self.accept_config.transport;
        // The tasks' buffers hold packets of this length.
        if transport.largest_datagram() > own.largest_datagram() {
            (transport.max_datagram, transport.mtu_limit) = (own.max_datagram, own.mtu_limit);
        }
        let mut endpoint = self.lock();
        if endpoint.stopped {
            return Err(AcceptError::Gone);
        }
        endpoint.router.accept(self.clock.now(), asked, AcceptConfig { profile, transport })?;
        let mut state = ConnectionState::new(Phase::Accepting);
        state.referenced = wanted;
        let connection = self.insert(&mut endpoint, asked.handle, state);
        drop(endpoint);
        self.mailbox.ring();
        Ok(connection)
    }

    /// Tells a peer that asked for a connection that there will be none.
    pub(crate) fn refuse(self: &Arc<Self>, asked: &Incoming) {
        // A peer that no longer waits needs no answer.
        let _ = self.accept(asked, self.accept_config.clone(), false);
    }

    /// Reason given to a peer whose connection is refused.
    pub(crate) fn reason_to_refuse(&self) -> &'static str {
        match self.lock().refuses {
            true => "the endpoint accepts no more connections",
            false => "the connection was refused",
        }
    }

    /// Makes a peer that asks for a connection prove that it receives at its address.
    pub(crate) fn retry(&self, asked: &Incoming) {
        self.lock().router.retry(self.clock.now(), asked);
        self.mailbox.ring();
    }

    /// Exchanges connection ids: a connection wants some for further paths, or gives some back.
    pub(crate) fn exchange_ids(&self, handle: Handle, connection: &mut Connection) {
        let changes = self.lock().router.exchange_ids(connection);
        self.routes.change(handle, &changes);
    }

    /// Releases the ids of a connection that is over.
    pub(crate) fn on_gone(&self, handle: Handle) {
        self.routes.cut(handle);
        let mut endpoint = self.lock();
        endpoint.router.forget(handle);
        endpoint.live -= 1;
        if endpoint.live == 0 {
            self.idle.notify_waiters();
        }
    }

    /// Asks the peer of a connection whether the peer still has the connection.
    pub(crate) fn check(&self, now: Time, check: Check) {
        let mut endpoint = self.lock();
        endpoint.router.set_wall_clock(now, wall_clock());
        endpoint.router.check(now, check);
        drop(endpoint);
        self.mailbox.ring();
    }

    /// Drops a connection that neither its task nor the application needs.
    pub(crate) fn forget(&self, handle: Handle) {
        if self.routes.remove(handle) {
            self.mailbox.ring();
        }
    }

    /// Stops all connections, since the endpoint's task has ended and nothing will arrive any more.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        for connection in self.connections() {
            connection.stop();
        }
        self.incoming.notify_waiters();
        self.idle.notify_waiters();
    }
}
