//! An endpoint: one identity, its sockets' datagrams, and the connections among them.

mod accept;
mod admission;

use std::collections::BTreeMap;

use anabranch_policy::PolicyError;
use anabranch_types::{PathId, Rng, Time};
use core::fmt;

use self::admission::HalfOpen;
use crate::config::TransportConfig;
use crate::connection::{Connection, Event, Setup, TimeoutReason};
use crate::connection::{Earliest, Transmit};
use crate::crypto::{Crypto, PublicKey, Session};
use crate::handshake::{DropReason, Permitted, ResponderConfig, Responding};
use crate::handshake::{Initiating, Opening, Schedule};
use crate::path::received::Ecn;
use crate::path::{PathAddress, SocketId};
use crate::profiles::Profile;
use crate::wire::header::connection_of;
use crate::wire::{ConnectionId, PacketKind, Role, TransportParameters};

/// What an endpoint is made from.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Limits of its connections.
    pub transport: TransportConfig,
    /// Profile of the connections it accepts.
    pub profile: Profile,
    /// Who may connect, and how much work strangers may cause.
    pub responder: ResponderConfig,
    /// When handshake messages are repeated.
    pub schedule: Schedule,
    /// Most connections at a time, opened and accepted together.
    pub max_connections: usize,
    /// Most of them that are accepted and half open: the peer has not sent a packet yet that shows that it
    /// has the keys. Further ones take the place of the oldest, which is safe from that for two seconds, or
    /// for the time in which the responder's `burst` and `rate` let in so many, if that is less.
    pub max_half_open: usize,
    /// Most half-open connections of a single source: an IPv4 address or an IPv6 prefix of 56 bits.
    pub max_half_open_per_source: usize,
    /// Most accepted connections with the holder of a single key.
    pub max_per_peer: usize,
    /// Wall-clock nanoseconds since 1970 at [`Time::ZERO`]; handshake timestamps are made from it.
    pub wall_clock: u64,
}

impl EndpointConfig {
    /// The defaults, with `profile` for accepted connections; nobody may connect yet.
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
    /// The local socket it came through.
    pub socket: SocketId,
    /// Its source.
    pub remote: std::net::SocketAddr,
    /// Its mark.
    pub ecn: Ecn,
    /// Its payload; decrypted in place.
    pub payload: &'a mut [u8],
}

/// What a new connection is to be.
#[derive(Clone, Debug)]
pub struct ConnectConfig {
    /// The key that the peer must prove to hold.
    pub peer: PublicKey,
    /// Paths to try at once. More can be added later.
    pub paths: Vec<PathAddress>,
    /// Policies.
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
    /// The profile names something that does not exist.
    Policy(PolicyError),
    /// The cryptography refused.
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

/// News about a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// A peer connected.
    Accepted(Handle),
    /// A connection opened here was answered.
    Connected(Handle),
    /// A connection opened here was never answered.
    ConnectFailed(Handle),
    /// Something happened on a connection.
    Connection(Handle, Event),
    /// A connection and all its memory are gone.
    Gone(Handle),
    /// A handshake that somebody began from this address got no answer, and why.
    Refused(std::net::SocketAddr, DropReason),
}

#[derive(Debug)]
struct Attempt {
    initiating: Initiating,
    config: ConnectConfig,
    next_path: usize,
}

/// One identity and its connections.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    crypto: Box<dyn Crypto>,
    rng: Rng,
    responding: Responding,
    attempts: BTreeMap<u32, Attempt>,
    connections: BTreeMap<u32, Connection>,
    half_open: HalfOpen,
    replies: Vec<(PathAddress, Vec<u8>)>,
    events: std::collections::VecDeque<EndpointEvent>,
    /// Connection that was served last, for fairness.
    last_served: u32,
    attempt_packet: Vec<u8>,
    last_timestamp: u64,
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig, crypto: Box<dyn Crypto>, mut rng: Rng, now: Time) -> Self {
        let cookie_rng = Rng::new(rng.next_u64());
        let (rate, burst) = (config.responder.rate, config.responder.burst);
        Endpoint {
            half_open: HalfOpen::new(config.max_half_open, rate, burst),
            responding: Responding::new(config.responder.clone(), now, cookie_rng),
            config,
            crypto,
            rng,
            attempts: BTreeMap::new(),
            connections: BTreeMap::new(),
            replies: Vec::new(),
            events: std::collections::VecDeque::new(),
            last_served: 0,
            attempt_packet: Vec::new(),
            last_timestamp: 0,
        }
    }

    /// This endpoint's public key.
    pub fn public_key(&self) -> PublicKey {
        self.crypto.public_key()
    }

    /// Replaces the list of who may connect.
    pub fn set_permitted(&mut self, permitted: Permitted) {
        self.responding.set_permitted(permitted);
    }

    /// Starts connecting. [`EndpointEvent::Connected`] or `ConnectFailed` tells how it went.
    pub fn connect(&mut self, now: Time, config: ConnectConfig) -> Result<Handle, ConnectError> {
        if config.paths.is_empty() {
            return Err(ConnectError::NoPath);
        }
        if config.paths.len() > usize::from(self.config.transport.max_paths) {
            return Err(ConnectError::TooManyPaths);
        }
        let id = self.free_id().ok_or(ConnectError::TooManyConnections)?;
        let parameters = config.profile.parameters(&self.config.transport).encode();
        let timestamp = self.timestamp(now);
        let opening =
            Opening { peer: config.peer, local_id: id, timestamp, parameters: &parameters };
        let rng = Rng::new(self.rng.next_u64());
        let mut initiating =
            Initiating::new(self.crypto.as_mut(), opening, self.config.schedule, now, rng)
                .map_err(|_| ConnectError::Crypto)?;
        for index in 0..config.paths.len() {
            initiating.add_path(PathId(index as u32), now);
        }
        self.attempts.insert(id, Attempt { initiating, config, next_path: 0 });
        Ok(Handle(id))
    }

    /// Nanoseconds since 1970, rising with every attempt: an equal one would count as a replay.
    fn timestamp(&mut self, now: Time) -> u64 {
        let clock = self.config.wall_clock.saturating_add(now.as_nanos());
        self.last_timestamp = clock.max(self.last_timestamp + 1);
        self.last_timestamp
    }

    fn is_full(&self) -> bool {
        self.connections.len() + self.attempts.len() >= self.config.max_connections
    }

    fn free_id(&mut self) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        loop {
            let id = self.rng.next_u32();
            if !self.connections.contains_key(&id) && !self.attempts.contains_key(&id) {
                return Some(id);
            }
        }
    }

    /// The connection of a handle, once it is answered and until it is gone.
    pub fn connection(&mut self, handle: Handle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle.0)
    }

    /// Handles of all connections.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.connections.keys().map(|id| Handle(*id))
    }

    /// A datagram arrived. Whatever is not understood is dropped.
    pub fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        let Datagram { socket, remote, ecn, payload } = datagram;
        let address = PathAddress { socket, remote };
        let Some(kind) = payload.first().copied().and_then(PacketKind::of) else { return };
        match kind {
            PacketKind::Data => {
                if let Some(ConnectionId(id)) = connection_of(payload)
                    && let Some(connection) = self.connections.get_mut(&id)
                {
                    connection.handle_packet(now, address, ecn, payload);
                }
            }
            PacketKind::Initiation => self.on_initiation(now, address, payload),
            PacketKind::Response => self.on_response(now, address, payload),
            PacketKind::CookieReply => self.on_cookie_reply(now, address, payload),
        }
    }

    fn on_response(&mut self, now: Time, address: PathAddress, payload: &[u8]) {
        let Ok(response) = crate::handshake::message::Response::parse(payload) else { return };
        let id = response.receiver;
        if let Some(attempt) = self.attempts.get_mut(&id) {
            let Ok(established) = attempt.initiating.on_response(self.crypto.as_ref(), payload)
            else {
                return;
            };
            let Some(attempt) = self.attempts.remove(&id) else { return };
            let Ok(parameters) = TransportParameters::decode(&established.parameters) else {
                self.events.push_back(EndpointEvent::ConnectFailed(Handle(id)));
                return;
            };
            let remote_id = ConnectionId(established.remote_id);
            self.establish(now, id, attempt, remote_id, established.session, parameters);
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.remember_response(payload);
            }
        }
        // Copies come back on every path that works; only the very bytes that were authenticated count.
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.path_answered(now, address, payload);
        }
    }

    fn establish(
        &mut self,
        now: Time,
        id: u32,
        attempt: Attempt,
        remote_id: ConnectionId,
        session: Session,
        peer_parameters: TransportParameters,
    ) {
        let setup = Setup {
            role: Role::Initiator,
            peer: attempt.config.peer,
            local_id: ConnectionId(id),
            remote_id,
            session,
            config: self.config.transport.clone(),
            profile: attempt.config.profile,
            peer_parameters,
            rng: Rng::new(self.rng.next_u64()),
            now,
        };
        let Ok(mut connection) = Connection::new(setup) else {
            self.events.push_back(EndpointEvent::ConnectFailed(Handle(id)));
            return;
        };
        for path in attempt.config.paths {
            // Paths beyond the peer's limit are left out.
            if connection.add_path(now, path).is_err() {
                break;
            }
        }
        self.connections.insert(id, connection);
        self.events.push_back(EndpointEvent::Connected(Handle(id)));
    }

    fn on_cookie_reply(&mut self, now: Time, address: PathAddress, payload: &[u8]) {
        let Ok(reply) = crate::handshake::message::CookieReply::parse(payload) else { return };
        let Some(attempt) = self.attempts.get_mut(&reply.receiver) else { return };
        let Some(index) = attempt.config.paths.iter().position(|path| *path == address) else {
            return;
        };
        // A refused cookie changes nothing: the message is simply repeated on its timer.
        let path = PathId(index as u32);
        let _ = attempt.initiating.on_cookie_reply(self.crypto.as_ref(), path, now, payload);
    }

    /// The next datagram to send; its payload is put into `buffer`, which must hold
    /// [`TransportConfig::largest_datagram`] bytes and at least 1500.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        if let Some(index) = self.replies.iter().position(|(to, _)| writable(to.socket)) {
            let (to, bytes) = self.replies.swap_remove(index);
            return copy_out(to, &bytes, buffer);
        }
        if let Some(transmit) = self.poll_attempts(now, writable, buffer) {
            return Some(transmit);
        }
        if self.connections.len() == 1 {
            // Nobody to be fair to: no search for whose turn it is.
            let (id, connection) = self.connections.iter_mut().next()?;
            let transmit = connection.poll_transmit(now, writable, buffer)?;
            self.last_served = *id;
            return Some(transmit);
        }
        let start = self.last_served;
        let later = self.connections.range_mut(start.saturating_add(1)..);
        for (id, connection) in later {
            if let Some(transmit) = connection.poll_transmit(now, writable, buffer) {
                self.last_served = *id;
                return Some(transmit);
            }
        }
        for (id, connection) in self.connections.range_mut(..=start) {
            if let Some(transmit) = connection.poll_transmit(now, writable, buffer) {
                self.last_served = *id;
                return Some(transmit);
            }
        }
        None
    }

    fn poll_attempts(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        for attempt in self.attempts.values_mut() {
            let count = attempt.config.paths.len();
            for step in 0..count {
                let index = (attempt.next_path + step) % count;
                let address = attempt.config.paths[index];
                if !writable(address.socket) {
                    continue;
                }
                self.attempt_packet.clear();
                let path = PathId(index as u32);
                let packet = &mut self.attempt_packet;
                if attempt.initiating.poll(self.crypto.as_ref(), path, now, packet) {
                    attempt.next_path = index + 1;
                    return copy_out(address, packet, buffer);
                }
            }
        }
        None
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    pub fn next_timeout(&self) -> Option<(Time, TimeoutReason)> {
        let mut earliest = Earliest::default();
        for attempt in self.attempts.values() {
            earliest.add(Some(attempt.initiating.next_timeout()), TimeoutReason::Handshake);
        }
        earliest.add(self.half_open.next_timeout(), TimeoutReason::Handshake);
        for connection in self.connections.values() {
            if let Some((time, reason)) = connection.next_timeout() {
                earliest.add(Some(time), reason);
            }
        }
        earliest.get()
    }

    /// Lets everything happen that is due by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        let events = &mut self.events;
        self.attempts.retain(|id, attempt| {
            let expired = attempt.initiating.has_expired(now);
            if expired {
                events.push_back(EndpointEvent::ConnectFailed(Handle(*id)));
            }
            !expired
        });
        for connection in self.connections.values_mut() {
            connection.handle_timeout(now);
        }
        self.collect_events();
        self.drop_half_open(now);
        let (events, half_open) = (&mut self.events, &mut self.half_open);
        self.connections.retain(|id, connection| {
            let gone = connection.is_gone(now);
            if gone {
                half_open.remove(*id);
                events.push_back(EndpointEvent::Gone(Handle(*id)));
            }
            !gone
        });
    }

    fn collect_events(&mut self) {
        for (id, connection) in &mut self.connections {
            while let Some(event) = connection.poll_event() {
                if event == Event::Established && connection.role() == Role::Responder {
                    self.half_open.remove(*id);
                    self.events.push_back(EndpointEvent::Accepted(Handle(*id)));
                }
                self.events.push_back(EndpointEvent::Connection(Handle(*id), event));
            }
        }
    }

    /// The next piece of news, oldest first.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        if self.events.is_empty() {
            self.collect_events();
        }
        self.events.pop_front()
    }
}

fn copy_out(to: PathAddress, bytes: &[u8], buffer: &mut [u8]) -> Option<Transmit> {
    buffer.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let (len, ecn) = (bytes.len(), Ecn::NotEct);
    Some(Transmit { socket: to.socket, remote: to.remote, ecn, len, mtu_probe: false })
}
