//! Handshakes and connection ids: an endpoint without the connections themselves.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use anabranch_types::{PathId, Time};

use super::admission::HalfOpen;
use super::incoming::{Incoming, Waiting};
use super::memory::MemoryLedger;
use super::path_ids::PathIds;
use super::{ConnectConfig, ConnectError, EndpointConfig, Handle};
use crate::config::TransportConfig;
use crate::connection::{Connection, Earliest, Setup, TimeoutReason, Transmit};
use crate::crypto::{Crypto, PublicKey, Randomness};
use crate::handshake::message::{CookieReply, Response};
use crate::handshake::{
    DropReason, Established, HandshakeError, Initiator, Opening, Permitted, Responder, Schedule,
};
use crate::path::received::Ecn;
use crate::path::{PathAddress, SocketId};
use crate::profiles::Profile;
use crate::wire::{ConnectionId, PacketKind, Role, TransportParameters};

/// Progress and outcome of handshakes.
#[derive(Debug)]
pub enum RouterEvent {
    /// A peer asks for a connection. The caller [accepts](Router::accept) it,
    /// [ignores](Router::ignore) it, or makes it [ask again](Router::retry) with a cookie.
    Incoming(Incoming),
    /// A connection begins, whose keys are made. One that a peer asked for is half open until
    /// [`Router::on_established`] is called.
    Begun(Handle, Box<Connection>),
    /// A connection that this side asked for was never answered.
    Failed(Handle),
    /// A half-open connection, or a peer that asked for one, is given up, and its id is free again.
    /// If the connection is established later, [`Router::on_established`] restores it.
    GivenUp(Handle),
    /// A check was answered: whether the peer still has this connection.
    Checked(Handle, bool),
    /// A handshake from this address got no answer, for this reason.
    Refused(SocketAddr, DropReason),
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) initiator: Initiator,
    pub(super) config: ConnectConfig,
    pub(super) next_path: usize,
    /// The connection about which a check asks; such an attempt opens no connection.
    pub(super) about: Option<Handle>,
}

/// One identity, which begins connections, lets peers begin connections, and finds the connection
/// of a datagram. Its caller owns the connections, so that each can have its own task and lock.
#[derive(Debug)]
pub struct Router {
    pub(super) config: EndpointConfig,
    pub(super) crypto: Box<dyn Crypto>,
    random: Box<dyn Randomness>,
    pub(super) responder: Responder,
    pub(super) attempts: BTreeMap<u32, Attempt>,
    /// This side's role in each connection, and the peer's key.
    pub(super) connections: BTreeMap<u32, (Role, PublicKey)>,
    pub(super) path_ids: PathIds,
    /// Peers that wait for a decision, and accepted connections whose peers have not proven that
    /// they have the keys.
    pub(super) half_open: HalfOpen,
    pub(super) waiting: Waiting,
    pub(super) memory: MemoryLedger,
    pub(super) replies: Vec<(PathAddress, Vec<u8>)>,
    pub(super) events: VecDeque<RouterEvent>,
    attempt_packet: Vec<u8>,
    last_timestamp: u64,
    cookies_taken: u64,
}

impl Router {
    /// A router without connections. All its random numbers come from `crypto`.
    pub fn new(config: EndpointConfig, mut crypto: Box<dyn Crypto>, now: Time) -> Self {
        let of_responder = crypto.randomness();
        let (rate, burst) = (config.responder.rate, config.responder.burst);
        let mut responder = Responder::new(config.responder.clone(), now, of_responder);
        responder.set_wall_clock(config.wall_clock);
        Router {
            half_open: HalfOpen::new(config.max_half_open, rate, burst),
            responder,
            config,
            random: crypto.randomness(),
            crypto,
            attempts: BTreeMap::new(),
            connections: BTreeMap::new(),
            path_ids: PathIds::default(),
            waiting: Waiting::default(),
            memory: MemoryLedger::default(),
            replies: Vec::new(),
            events: VecDeque::new(),
            attempt_packet: Vec::new(),
            last_timestamp: 0,
            cookies_taken: 0,
        }
    }

    /// This endpoint's public key.
    pub fn public_key(&self) -> PublicKey {
        self.crypto.public_key()
    }

    /// Replaces the list of peers that may connect.
    pub fn set_permitted(&mut self, permitted: Permitted) {
        self.responder.set_permitted(permitted);
    }

    /// Starts connecting. [`RouterEvent::Begun`] or `Failed` reports the result.
    pub fn connect(&mut self, now: Time, config: ConnectConfig) -> Result<Handle, ConnectError> {
        if config.paths.is_empty() {
            return Err(ConnectError::NoPath);
        }
        if config.paths.len() > usize::from(self.config.transport.max_paths) {
            return Err(ConnectError::TooManyPaths);
        }
        let id = self.free_id().ok_or(ConnectError::TooManyConnections)?;
        let transport = self.config.transport.clone();
        let parameters = self.parameters(&config.profile, &transport, id).encode();
        let initiated = self.initiate(now, id, &config, &parameters, self.config.schedule);
        let Ok(initiator) = initiated else {
            self.path_ids.release(id);
            return Err(ConnectError::Crypto);
        };
        self.attempts.insert(id, Attempt { initiator, config, next_path: 0, about: None });
        Ok(Handle(id))
    }

    /// Gives up connecting, without an event.
    pub fn abandon(&mut self, handle: Handle) {
        if self.attempts.remove(&handle.0).is_some() {
            self.path_ids.release(handle.0);
        }
    }

    /// Transport parameters that this side announces; the ids of the connection's paths are reserved.
    pub(super) fn parameters(
        &mut self,
        profile: &Profile,
        transport: &TransportConfig,
        id: u32,
    ) -> TransportParameters {
        let connection_ids = self.reserve(id, transport.max_paths).split_off(1);
        TransportParameters { connection_ids, ..profile.parameters(transport) }
    }

    /// A first message under the connection id `id`, to be sent on the paths of `config`.
    #[expect(clippy::too_many_arguments, reason = "whom to ask for what, and how often")]
    pub(super) fn initiate(
        &mut self,
        now: Time,
        id: u32,
        config: &ConnectConfig,
        parameters: &[u8],
        schedule: Schedule,
    ) -> Result<Initiator, HandshakeError> {
        let timestamp = self.timestamp(now);
        let opening = Opening { peer: config.peer, local_id: id, timestamp, parameters };
        let mut initiator = Initiator::new(self.crypto.as_mut(), opening, schedule, now)?;
        for index in 0..config.paths.len() {
            initiator.add_path(PathId(index as u32), now);
        }
        Ok(initiator)
    }

    /// Sets the wall clock, in nanoseconds since 1970. It need not advance with `now`, which may
    /// stand still while the machine sleeps.
    pub fn set_wall_clock(&mut self, now: Time, nanos: u64) {
        self.config.wall_clock = nanos.saturating_sub(now.as_nanos());
        self.responder.set_wall_clock(self.config.wall_clock);
    }

    /// Nanoseconds since 1970, rising with every attempt, since an equal timestamp would count as a
    /// replay.
    fn timestamp(&mut self, now: Time) -> u64 {
        let clock = self.config.wall_clock.saturating_add(now.as_nanos());
        self.last_timestamp = clock.max(self.last_timestamp + 1);
        self.last_timestamp
    }

    pub(super) fn is_full(&self) -> bool {
        let all = self.connections.len() + self.attempts.len() + self.waiting.len();
        all >= self.config.max_connections
    }

    pub(super) fn free_id(&mut self) -> Option<u32> {
        if self.is_full() { None } else { Some(self.unused_id()) }
    }

    /// A random connection id that is not in use.
    pub(super) fn unused_id(&mut self) -> u32 {
        loop {
            let id = self.random.next_u64() as u32;
            let taken = self.connections.contains_key(&id)
                || self.attempts.contains_key(&id)
                || self.waiting.contains_key(&id)
                || self.path_ids.contains(id);
            if !taken {
                return id;
            }
        }
    }

    /// Processes a datagram from `address` that belongs to no connection by its header
    /// ([`connection_of`](crate::wire::header::connection_of)). Handshake messages are processed,
    /// and all others are dropped. If the datagram is a copy of a handshake's response over another
    /// path, returns the connection, for [`Connection::path_answered`].
    pub fn handle_datagram(
        &mut self,
        now: Time,
        address: PathAddress,
        payload: &[u8],
    ) -> Option<Handle> {
        match payload.first().copied().and_then(PacketKind::of)? {
            PacketKind::Initiation => self.on_initiation(now, address, payload),
            PacketKind::Response => return self.on_response(now, address, payload),
            PacketKind::CookieReply => self.on_cookie_reply(now, address, payload),
            PacketKind::Data => {}
        }
        None
    }

    fn on_response(&mut self, now: Time, address: PathAddress, payload: &[u8]) -> Option<Handle> {
        let id = Response::parse(payload).ok()?.receiver;
        let Some(attempt) = self.attempts.get_mut(&id) else {
            // Copies of the response arrive on every path that works; the connection compares them with the first.
            return Some(Handle(id));
        };
        let established = attempt.initiator.on_response(self.crypto.as_ref(), payload).ok()?;
        let attempt = self.attempts.remove(&id)?;
        if let Some(about) = attempt.about {
            self.on_check_answer(about, &established);
            return None;
        }
        match self.establish(now, id, attempt, established) {
            Some(mut connection) => {
                connection.remember_response(payload);
                connection.path_answered(now, address, payload);
                self.begin(id, connection);
            }
            None => {
                self.path_ids.release(id);
                self.events.push_back(RouterEvent::Failed(Handle(id)));
            }
        }
        None
    }

    /// Registers the connection's id, and passes the connection to the caller as an event.
    pub(super) fn begin(&mut self, id: u32, connection: Connection) {
        self.connections.insert(id, (connection.role(), connection.peer()));
        self.events.push_back(RouterEvent::Begun(Handle(id), Box::new(connection)));
    }

    fn establish(
        &mut self,
        now: Time,
        id: u32,
        attempt: Attempt,
        established: Established,
    ) -> Option<Connection> {
        let peer_parameters = TransportParameters::decode(&established.parameters).ok()?;
        let remote_id = ConnectionId(established.remote_id);
        if peer_parameters.connection_ids.contains(&remote_id) {
            return None;
        }
        let setup = Setup {
            role: Role::Initiator,
            peer: attempt.config.peer,
            local_ids: self.path_ids.of(id),
            remote_id,
            session: established.session,
            config: self.config.transport.clone(),
            profile: attempt.config.profile,
            peer_parameters,
            random: self.crypto.randomness(),
            now,
        };
        let mut connection = Connection::new(setup).ok()?;
        for path in attempt.config.paths {
            // Paths beyond the peer's limit are not added.
            if connection.add_path(now, path).is_err() {
                break;
            }
        }
        Some(connection)
    }

    fn on_cookie_reply(&mut self, now: Time, address: PathAddress, payload: &[u8]) {
        let Ok(reply) = CookieReply::parse(payload) else { return };
        let Some(attempt) = self.attempts.get_mut(&reply.receiver) else { return };
        let Some(index) = attempt.config.paths.iter().position(|path| *path == address) else {
            return;
        };
        // A refused cookie changes nothing; the message is repeated when its timer fires.
        let path = PathId(index as u32);
        let taken = attempt.initiator.on_cookie_reply(self.crypto.as_ref(), path, now, payload);
        self.cookies_taken += u64::from(taken.is_ok());
    }

    /// The next datagram of a handshake to send; its payload is put into `buffer`, which must hold 1500
    /// bytes.
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
        self.poll_attempts(now, writable, buffer)
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
                if attempt.initiator.poll(self.crypto.as_ref(), path, now, packet) {
                    attempt.next_path = index + 1;
                    return copy_out(address, packet, buffer);
                }
            }
        }
        None
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn next_timeout(&self) -> Option<Time> {
        let mut earliest = Earliest::default();
        for attempt in self.attempts.values() {
            earliest.add(Some(attempt.initiator.next_timeout()), TimeoutReason::Handshake);
        }
        earliest.add(self.half_open.next_timeout(), TimeoutReason::Handshake);
        earliest.get().map(|(time, _)| time)
    }

    /// Performs all actions that are due by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.drop_attempts(now);
        self.drop_half_open(now);
    }

    /// Gives up attempts that have not been answered in time.
    pub(super) fn drop_attempts(&mut self, now: Time) {
        let (events, path_ids) = (&mut self.events, &mut self.path_ids);
        self.attempts.retain(|id, attempt| {
            let expired = attempt.initiator.has_expired(now);
            if expired {
                path_ids.release(*id);
            }
            if expired && attempt.about.is_none() {
                events.push_back(RouterEvent::Failed(Handle(*id)));
            }
            !expired
        });
    }

    /// Notes that a connection's peer has shown that it has the keys, so the connection is no
    /// longer half open.
    pub fn on_established(&mut self, connection: &Connection) {
        let ConnectionId(id) = connection.local_id();
        self.half_open.remove(id);
        self.connections.insert(id, (connection.role(), connection.peer()));
        self.keep_ids(connection);
    }

    /// Removes a connection that is over; its ids are free again.
    pub fn forget(&mut self, handle: Handle) {
        self.path_ids.release(handle.0);
        self.attempts.retain(|_, attempt| attempt.about != Some(handle));
        self.half_open.remove(handle.0);
        self.memory.forget(handle.0);
        self.connections.remove(&handle.0);
    }

    /// How often peers have sent a cookie to this side's attempts, which shows that they are
    /// reachable and under load.
    pub fn cookies_taken(&self) -> u64 {
        self.cookies_taken
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<RouterEvent> {
        self.events.pop_front()
    }
}

fn copy_out(to: PathAddress, bytes: &[u8], buffer: &mut [u8]) -> Option<Transmit> {
    buffer.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let (len, ecn) = (bytes.len(), Ecn::NotEct);
    Some(Transmit {
        socket: to.socket,
        remote: to.remote,
        ecn,
        len,
        segment: len,
        mtu_probe: false,
    })
}
