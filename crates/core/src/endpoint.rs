//! An endpoint: one identity with its connections, for the datagrams of its sockets.

mod accept;
mod admission;
mod check;
mod connections;
mod incoming;
mod memory;
mod path_ids;
mod router;

use std::collections::VecDeque;

use anabranch_policy::PolicyError;
use anabranch_types::Time;
use core::fmt;

use self::connections::Connections;

pub use self::check::Check;
pub use self::incoming::{AcceptConfig, AcceptError, Incoming};
pub use self::path_ids::IdChanges;
pub use self::router::{Router, RouterEvent};
use crate::config::TransportConfig;
use crate::connection::{Connection, Earliest, Event, TimeoutReason, Transmit};
use crate::crypto::{Crypto, PublicKey};
use crate::handshake::{DropReason, Permitted, ResponderConfig, Schedule};
use crate::path::received::Ecn;
use crate::path::{PathAddress, SocketId};
use crate::profiles::Profile;
use crate::wire::header::connection_of;
use crate::wire::{ConnectionId, Role};

/// Most refused handshakes that wait to be reported.
const MAX_REFUSED: usize = 256;

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Limits of its connections.
    pub transport: TransportConfig,
    /// Profile of the connections that the endpoint accepts.
    pub profile: Profile,
    /// Peers that may connect, and limits of the work that strangers may cause.
    pub responder: ResponderConfig,
    /// When handshake messages are repeated.
    pub schedule: Schedule,
    /// Most connections at a time, opened and accepted together.
    pub max_connections: usize,
    /// Most half-open connections: those that a peer asked for and that are not decided on, or for
    /// which no packet has shown yet that the peer has the keys. Further ones replace the oldest,
    /// but only after two seconds, or after the time in which the responder's `burst` and `rate`
    /// admit this many, if that is less.
    pub max_half_open: usize,
    /// Most half-open connections of a single source (an IPv4 address or an IPv6 prefix of 56 bits)
    /// and of a single key.
    pub max_half_open_per_source: usize,
    /// Most accepted connections with the holder of one key; never more than half of
    /// `max_connections`, rounded up.
    pub max_per_peer: usize,
    /// Bytes of memory that all connections share ([`Connection::memory`]). The connections with
    /// one peer may together hold as much as is left; if they hold more, the largest of them is
    /// closed with [`CloseCode::MEMORY`](crate::wire::CloseCode::MEMORY).
    pub memory: u64,
    /// Wall-clock nanoseconds since 1970 at [`Time::ZERO`]; handshake timestamps are made from it.
    pub wall_clock: u64,
}

impl EndpointConfig {
    /// The defaults, with `profile` for accepted connections. No peer may connect yet.
    pub fn new(profile: Profile) -> Self {
        EndpointConfig {
            transport: TransportConfig::default(),
            profile,
            responder: ResponderConfig::default(),
            schedule: Schedule::default(),
            max_connections: 1024,
            max_half_open: 512,
            max_half_open_per_source: 16,
            max_per_peer: 256,
            memory: 1_000_000_000,
            wall_clock: 0,
        }
    }
}

/// A connection of this endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

/// A datagram from the network.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The local socket that the datagram came through.
    pub socket: SocketId,
    /// Source address of the datagram.
    pub remote: std::net::SocketAddr,
    /// ECN mark of the datagram.
    pub ecn: Ecn,
    /// UDP payload; decrypted in place.
    pub payload: &'a mut [u8],
}

/// Settings of a new connection.
#[derive(Clone, Debug)]
pub struct ConnectConfig {
    /// The key that the peer must prove to hold.
    pub peer: PublicKey,
    /// Paths to try at once. More can be added later.
    pub paths: Vec<PathAddress>,
    /// Profile of the connection, which chooses its policies.
    pub profile: Profile,
}

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// No path was given.
    NoPath,
    /// More paths than the configuration allows.
    TooManyPaths,
    /// The endpoint has as many connections as it may.
    TooManyConnections,
    /// The profile names a policy that does not exist.
    Policy(PolicyError),
    /// A cryptographic operation failed.
    Crypto,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NoPath => f.write_str("no path was given"),
            ConnectError::TooManyPaths => f.write_str("more paths than the limit"),
            ConnectError::TooManyConnections => f.write_str("too many connections"),
            ConnectError::Policy(error) => error.fmt(f),
            ConnectError::Crypto => f.write_str("the peer's key cannot be used"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// An event of the endpoint or of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// A peer connected.
    Accepted(Handle),
    /// A connection opened here was answered.
    Connected(Handle),
    /// A connection opened here was never answered.
    ConnectFailed(Handle),
    /// A connection emitted an event.
    Connection(Handle, Event),
    /// A connection has ended and all its memory is freed.
    Gone(Handle),
    /// A handshake from this address got no answer, for this reason.
    Refused(std::net::SocketAddr, DropReason),
}

/// One identity and its connections.
#[derive(Debug)]
pub struct Endpoint {
    router: Router,
    connections: Connections,
    events: VecDeque<EndpointEvent>,
    /// Checks that are due, and have not been sent yet.
    checks: Vec<Check>,
}

impl Endpoint {
    /// An endpoint without connections. All its random numbers come from `crypto`.
    pub fn new(config: EndpointConfig, crypto: Box<dyn Crypto>, now: Time) -> Self {
        Endpoint {
            router: Router::new(config, crypto, now),
            connections: Connections::default(),
            events: VecDeque::new(),
            checks: Vec::new(),
        }
    }

    /// This endpoint's public key.
    pub fn public_key(&self) -> PublicKey {
        self.router.public_key()
    }

    /// Replaces the list of peers that may connect.
    pub fn set_permitted(&mut self, permitted: Permitted) {
        self.router.set_permitted(permitted);
    }

    /// Starts connecting. [`EndpointEvent::Connected`] or `ConnectFailed` reports the result.
    pub fn connect(&mut self, now: Time, config: ConnectConfig) -> Result<Handle, ConnectError> {
        self.router.connect(now, config)
    }

    /// The connection of a handle, from its handshake's answer until it is gone.
    pub fn connection(&mut self, handle: Handle) -> Option<&mut Connection> {
        self.connections.get_mut(ConnectionId(handle.0))
    }

    /// Handles of all connections.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.connections.iter().map(handle_of)
    }

    /// Processes a datagram that arrived. Invalid datagrams are dropped.
    pub fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        let Datagram { socket, remote, ecn, payload } = datagram;
        let address = PathAddress { socket, remote };
        // Nearly all datagrams are packets of connections, which need not pass through the router.
        if let Some(id) = connection_of(payload) {
            let heaviest = self.connections.get_mut(id).and_then(|connection| {
                connection.handle_packet(now, address, ecn, payload);
                weigh(&mut self.router, connection)
            });
            self.close_for_memory(now, heaviest);
            return;
        }
        match self.router.handle_datagram(now, address, payload) {
            Some(handle) => {
                if let Some(connection) = self.connection(handle) {
                    connection.path_answered(now, address, payload);
                }
            }
            None => self.take_events(now),
        }
    }

    fn accept_config(&self) -> AcceptConfig {
        let EndpointConfig { profile, transport, .. } = &self.router.config;
        AcceptConfig { profile: profile.clone(), transport: transport.clone() }
    }

    /// Adds and removes connections according to the fate of handshakes.
    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.router.poll_event() {
            let event = match event {
                // Every permitted peer is accepted. A peer that cannot be answered is dropped.
                RouterEvent::Incoming(incoming) => {
                    let _ = self.router.accept(now, &incoming, self.accept_config());
                    continue;
                }
                RouterEvent::Begun(Handle(id), connection) => {
                    let role = connection.role();
                    self.connections.insert(connection);
                    // An accepted connection is reported once the peer has shown that it has the keys.
                    if role == Role::Responder {
                        continue;
                    }
                    EndpointEvent::Connected(Handle(id))
                }
                RouterEvent::Failed(handle) => EndpointEvent::ConnectFailed(handle),
                RouterEvent::GivenUp(Handle(id)) => {
                    self.connections.remove(ConnectionId(id));
                    EndpointEvent::Gone(Handle(id))
                }
                RouterEvent::Checked(Handle(id), known) => {
                    if let Some(connection) = self.connections.get_mut(ConnectionId(id)) {
                        connection.on_check(now, known);
                    }
                    continue;
                }
                // Unread refusals are capped, so that unauthenticated senders cannot grow the queue.
                RouterEvent::Refused(..) if self.events.len() >= MAX_REFUSED => continue,
                RouterEvent::Refused(remote, why) => EndpointEvent::Refused(remote, why),
            };
            self.events.push_back(event);
        }
    }

    /// The next datagram to send; its payload is put into `buffer`, which must hold
    /// [`TransportConfig::largest_datagram`] bytes and at least 1500.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        self.poll_train(now, writable, buffer, 1)
    }

    /// The next datagrams to send, as many as [`Connection::poll_train`] gives.
    pub fn poll_train(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
        most: usize,
    ) -> Option<Transmit> {
        if let Some(transmit) = self.router.poll_transmit(now, writable, buffer) {
            return Some(transmit);
        }
        self.connections.serve(|connection| connection.poll_train(now, writable, buffer, most))
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    pub fn next_timeout(&self) -> Option<(Time, TimeoutReason)> {
        let mut earliest = Earliest::default();
        earliest.add(self.router.next_timeout(), TimeoutReason::Handshake);
        for connection in self.connections.iter() {
            if let Some((time, reason)) = connection.next_timeout() {
                earliest.add(Some(time), reason);
            }
        }
        earliest.get()
    }

    /// Performs all actions that are due by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.router.drop_attempts(now);
        self.take_events(now);
        let mut heaviest = Vec::new();
        for connection in self.connections.iter_mut() {
            connection.handle_timeout(now);
            heaviest.extend(weigh(&mut self.router, connection));
        }
        self.close_for_memory(now, heaviest);
        // A connection whose peer has just shown that it has the keys is no longer half open.
        self.collect_events();
        for check in self.checks.drain(..) {
            self.router.check(now, check);
        }
        self.router.drop_half_open(now);
        self.take_events(now);
        let gone = self.connections.iter().filter(|connection| connection.is_gone(now));
        for handle in gone.map(handle_of).collect::<Vec<_>>() {
            self.router.forget(handle);
            self.connections.remove(ConnectionId(handle.0));
            self.events.push_back(EndpointEvent::Gone(handle));
        }
    }

    fn close_for_memory(&mut self, now: Time, heaviest: impl IntoIterator<Item = Handle>) {
        for handle in heaviest {
            if let Some(connection) = self.connection(handle) {
                connection.close_for_memory(now);
            }
        }
    }

    fn collect_events(&mut self) {
        let mut rerouted = Vec::new();
        for connection in self.connections.iter_mut() {
            let handle = handle_of(connection);
            while let Some(event) = connection.poll_event() {
                match event {
                    Event::ConnectionIds => {
                        rerouted.push((handle, self.router.exchange_ids(connection)));
                        continue;
                    }
                    Event::CheckDue => {
                        self.checks.extend(Check::of(handle, connection));
                        continue;
                    }
                    Event::Established if connection.role() == Role::Responder => {
                        self.router.on_established(connection);
                        self.events.push_back(EndpointEvent::Accepted(handle));
                    }
                    _ => {}
                }
                self.events.push_back(EndpointEvent::Connection(handle, event));
            }
        }
        for (Handle(id), changes) in rerouted {
            self.connections.reroute(ConnectionId(id), changes);
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        if self.events.is_empty() {
            self.collect_events();
        }
        self.events.pop_front()
    }
}

/// Tells the router how much memory a connection holds; returns the connection that has to close, if one has to.
#[inline]
fn weigh(router: &mut Router, connection: &mut Connection) -> Option<Handle> {
    let bytes = connection.memory_news()?;
    router.weigh(connection, bytes)
}

/// The handle of a connection: its id for path 0.
fn handle_of(connection: &Connection) -> Handle {
    Handle(connection.local_id().0)
}
