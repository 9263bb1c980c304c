use anabranch_core::connection::{Connection, Event};
use anabranch_core::endpoint::{ConnectConfig, EndpointEvent, Handle};
use anabranch_core::observe::Observer;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_policy::view::TrafficClass;
use anabranch_types::Time;

use super::progress::Sent;
use super::{
    CHUNK, CoreConfig, CoreFailure, Host, Pattern, RECEIVER_KEY, SENDER_KEY, SYMBOL_HEADER,
};
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
            source: Source::new(traffic, seed, name),
            started: None,
            handle: None,
            connected: false,
            observer: None,
            writing: Vec::new(),
            transfers: Vec::new(),
            written: 0,
            drained: None,
            progress: None,
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
    pub fn failure(&self) -> Option<&CoreFailure> {
        self.host.failure.as_ref()
    }

    fn connect(&mut self, now: Time) {
        let address = |port: usize| PathAddress {
            socket: SocketId(port as u32),
            remote: Host::address(RECEIVER_KEY, port),
        };
        let config = ConnectConfig {
            peer: PublicKey([RECEIVER_KEY; 32]),
            paths: (0..self.host.ports.len()).map(address).collect(),
            profile: self.config.profile.clone(),
        };
        match self.host.endpoint.connect(now, config) {
            Ok(handle) => self.handle = Some(handle),
            Err(error) => self.host.fail(error),
        }
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if self.host.failure.is_some() || self.started.is_none() {
            return;
        }
        self.host.transmit(now, out);
        self.take_news(now);
        self.source.handle(now);
        self.write();
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
                    if let Some(observer) = self.observer.take()
                        && let Some(connection) = self.host.endpoint.connection(handle)
                    {
                        connection.set_observer(Some(observer));
                    }
                }
                // As a patient application would: again, from the start.
                EndpointEvent::ConnectFailed(_) => self.connect(now),
                EndpointEvent::Connection(_, Event::Closed(reason)) => {
                    self.host.fail(format!("closed: {reason:?}"));
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
    fn write(&mut self) {
        let Some(handle) = self.handle.filter(|_| self.connected) else { return };
        let Some(connection) = self.host.endpoint.connection(handle) else { return };
        while let Some(transfer) = self.source.next_transfer() {
            let Ok(stream) = connection.open_stream(TrafficClass::Bulk) else {
                self.source.put_back(transfer);
                break;
            };
            self.transfers.push((stream, transfer));
            self.writing.push(Writing { stream, written: 0, bytes: transfer.bytes });
        }
        let (source, pattern, total) = (&mut self.source, &self.pattern, &mut self.written);
        self.writing.retain_mut(|writing| writing.write(connection, source, pattern, total));
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
                return self.bytes.is_none() || connection.finish(self.stream).is_err();
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
        Some(self.source.next_event().map_or(timeout, |event| event.min(timeout)))
    }
}
