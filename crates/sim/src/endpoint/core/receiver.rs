use anabranch_core::connection::{Connection, Event};
use anabranch_core::endpoint::{Endpoint, EndpointEvent, Handle};
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_types::Time;
use core::time::Duration;

use super::messages::Taken;
use super::progress::Received;
use super::{CHUNK, CoreConfig, Host, Pattern, RECEIVER_KEY};
use crate::endpoint::ports::Ports;
use crate::endpoint::{FlowFailure, Gauge, Watch};
use crate::engine::PortId;
use crate::engine::{Agent, Arrival, Outbox};

/// The end of flows that accepts their connections, reads at once, and checks every byte.
#[derive(Debug)]
pub struct CoreReceiver {
    host: Host,
    pattern: Pattern,
    connections: Vec<Incoming>,
    /// The gauge of a connection to which nothing was delivered yet.
    pub(super) empty: Gauge,
    /// Selection of what is logged, if anything is.
    watch: Option<Watch>,
    pub(super) ports: Ports,
    buffer: Vec<u8>,
}

/// A connection that was accepted.
#[derive(Debug)]
pub(super) struct Incoming {
    handle: Handle,
    /// The number of the connection at the sender.
    remote: u32,
    reading: Vec<Reading>,
    pub finished: Vec<(StreamId, Time)>,
    pub messages: Taken,
    pub gauge: Gauge,
    pub failure: Option<FlowFailure>,
    pub progress: Option<Box<Received>>,
}

/// A stream that has not been read to its end.
#[derive(Debug)]
struct Reading {
    stream: StreamId,
    read: u64,
    readable: bool,
}

impl CoreReceiver {
    /// A receiver whose draws are substreams of `seed` named after `name`.
    pub fn new(config: &CoreConfig, seed: u64, name: &str) -> Self {
        CoreReceiver {
            host: Host::new(config, seed, name, RECEIVER_KEY),
            pattern: Pattern::new(),
            connections: Vec::new(),
            empty: Gauge::default(),
            watch: None,
            ports: Ports::default(),
            buffer: vec![0; CHUNK],
        }
    }

    /// Measures gaps between deliveries from `start` on.
    #[must_use]
    pub fn with_gaps_from(mut self, start: Time) -> Self {
        self.empty.gap_from = start;
        self
    }

    /// The connection that has the number `remote` at the sender, once it was accepted.
    pub(super) fn incoming(&self, remote: Handle) -> Option<&Incoming> {
        self.connections.iter().find(|incoming| incoming.remote == remote.0)
    }

    pub(super) fn incoming_mut(&mut self, remote: Handle) -> Option<&mut Incoming> {
        self.connections.iter_mut().find(|incoming| incoming.remote == remote.0)
    }

    /// The connection with the number `remote` at the sender, until the endpoint forgets it.
    pub(super) fn connection(&mut self, remote: Handle) -> Option<&mut Connection> {
        let handle = self.incoming(remote)?.handle;
        self.host.endpoint.connection(handle)
    }

    /// Bytes read in order, of all streams.
    pub fn delivered(&self) -> u64 {
        self.connections.iter().map(|incoming| incoming.gauge.delivered).sum()
    }

    /// The streams that were read to their end, and when: by connection, each in order of completion.
    pub fn finished(&self) -> impl Iterator<Item = &(StreamId, Time)> {
        self.connections.iter().flat_map(|incoming| &incoming.finished)
    }

    /// The longest time without a byte delivered, over all connections.
    pub fn longest_gap(&self) -> Duration {
        let gaps = self.connections.iter().map(|incoming| incoming.gauge.longest_gap());
        gaps.max().unwrap_or_default()
    }

    /// Why the flows failed, if they did.
    pub fn failure(&self) -> Option<&FlowFailure> {
        self.host.failure.as_ref()
    }

    /// Starts logging what `watch` selects.
    pub(super) fn log(&mut self, watch: Watch) {
        self.watch = Some(watch);
        for incoming in &mut self.connections {
            incoming.progress = Some(Box::new(Received::new(watch)));
        }
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if self.host.failure.is_some() {
            return;
        }
        self.host.transmit(now, out);
        self.drain_events();
        for incoming in &mut self.connections {
            let (endpoint, buffer) = (&mut self.host.endpoint, &mut self.buffer);
            if let Err(failure) = incoming.read(now, endpoint, &self.pattern, buffer) {
                self.host.fail(failure);
                return;
            }
        }
        self.host.transmit(now, out);
        for incoming in &mut self.connections {
            incoming.note(now, &mut self.host.endpoint);
        }
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.host.endpoint.poll_event() {
            match event {
                EndpointEvent::Accepted(handle) => self.accept(handle),
                EndpointEvent::Connection(handle, event) => self.hear(handle, event),
                _ => {}
            }
        }
    }

    fn accept(&mut self, handle: Handle) {
        let Some(connection) = self.host.endpoint.connection(handle) else { return };
        self.connections.push(Incoming {
            handle,
            remote: connection.remote_id().0,
            reading: Vec::new(),
            finished: Vec::new(),
            messages: Taken::default(),
            gauge: self.empty.clone(),
            failure: None,
            progress: self.watch.map(|watch| Box::new(Received::new(watch))),
        });
    }

    fn hear(&mut self, handle: Handle, event: Event) {
        let mut connections = self.connections.iter_mut();
        let Some(incoming) = connections.find(|incoming| incoming.handle == handle) else { return };
        match event {
            Event::Stream(StreamEvent::Opened(stream)) => {
                incoming.reading.push(Reading { stream, read: 0, readable: true });
            }
            Event::Stream(StreamEvent::Readable(stream)) => {
                let known = incoming.reading.iter_mut().find(|reading| reading.stream == stream);
                if let Some(reading) = known {
                    reading.readable = true;
                }
            }
            // Only a close with unread streams is a failure: without data the handshake was never completed, and a
            // connection whose streams were all read may fall silent.
            Event::Closed(reason) if !incoming.reading.is_empty() => {
                incoming.failure = Some(FlowFailure::Closed(format!("{reason:?}")));
            }
            _ => {}
        }
    }
}

impl Incoming {
    /// Reads the datagrams and stream data that have arrived.
    ///
    /// # Errors
    /// If they differ from what was sent, or cannot be read.
    fn read(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        pattern: &Pattern,
        buffer: &mut [u8],
    ) -> Result<(), FlowFailure> {
        let Some(connection) = endpoint.connection(self.handle) else { return Ok(()) };
        while let Some(len) = connection.recv_datagram(buffer) {
            self.messages.take(now, buffer.get(..len).unwrap_or_default())?;
        }
        for reading in self.reading.iter_mut().filter(|reading| reading.readable) {
            reading.readable = false;
            let (bytes, finished) =
                reading.read(connection, pattern, buffer).map_err(FlowFailure::Corrupt)?;
            self.gauge.deliver(now, bytes);
            if finished {
                // The reverse direction carries no data; finishing it frees the stream's slot.
                let _ = connection.finish(reading.stream);
                self.finished.push((reading.stream, now));
                reading.read = u64::MAX;
            }
        }
        self.reading.retain(|reading| reading.read < u64::MAX);
        Ok(())
    }

    fn note(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(progress) = &mut self.progress
            && let Some(connection) = endpoint.connection(self.handle)
        {
            progress.note(now, connection, &self.finished);
        }
    }
}

impl Reading {
    /// Reads all available bytes and checks them; returns their number, and whether the stream has ended.
    fn read(
        &mut self,
        connection: &mut Connection,
        pattern: &Pattern,
        buffer: &mut [u8],
    ) -> Result<(u64, bool), String> {
        let before = self.read;
        loop {
            let outcome = connection
                .read(self.stream, buffer)
                .map_err(|error| format!("reading failed at {}: {error}", self.read))?;
            if buffer.get(..outcome.n) != Some(pattern.at(self.read, outcome.n)) {
                return Err(format!("wrong bytes within {} of {}", outcome.n, self.read));
            }
            self.read += outcome.n as u64;
            if outcome.n == 0 || outcome.finished {
                return Ok((self.read - before, outcome.finished));
            }
        }
    }
}

impl Agent for CoreReceiver {
    fn attach(&mut self, port: PortId) {
        self.ports.attach(port);
        self.host.ports.push(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let now = arrival.now;
        self.ports.arrive(arrival.port, arrival.size);
        self.host.receive(arrival);
        self.drive(now, out);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.host.handle_timeout(now);
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        self.host.next_timer()
    }
}
