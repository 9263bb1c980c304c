use anabranch_core::connection::{Connection, Event};
use anabranch_core::endpoint::{ConnectConfig, EndpointEvent, Handle};
use anabranch_core::observe::Observer;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_policy::view::PathState;
use anabranch_types::Time;

use super::messages;
use super::progress::Sent;
use super::{CHUNK, CoreConfig, Host, Pattern, RECEIVER_KEY, SENDER_KEY, SYMBOL_HEADER};
use crate::endpoint::{FlowFailure, PathChange};
use crate::engine::PortId;
use crate::engine::{Agent, Arrival, Outbox};
use crate::traffic::{Source, Traffic, Transfer};
use anabranch_core::crypto::PublicKey;

/// The end of a flow that connects over all its ports and sends what its application wants.
#[derive(Debug)]
pub struct CoreSender {
    host: Host,
    config: CoreConfig,
    pattern: Pattern,
    source: Source,
    started: Option<Time>,
    handle: Option<Handle>,
    connected: bool,
    observer: Option<Box<dyn Observer>>,
    writing: Vec<Writing>,
    transfers: Vec<(StreamId, Transfer)>,
    written: u64,
    drained: Option<Time>,
    pub(super) progress: Option<Box<Sent>>,
    pub(super) messages: Option<messages::Sent>,
}

/// Where the packets of a path go.
fn address(path: usize) -> PathAddress {
    let remote = Host::address(RECEIVER_KEY, path, 0);
    PathAddress { socket: SocketId(path as u32), remote }
}

/// A transfer that is not written to its end yet.
#[derive(Debug)]
struct Writing {
    stream: StreamId,
    written: u64,
    bytes: Option<u64>,
}

impl CoreSender {
    /// A sender whose draws are substreams of `seed` named after `name`.
    pub fn new(config: &CoreConfig, traffic: Traffic, seed: u64, name: &str) -> Self {
        CoreSender {
            host: Host::new(config, seed, name, SENDER_KEY),
            config: config.clone(),
            pattern: Pattern::new(),
            source: Source::new(traffic, seed, name).until(config.stop),
            started: None,
            handle: None,
            connected: false,
            observer: None,
            writing: Vec::new(),
            transfers: Vec::new(),
            written: 0,
            drained: None,
            progress: None,
            messages: None,
        }
    }

    /// Has the connection's decisions recorded from its beginning.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// The connection, once it is answered and until it is gone: its statistics and its paths.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.host.endpoint.connection(self.handle?)
    }

    /// Every transfer opened so far with the stream that carries it.
    pub fn transfers(&self) -> &[(StreamId, Transfer)] {
        &self.transfers
    }

    /// When the agent started.
    pub fn started(&self) -> Option<Time> {
        self.started
    }

    /// Bytes written by the application.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// When the last of everything that the application will ever send was known to have arrived.
    pub fn finished(&self) -> Option<Time> {
        self.drained.filter(|_| self.source.is_done())
    }

    /// Why the flow does not go on, if it does not.
    pub fn failure(&self) -> Option<&FlowFailure> {
        self.host.failure.as_ref()
    }

    /// Something happens to the interface of a path. Wake the agent afterwards.
    pub fn change_path(&mut self, now: Time, path: usize, change: PathChange) {
        let address = address(path);
        if let Some(version) = self.host.versions.get_mut(path) {
            match change {
                PathChange::Move => *version = version.wrapping_add(1 << 16),
                PathChange::Rebind => *version = *version & !0xffff | (*version + 1) & 0xffff,
                PathChange::Down | PathChange::Up => {}
            }
        }
        let Some(connection) = self.handle.and_then(|h| self.host.endpoint.connection(h)) else {
            return;
        };
        let paths = connection.stats().paths;
        let open = paths.iter().find(|known| {
            known.address.socket == address.socket && known.state != PathState::Closed
        });
        match (change, open.map(|path| path.id)) {
            (PathChange::Move, Some(path)) => connection.move_path(now, path, address),
            (PathChange::Down, Some(path)) => connection.remove_path(now, path, 0),
            (PathChange::Up, None) => {
                // Refused only while the peer remembers too many paths: then it stays down.
                let _ = connection.add_path(now, address);
            }
            _ => {}
        }
    }

    fn connect(&mut self, now: Time) {
        let config = ConnectConfig {
            peer: PublicKey([RECEIVER_KEY; 32]),
            paths: (0..self.host.ports.len()).map(address).collect(),
            profile: self.config.profile.clone(),
        };
        match self.host.endpoint.connect(now, config) {
            Ok(handle) => self.handle = Some(handle),
            Err(error) => self.host.fail(FlowFailure::Refused(error.to_string())),
        }
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if self.host.failure.is_some() || self.started.is_none() {
            return;
        }
        self.host.transmit(now, out);
        self.take_news(now);
        self.source.handle(now);
        self.write(now);
        self.host.transmit(now, out);
        self.note(now);
    }

    fn note(&mut self, now: Time) {
        if let Some(progress) = &mut self.progress
            && let Some(handle) = self.handle
            && let Some(connection) = self.host.endpoint.connection(handle)
        {
            progress.note(now, connection, self.transfers.len() as u64);
        }
    }

    /// Bytes that a packet carries, about.
    pub(super) fn packet(&self) -> u64 {
        u64::from(self.config.transport.max_datagram).saturating_sub(SYMBOL_HEADER)
    }

    fn take_news(&mut self, now: Time) {
        while let Some(event) = self.host.endpoint.poll_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    self.connected = true;
                    let wanted = self.config.messages;
                    self.messages = wanted.map(|messages| messages::Sent::new(messages, now));
                    if let Some(observer) = self.observer.take()
                        && let Some(connection) = self.host.endpoint.connection(handle)
                    {
                        connection.set_observer(Some(observer));
                    }
                }
                // As a patient application would: again, from the start.
                EndpointEvent::ConnectFailed(_) => self.connect(now),
                EndpointEvent::Connection(_, Event::Closed(reason)) => {
                    self.host.fail(FlowFailure::Closed(format!("{reason:?}")));
                }
                EndpointEvent::Connection(_, Event::Stream(StreamEvent::Acked(_))) => {
                    self.source.complete(now);
                    self.drained = Some(now);
                }
                // Nothing but the end comes back; taking it gives the stream's place to another.
                EndpointEvent::Connection(handle, Event::Stream(StreamEvent::Readable(stream))) => {
                    if let Some(connection) = self.host.endpoint.connection(handle) {
                        let _ = connection.read(stream, &mut self.host.buffer);
                    }
                }
                _ => {}
            }
        }
    }

    /// Opens what is due and writes what the connection takes.
    fn write(&mut self, now: Time) {
        let Some(handle) = self.handle.filter(|_| self.connected) else { return };
        let Some(connection) = self.host.endpoint.connection(handle) else { return };
        while let Some(transfer) = self.source.next_transfer() {
            let Ok(stream) = connection.open_stream(self.config.class) else {
                self.source.put_back(transfer);
                break;
            };
            self.transfers.push((stream, transfer));
            self.writing.push(Writing { stream, written: 0, bytes: transfer.bytes });
        }
        let (source, pattern, total) = (&mut self.source, &self.pattern, &mut self.written);
        self.writing.retain_mut(|writing| writing.write(connection, source, pattern, total));
        if let Some(messages) = &mut self.messages {
            if self.source.has_stopped() {
                messages.stop();
            }
            messages.send(now, connection);
        }
    }
}

impl Writing {
    /// Writes what the connection takes; says whether more is to come.
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

impl Agent for CoreSender {
    fn attach(&mut self, port: PortId) {
        self.host.ports.push(port);
        self.host.versions.push(0);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let now = arrival.now;
        self.host.receive(arrival);
        self.drive(now, out);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        if self.started.is_none() {
            self.started = Some(now);
            self.source.start(now);
            self.connect(now);
        }
        self.host.handle_timeout(now);
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        let timeout = self.host.next_timer()?;
        let messages = self.messages.as_ref().and_then(messages::Sent::next_event);
        [self.source.next_event(), messages, Some(timeout)].into_iter().flatten().min()
    }
}
