use anabranch_core::connection::{Connection, Event};
use anabranch_core::endpoint::{Endpoint, EndpointEvent, Handle};
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_types::Time;
use core::time::Duration;

use super::messages::Taken;
use super::progress::Received;
use super::stripes::{self, Chunk, Resequencer};
use super::{CHUNK, CoreConfig, Host, Pattern, RECEIVER_KEY};
use crate::endpoint::ports::Ports;
use crate::endpoint::{FlowFailure, Gauge, Watch};
use crate::engine::PortId;
use crate::engine::{Agent, Arrival, Outbox};

/// The receiving end of flows. It accepts their connections, reads data as soon as it arrives, and
/// checks every byte.
#[derive(Debug)]
pub struct CoreReceiver {
    host: Host,
    pattern: Pattern,
    connections: Vec<Incoming>,
    /// Puts the chunks of a stream that all connections carry together back into order.
    resequencer: Option<Resequencer>,
    /// The gauge of a connection to which nothing was delivered yet.
    pub(super) empty: Gauge,
    /// What is logged; `None` if nothing is.
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
    /// The chunk that is being read, if several connections carry one stream.
    chunk: Chunk,
    /// The number of a chunk that has been read but waits, because the resequencer has no room.
    waiting: Option<u64>,
}

impl CoreReceiver {
    /// A receiver whose random draws are substreams of `seed` named after `name`.
    pub fn new(config: &CoreConfig, seed: u64, name: &str) -> Self {
        CoreReceiver {
            host: Host::new(config, seed, name, RECEIVER_KEY),
            pattern: Pattern::new(),
            connections: Vec::new(),
            resequencer: config.stripe.map(|stripe| Resequencer::new(stripe.buffer)),
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

    /// The accepted connection that has the number `remote` at the sender.
    pub(super) fn incoming(&self, remote: Handle) -> Option<&Incoming> {
        self.connections.iter().find(|incoming| incoming.remote == remote.0)
    }

    pub(super) fn incoming_mut(&mut self, remote: Handle) -> Option<&mut Incoming> {
        self.connections.iter_mut().find(|incoming| incoming.remote == remote.0)
    }

    /// The connection that has the number `remote` at the sender; `None` once the endpoint has
    /// forgotten it.
    pub(super) fn connection(&mut self, remote: Handle) -> Option<&mut Connection> {
        let handle = self.incoming(remote)?.handle;
        self.host.endpoint.connection(handle)
    }

    /// Bytes read in order from all streams.
    pub fn delivered(&self) -> u64 {
        self.connections.iter().map(|incoming| incoming.gauge.delivered).sum()
    }

    /// The streams that were read to their end, and when. They are grouped by connection, and
    /// listed in order of completion within each.
    pub fn finished(&self) -> impl Iterator<Item = &(StreamId, Time)> {
        self.connections.iter().flat_map(|incoming| &incoming.finished)
    }

    /// The longest time without a delivery on a connection; the maximum over all connections.
    pub fn longest_gap(&self) -> Duration {
        let gaps = self.connections.iter().map(|incoming| incoming.gauge.longest_gap());
        gaps.max().unwrap_or_default()
    }

    /// Why the host failed, if it did. Failures of single connections are not included.
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
        self.drain_events(now);
        if let Err(failure) = self.read_chunks(now) {
            self.host.fail(failure);
            return;
        }
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

    /// Reads and delivers the chunks of a stream that all connections carry together, if there is one.
    ///
    /// # Errors
    /// When the chunks differ from what was sent, or cannot be read.
    fn read_chunks(&mut self, now: Time) -> Result<(), FlowFailure> {
        let Some(resequencer) = &mut self.resequencer else { return Ok(()) };
        loop {
            for (index, incoming) in self.connections.iter_mut().enumerate() {
                let take = |number| resequencer.take(number, index);
                let (endpoint, buffer) = (&mut self.host.endpoint, &mut self.buffer);
                incoming
                    .read_chunks(endpoint, &self.pattern, buffer, take)
                    .map_err(FlowFailure::Corrupt)?;
            }
            let mut delivered = false;
            while let Some(index) = resequencer.deliver() {
                delivered = true;
                if let Some(incoming) = self.connections.get_mut(index) {
                    incoming.gauge.deliver(now, stripes::PAYLOAD as u64);
                }
            }
            if !delivered {
                return Ok(());
            }
        }
    }

    fn drain_events(&mut self, now: Time) {
        while let Some(event) = self.host.endpoint.poll_event() {
            match event {
                EndpointEvent::Accepted(handle) => self.accept(now, handle),
                EndpointEvent::Connection(handle, event) => self.hear(handle, event),
                _ => {}
            }
        }
    }

    fn accept(&mut self, now: Time, handle: Handle) {
        let Some(connection) = self.host.endpoint.connection(handle) else { return };
        let mut gauge = self.empty.clone();
        // Gaps of the first connection count from the start of its flow; those of later ones of the same host from
        // their acceptance.
        if !self.connections.is_empty() {
            gauge.gap_from = gauge.gap_from.max(now);
        }
        self.connections.push(Incoming {
            handle,
            remote: connection.remote_id().0,
            reading: Vec::new(),
            finished: Vec::new(),
            messages: Taken::default(),
            gauge,
            failure: None,
            progress: self.watch.map(|watch| Box::new(Received::new(watch))),
        });
    }

    fn hear(&mut self, handle: Handle, event: Event) {
        let mut connections = self.connections.iter_mut();
        let Some(incoming) = connections.find(|incoming| incoming.handle == handle) else { return };
        match event {
            Event::Stream(StreamEvent::Opened(stream)) => {
                incoming.reading.push(Reading {
                    stream,
                    read: 0,
                    readable: true,
                    chunk: Chunk::default(),
                    waiting: None,
                });
            }
            Event::Stream(StreamEvent::Readable(stream)) => {
                let known = incoming.reading.iter_mut().find(|reading| reading.stream == stream);
                if let Some(reading) = known {
                    reading.readable = true;
                }
            }
            // A close is a failure only if a stream is unread. A connection without streams never
            // completed its handshake, and one whose streams were all read may end.
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
    /// When the data differs from what was sent, or cannot be read.
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

    /// Reads the chunks of the streams that have bytes to read or a chunk that waits; `take` returns
    /// whether there is room for the chunk with this number.
    fn read_chunks(
        &mut self,
        endpoint: &mut Endpoint,
        pattern: &Pattern,
        buffer: &mut [u8],
        mut take: impl FnMut(u64) -> bool,
    ) -> Result<(), String> {
        let Some(connection) = endpoint.connection(self.handle) else { return Ok(()) };
        for reading in self.reading.iter_mut().filter(|r| r.readable || r.waiting.is_some()) {
            reading.read_chunks(connection, pattern, buffer, &mut take)?;
        }
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
    /// Hands the numbers of the chunks that have arrived completely to `take`, until `take` has no
    /// room. The chunk that it refuses waits for the next call.
    fn read_chunks(
        &mut self,
        connection: &mut Connection,
        pattern: &Pattern,
        buffer: &mut [u8],
        take: &mut impl FnMut(u64) -> bool,
    ) -> Result<(), String> {
        self.readable = false;
        loop {
            let chunk = match self.waiting.take() {
                Some(number) => Some(number),
                None => self.chunk.read((&mut *connection, self.stream), pattern, buffer)?,
            };
            let Some(number) = chunk else { return Ok(()) };
            if !take(number) {
                self.waiting = Some(number);
                return Ok(());
            }
        }
    }

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
