use anabranch_core::connection::{Connection, Event};
use anabranch_core::endpoint::{EndpointEvent, Handle};
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_types::Time;

use super::messages::Taken;
use super::progress::Received;
use super::{CHUNK, CoreConfig, Host, Pattern, RECEIVER_KEY};
use crate::endpoint::ports::Ports;
use crate::endpoint::{FlowFailure, Gauge};
use crate::engine::PortId;
use crate::engine::{Agent, Arrival, Outbox};

/// The end of a flow that accepts the connection, reads at once, and checks every byte.
#[derive(Debug)]
pub struct CoreReceiver {
    host: Host,
    pattern: Pattern,
    handle: Option<Handle>,
    reading: Vec<Reading>,
    finished: Vec<(StreamId, Time)>,
    pub(super) messages: Taken,
    pub(super) ports: Ports,
    pub(super) gauge: Gauge,
    pub(super) progress: Option<Box<Received>>,
    buffer: Vec<u8>,
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
            handle: None,
            reading: Vec::new(),
            finished: Vec::new(),
            messages: Taken::default(),
            ports: Ports::default(),
            gauge: Gauge::default(),
            progress: None,
            buffer: vec![0; CHUNK],
        }
    }

    /// The same with gaps between deliveries measured from `start` on.
    #[must_use]
    pub fn with_gaps_from(mut self, start: Time) -> Self {
        self.gauge.gap_from = start;
        self
    }

    /// The connection, once it was accepted and until it is gone.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.host.endpoint.connection(self.handle?)
    }

    /// Bytes read in order, of all streams.
    pub fn delivered(&self) -> u64 {
        self.gauge.delivered
    }

    /// The streams that were read to their end, and when.
    pub fn finished(&self) -> &[(StreamId, Time)] {
        &self.finished
    }

    /// Why the flow does not go on, if it does not.
    pub fn failure(&self) -> Option<&FlowFailure> {
        self.host.failure.as_ref()
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if self.host.failure.is_some() {
            return;
        }
        self.host.transmit(now, out);
        self.take_news();
        self.read(now);
        self.host.transmit(now, out);
        self.note(now);
    }

    fn note(&mut self, now: Time) {
        if let Some(progress) = &mut self.progress
            && let Some(handle) = self.handle
            && let Some(connection) = self.host.endpoint.connection(handle)
        {
            progress.note(now, connection, &self.finished);
        }
    }

    fn take_news(&mut self) {
        while let Some(event) = self.host.endpoint.poll_event() {
            let EndpointEvent::Connection(handle, event) = event else {
                if let EndpointEvent::Accepted(handle) = event {
                    self.handle = Some(handle);
                }
                continue;
            };
            match event {
                Event::Stream(StreamEvent::Opened(stream)) => {
                    self.handle = Some(handle);
                    self.reading.push(Reading { stream, read: 0, readable: true });
                }
                Event::Stream(StreamEvent::Readable(stream)) => {
                    let known = self.reading.iter_mut().find(|reading| reading.stream == stream);
                    if let Some(reading) = known {
                        reading.readable = true;
                    }
                }
                // One that never got as far as streams is a handshake that came to nothing.
                Event::Closed(reason) if self.handle == Some(handle) => {
                    self.host.fail(FlowFailure::Closed(format!("{reason:?}")));
                }
                _ => {}
            }
        }
    }

    fn read(&mut self, now: Time) {
        let Some(handle) = self.handle else { return };
        let Some(connection) = self.host.endpoint.connection(handle) else { return };
        while let Some(len) = connection.recv_datagram(&mut self.buffer) {
            let message = self.buffer.get(..len).unwrap_or_default();
            if let Err(failure) = self.messages.take(now, message) {
                return self.host.fail(failure);
            }
        }
        let mut wrong = None;
        for reading in self.reading.iter_mut().filter(|reading| reading.readable) {
            reading.readable = false;
            match reading.read(connection, &self.pattern, &mut self.buffer) {
                Ok((bytes, finished)) => {
                    self.gauge.deliver(now, bytes);
                    if finished {
                        // The other direction carries nothing; ending it makes room for a stream.
                        let _ = connection.finish(reading.stream);
                        self.finished.push((reading.stream, now));
                        reading.read = u64::MAX;
                    }
                }
                Err(error) => wrong = Some(error),
            }
        }
        self.reading.retain(|reading| reading.read < u64::MAX);
        if let Some(wrong) = wrong {
            self.host.fail(FlowFailure::Corrupt(wrong));
        }
    }
}

impl Reading {
    /// Reads what there is: how many bytes, and whether that is the end.
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
