//! The ends of a flow between core endpoints, with what is measured at them.

use anabranch_core::connection::Connection;
use anabranch_core::wire::{Role, StreamId};
use anabranch_types::Time;

use super::gauge::{Gauge, Log};
use crate::endpoint::{CoreReceiver, CoreSender};
use crate::engine::{Agent, Arrival, Loss, Outbox, PortId};

/// A sending endpoint; its streams are its transfers, in their order.
#[derive(Debug)]
pub(super) struct CoreSource {
    pub sender: CoreSender,
    /// Bytes of a packet's payload, about.
    pub packet: u64,
    pub log: Option<Log>,
    /// How far the streams from `first` on had come when they were last looked at.
    logged: Vec<u64>,
    first: u64,
}

/// A receiving endpoint.
#[derive(Debug)]
pub(super) struct CoreSink {
    pub receiver: CoreReceiver,
    pub gauge: Gauge,
    pub log: Option<Log>,
    /// Bytes of the slices that are logged.
    pub slice: u64,
    /// The streams from `first` on, if they are logged.
    streams: Vec<Stream>,
    first: u64,
}

/// What has been logged of a stream.
#[derive(Clone, Debug, Default)]
struct Stream {
    read: u64,
    /// Slices from `first_slice` on: whether they are whole.
    whole: Vec<bool>,
    first_slice: u64,
    done: bool,
}

impl CoreSource {
    /// `packet` are the bytes of a packet's payload by which its delays are counted.
    pub(super) fn new(sender: CoreSender, packet: u64) -> Self {
        CoreSource { sender, packet, log: None, logged: Vec::new(), first: 0 }
    }

    fn note(&mut self, now: Time) {
        let Some(log) = &mut self.log else { return };
        let opened = self.sender.transfers().len() as u64;
        self.logged.resize((opened - self.first.min(opened)) as usize, 0);
        let first = self.first;
        let Some(connection) = self.sender.connection() else { return };
        for (number, logged) in (first..).zip(&mut self.logged) {
            let Some(progress) = connection.stream_progress(stream(number)) else { continue };
            if progress.sent > *logged {
                *logged = progress.sent;
                log.sent.push((number, progress.sent, now));
            }
        }
        while self.logged.first().is_some_and(|logged| *logged > 0)
            && self.logged.len() > 1
            && connection.stream_progress(stream(self.first)).is_none()
        {
            self.logged.remove(0);
            self.first += 1;
        }
    }
}

impl CoreSink {
    pub(super) fn new(receiver: CoreReceiver, gap_from: Time) -> Self {
        CoreSink {
            receiver,
            gauge: Gauge::new(gap_from),
            log: None,
            slice: 1,
            streams: Vec::new(),
            first: 0,
        }
    }

    fn note(&mut self, now: Time) {
        self.gauge.deliver(now, self.receiver.delivered());
        let Some(log) = &mut self.log else { return };
        let finished: Vec<u64> = self
            .receiver
            .finished()
            .iter()
            .map(|(stream, _)| stream.ordinal())
            .filter(|number| *number >= self.first)
            .collect();
        let (slice, first) = (self.slice, self.first);
        let Some(connection) = self.receiver.connection() else { return };
        let connection = &*connection;
        // Streams come into being in their order, but the first packet of one may overtake another.
        let newest = (first..first + self.streams.len() as u64 + 64)
            .rev()
            .find(|number| connection.stream_progress(stream(*number)).is_some());
        let known = newest.map_or(0, |newest| (newest + 1 - first) as usize);
        self.streams.resize(self.streams.len().max(known), Stream::default());
        for (number, entry) in (first..).zip(&mut self.streams) {
            entry.note(now, number, connection, slice, log, finished.contains(&number));
        }
        while self.streams.first().is_some_and(|stream| stream.done) {
            self.streams.remove(0);
            self.first += 1;
        }
    }
}

impl Stream {
    fn note(
        &mut self,
        now: Time,
        number: u64,
        connection: &Connection,
        slice: u64,
        log: &mut Log,
        finished: bool,
    ) {
        if self.done {
            return;
        }
        let progress = connection.stream_progress(stream(number)).unwrap_or_default();
        let read = progress.read.max(if finished { u64::MAX } else { 0 });
        if read > self.read {
            self.read = read;
            log.delivered.push((number, read, now));
        }
        self.done = finished;
        // A window of symbols cannot be wider than what is looked at.
        let behind = progress.arrived.max(progress.read) / slice;
        let ahead = behind.max(self.first_slice) + LOOK_AHEAD / slice + 2;
        self.whole.resize(usize::try_from(ahead - self.first_slice).unwrap_or(0), false);
        for (at, whole) in (self.first_slice..).zip(&mut self.whole) {
            let range = at * slice..(at + 1) * slice;
            if !*whole && connection.stream_holds(stream(number), range) {
                *whole = true;
                log.whole.push((number, at, now));
            }
        }
        let done = self.whole.iter().take_while(|whole| **whole).count();
        self.whole.drain(..done);
        self.first_slice += done as u64;
    }
}

/// How far beyond the first hole slices may become whole, bytes.
const LOOK_AHEAD: u64 = 4 << 20;

fn stream(number: u64) -> StreamId {
    StreamId::bidirectional(Role::Initiator, number)
}

impl Agent for CoreSource {
    fn attach(&mut self, port: PortId) {
        self.sender.attach(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let now = arrival.now;
        self.sender.handle_packet(arrival, out);
        self.note(now);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.sender.handle_timer(now, out);
        self.note(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.sender.next_timer()
    }

    fn handle_loss(&mut self, loss: Loss<'_>, out: &mut Outbox<'_>) {
        self.sender.handle_loss(loss, out);
    }
}

impl Agent for CoreSink {
    fn attach(&mut self, port: PortId) {
        self.gauge.attach(port);
        self.receiver.attach(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let now = arrival.now;
        self.gauge.arrive(arrival.port, arrival.size);
        self.receiver.handle_packet(arrival, out);
        self.note(now);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.receiver.handle_timer(now, out);
        self.note(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.receiver.next_timer()
    }
}
