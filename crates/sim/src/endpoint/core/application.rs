//! The application that sends over a host's connection.

use anabranch_core::connection::{Connection, Event};
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::{ConnectConfig, Endpoint, Handle};
use anabranch_core::observe::Observer;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_policy::Axis;
use anabranch_policy::view::PathState;
use anabranch_types::{PathId, Time};

use super::messages;
use super::progress::Sent;
use super::stripes::Chunk;
use super::{CHUNK, CoreConfig, Host, Pattern, RECEIVER_KEY, SYMBOL_HEADER};
use crate::endpoint::{FlowFailure, PathChange};
use crate::traffic::{Source, Traffic, Transfer};

/// An application that writes to a connection.
#[derive(Debug)]
pub(super) struct Application {
    config: CoreConfig,
    pattern: Pattern,
    pub source: Source,
    /// When the application starts; `None` if it starts with its host.
    pub start: Option<Time>,
    pub started: Option<Time>,
    pub handle: Option<Handle>,
    connected: bool,
    pub observer: Option<Box<dyn Observer>>,
    writing: Vec<Writing>,
    /// The chunk that is being written, if several connections carry one stream.
    chunk: Option<Chunk>,
    pub transfers: Vec<(StreamId, Transfer)>,
    pub written: u64,
    drained: Option<Time>,
    pub failure: Option<FlowFailure>,
    pub progress: Option<Box<Sent>>,
    pub messages: Option<messages::Sent>,
}

/// A transfer whose data is not all written yet.
#[derive(Debug)]
struct Writing {
    stream: StreamId,
    written: u64,
    bytes: Option<u64>,
}

/// The local socket and the remote address of a path at the start.
fn address(path: usize) -> PathAddress {
    let remote = Host::address(RECEIVER_KEY, path, 0);
    PathAddress { socket: SocketId(path as u32), remote }
}

impl Application {
    pub(super) fn new(config: &CoreConfig, traffic: Traffic, seed: u64, name: &str) -> Self {
        Application {
            config: config.clone(),
            pattern: Pattern::new(),
            source: Source::new(traffic, seed, name).until(config.stop),
            start: None,
            started: None,
            handle: None,
            connected: false,
            observer: None,
            writing: Vec::new(),
            chunk: None,
            transfers: Vec::new(),
            written: 0,
            drained: None,
            failure: None,
            progress: None,
            messages: None,
        }
    }

    /// When the sender learned that all data of the application has arrived; `None` until then.
    pub(super) fn finished(&self) -> Option<Time> {
        self.drained.filter(|_| self.source.is_done())
    }

    /// Approximate number of bytes of application data in a packet.
    pub(super) fn packet(&self) -> u64 {
        u64::from(self.config.transport.max_datagram).saturating_sub(SYMBOL_HEADER)
    }

    /// Whether the application's connection uses the path with this index.
    pub(super) fn uses(&self, path: usize) -> bool {
        self.config.stripe.is_none_or(|stripe| stripe.path == path)
    }

    /// Whether the application's profile has a code.
    pub(super) fn codes(&self) -> bool {
        self.config.profile.policy(Axis::Code).name != "none"
    }

    /// Time of the next event of the application itself.
    pub(super) fn next_event(&self) -> Option<Time> {
        if self.failure.is_some() {
            return None;
        }
        if self.started.is_none() {
            return self.start;
        }
        let messages = self.messages.as_ref().and_then(messages::Sent::next_event);
        [self.source.next_event(), messages].into_iter().flatten().min()
    }

    /// Starts the application and connects, if its start time has come.
    pub(super) fn start(&mut self, now: Time, host: &mut Host) {
        if self.started.is_none() && self.start.is_none_or(|start| start <= now) {
            self.started = Some(now);
            self.source.start(now);
            self.connect(now, host);
        }
    }

    fn connect(&mut self, now: Time, host: &mut Host) {
        let config = ConnectConfig {
            peer: PublicKey([RECEIVER_KEY; 32]),
            paths: (0..host.ports.len()).filter(|path| self.uses(*path)).map(address).collect(),
            profile: self.config.profile.clone(),
        };
        match host.endpoint.connect(now, config) {
            Ok(handle) => self.handle = Some(handle),
            Err(error) => self.failure = Some(FlowFailure::Refused(error.to_string())),
        }
    }

    fn connection<'a>(&self, endpoint: &'a mut Endpoint) -> Option<&'a mut Connection> {
        endpoint.connection(self.handle?)
    }

    pub(super) fn connected(&mut self, now: Time, host: &mut Host) {
        self.connected = true;
        let wanted = self.config.messages;
        self.messages = wanted.map(|messages| messages::Sent::new(messages, now));
        if let Some(observer) = self.observer.take()
            && let Some(connection) = self.connection(&mut host.endpoint)
        {
            connection.set_observer(Some(observer));
        }
    }

    /// Connects again after a failed handshake.
    pub(super) fn refused(&mut self, now: Time, host: &mut Host) {
        self.connect(now, host);
    }

    pub(super) fn hear(&mut self, now: Time, event: Event, host: &mut Host) {
        match event {
            // A close after all data has arrived is no failure.
            Event::Closed(reason) if self.finished().is_none() => {
                self.failure = Some(FlowFailure::Closed(format!("{reason:?}")));
            }
            Event::Stream(StreamEvent::Acked(_)) => {
                self.source.complete(now);
                self.drained = Some(now);
            }
            // The peer sends only the end of the stream. Reading it frees the stream's slot.
            Event::Stream(StreamEvent::Readable(stream)) => {
                if let Some(connection) = self.connection(&mut host.endpoint) {
                    let _ = connection.read(stream, &mut host.buffer);
                }
            }
            _ => {}
        }
    }

    /// Opens streams for due transfers and writes as much data as the connection accepts;
    /// `next_chunk` is the number of the next chunk of a stream that several connections carry.
    pub(super) fn write(&mut self, now: Time, endpoint: &mut Endpoint, next_chunk: &mut u64) {
        if self.started.is_none() || self.failure.is_some() {
            return;
        }
        self.source.handle(now);
        let Some(handle) = self.handle.filter(|_| self.connected) else { return };
        let Some(connection) = endpoint.connection(handle) else { return };
        while let Some(transfer) = self.source.next_transfer() {
            let Ok(stream) = connection.open_stream(self.config.class) else {
                self.source.put_back(transfer);
                break;
            };
            self.transfers.push((stream, transfer));
            self.writing.push(Writing { stream, written: 0, bytes: transfer.bytes });
        }
        let (source, pattern, total) = (&mut self.source, &self.pattern, &mut self.written);
        if self.config.stripe.is_some() {
            for writing in &self.writing {
                let to = (&mut *connection, writing.stream);
                *total += Chunk::write(&mut self.chunk, to, next_chunk, pattern);
            }
        } else {
            self.writing.retain_mut(|writing| writing.write(connection, source, pattern, total));
        }
        if let Some(messages) = &mut self.messages {
            if self.source.has_stopped() {
                messages.stop();
            }
            messages.send(now, connection);
        }
    }

    pub(super) fn note(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(progress) = &mut self.progress
            && let Some(handle) = self.handle
            && let Some(connection) = endpoint.connection(handle)
        {
            progress.note(now, connection, self.transfers.len() as u64);
        }
    }

    /// Applies a change of a path's interface to the connection.
    pub(super) fn change_path(
        &self,
        now: Time,
        path: usize,
        change: PathChange,
        endpoint: &mut Endpoint,
    ) {
        if !self.uses(path) {
            return;
        }
        let address = address(path);
        let Some(connection) = self.connection(endpoint) else { return };
        let paths = connection.stats().paths;
        let open = paths.iter().find(|known| {
            known.address.socket == address.socket && known.state != PathState::Closed
        });
        match (change, open.map(|path| path.id)) {
            (PathChange::Move, Some(path)) => connection.move_path(now, path, address),
            (PathChange::Down, Some(path)) => connection.remove_path(now, path, 0),
            (PathChange::Backup, Some(path)) => connection.set_backup(path, true),
            (PathChange::Regular, Some(path)) => connection.set_backup(path, false),
            (PathChange::Up, None) => {
                // Adding fails only while the peer remembers too many paths; the path then stays
                // down.
                let Ok(id) = connection.add_path(now, address) else { return };
                // The profile chooses the congestion control by the path's first identifier.
                let profile = &self.config.profile;
                let control = profile.congestion_of(PathId(path as u32));
                if control != profile.congestion_of(id) {
                    // This cannot fail: the control was accepted when the profile was made.
                    let _ = connection.set_congestion(now, id, control);
                }
            }
            _ => {}
        }
    }
}

impl Writing {
    /// Writes as much data as the connection accepts. Returns whether the transfer has more to
    /// write.
    fn write(
        &mut self,
        connection: &mut Connection,
        source: &mut Source,
        pattern: &Pattern,
        total: &mut u64,
    ) -> bool {
        loop {
            let left = match self.bytes {
                Some(bytes) => bytes - self.written,
                None => source.offered(),
            };
            if left == 0 {
                let over = self.bytes.is_some() || source.has_stopped();
                return !over || connection.finish(self.stream).is_err();
            }
            let len = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            match connection.write(self.stream, pattern.at(self.written, len)) {
                Ok(0) | Err(_) => return true,
                Ok(taken) => {
                    let taken = taken as u64;
                    self.written += taken;
                    *total += taken;
                    if self.bytes.is_none() {
                        source.take(taken);
                    }
                }
            }
        }
    }
}
