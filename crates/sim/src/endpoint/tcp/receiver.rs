use std::sync::Arc;

use anabranch_tcp::WireFormat;
use anabranch_types::{Ecn, Time};

use super::connection::ReceivingEnd;
use super::slices::Slices;
use super::{TcpProtocol, send};
use crate::endpoint::ports::Ports;
use crate::endpoint::table::Table;
use crate::endpoint::{Gauge, Log};
use crate::engine::{Agent, Arrival, Outbox, Payload, PortId};

/// Number of complete connections that are kept, because their last segments may be retransmitted.
const KEPT: usize = 1024;

/// The receiving end of a flow. It accepts every connection, reads data as soon as it arrives, and
/// measures deliveries.
#[derive(Debug)]
pub struct TcpReceiver {
    connections: Table<Connection>,
    pub(super) ports: Ports,
    wire: WireFormat,
    pub(super) gauge: Gauge,
    /// Numbers of the connections whose timer may be set.
    waiting: Vec<u32>,
    log: Option<(Log, u64)>,
    protocol: Arc<TcpProtocol>,
    /// Bytes of a transfer; 0 for a transfer without end.
    transfer: u64,
    /// Bytes of a message, and when each message was delivered.
    messages: Option<(u64, Vec<Time>)>,
    /// Numbers of the complete transfers, and when each was completed, in the order of completion.
    completed: Vec<(u32, Time)>,
    /// Out-of-order arrivals on closed connections, and the bytes that these connections received
    /// twice.
    closed_out_of_order: u64,
    closed_duplicate_bytes: u64,
}

/// One connection.
#[derive(Debug)]
struct Connection {
    end: ReceivingEnd,
    delivered: u64,
    /// Whether the connection is in `waiting`.
    waits: bool,
    slices: Option<Box<Slices>>,
}

impl TcpReceiver {
    /// The receiving end of connections of this protocol.
    pub fn new(protocol: &Arc<TcpProtocol>) -> Self {
        TcpReceiver {
            connections: Table::new(),
            ports: Ports::default(),
            wire: protocol.connection().wire,
            gauge: Gauge::default(),
            waiting: Vec::new(),
            log: None,
            protocol: Arc::clone(protocol),
            transfer: 0,
            messages: None,
            completed: Vec::new(),
            closed_out_of_order: 0,
            closed_duplicate_bytes: 0,
        }
    }

    /// Expects transfers of `bytes` each. A transfer is complete when this many bytes are
    /// delivered.
    #[must_use]
    pub fn with_transfers_of(mut self, bytes: u64) -> Self {
        self.transfer = bytes;
        self
    }

    /// Measures gaps between deliveries from `start` on.
    #[must_use]
    pub fn with_gaps_from(mut self, start: Time) -> Self {
        self.gauge.gap_from = start;
        self
    }

    /// Sets whether a middlebox strips multipath options on a path; see
    /// [`TcpProtocol::set_stripped`].
    pub(super) fn set_stripped(&mut self, path: usize, strips: bool) {
        Arc::make_mut(&mut self.protocol).set_stripped(path, strips);
    }

    /// Bytes delivered in order, over all connections.
    pub fn delivered(&self) -> u64 {
        self.gauge.delivered
    }

    /// The numbers of the complete transfers and when each was completed, in order of completion.
    pub fn completed(&self) -> &[(u32, Time)] {
        &self.completed
    }

    /// Segments that arrived beyond the next expected byte, over all connections.
    pub fn out_of_order(&self) -> u64 {
        let open = self.connections.iter().map(|(_, connection)| connection.end.out_of_order());
        self.closed_out_of_order + open.sum::<u64>()
    }

    /// Bytes of data that arrived more than once, over all connections.
    pub fn duplicate_bytes(&self) -> u64 {
        let open = self.connections.iter().map(|(_, connection)| connection.end.duplicate_bytes());
        self.closed_duplicate_bytes + open.sum::<u64>()
    }

    /// When each message was delivered.
    pub(super) fn message_times(&self) -> impl Iterator<Item = &Time> {
        self.messages.iter().flat_map(|(_, times)| times)
    }

    /// Records when each message of `size` bytes is delivered, for messages that follow each other
    /// in one stream.
    #[must_use]
    pub fn with_messages_of(mut self, size: u32) -> Self {
        self.messages = Some((u64::from(size).max(1), Vec::new()));
        self
    }

    pub(super) fn start_log(&mut self, slice: u64) {
        self.log = Some((Log::default(), slice));
    }

    pub(super) fn take_log(&mut self) -> Option<Log> {
        self.log.as_mut().map(|(log, _)| core::mem::take(log))
    }

    /// Makes a connection, unless its number has been used.
    #[cold]
    fn accept(&mut self, number: u32) {
        let (protocol, paths) = (&self.protocol, self.ports.len());
        self.connections.get_or_insert_with(number, || Connection {
            end: ReceivingEnd::new(protocol, paths),
            delivered: 0,
            waits: false,
            slices: None,
        });
    }

    #[inline]
    fn after(&mut self, now: Time, number: u32, out: &mut Outbox<'_>) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        let (ports, wire, protocol) = (&self.ports, &self.wire, &self.protocol);
        connection.end.transmit(now, |path, segment| {
            if let Some(port) = ports.get(path) {
                send(out, port, number, wire, protocol.pass(path, segment));
            }
        });
        if !connection.waits && connection.end.next_timeout().is_some() {
            connection.waits = true;
            self.waiting.push(number);
        }
        let delivered = connection.end.delivered();
        let new = delivered - connection.delivered;
        if new == 0 {
            return;
        }
        connection.delivered = delivered;
        self.gauge.deliver(now, new);
        if let Some((log, _)) = &mut self.log {
            log.delivered.push((u64::from(number), delivered, now));
        }
        if let Some((size, times)) = &mut self.messages {
            let complete = usize::try_from(delivered / *size).unwrap_or(usize::MAX);
            times.resize(times.len().max(complete), now);
        }
        if let Some(slices) = &mut connection.slices {
            slices.forget_below(delivered);
        }
        if self.transfer > 0 && delivered >= self.transfer {
            self.complete(now, number);
        }
    }

    fn complete(&mut self, now: Time, number: u32) {
        self.completed.push((number, now));
        let old = self.completed.len().checked_sub(KEPT + 1).and_then(|at| self.completed.get(at));
        if let Some(gone) = old.and_then(|(old, _)| self.connections.remove(*old)) {
            self.closed_out_of_order += gone.end.out_of_order();
            self.closed_duplicate_bytes += gone.end.duplicate_bytes();
        }
    }
}

/// Logs the slices of the stream that a segment completes.
fn log_arrival(
    (log, slice): &mut (Log, u64),
    connection: &mut Connection,
    number: u32,
    now: Time,
    (start, end): (u64, u64),
) {
    let slices = connection.slices.get_or_insert_with(|| Box::new(Slices::new(*slice)));
    let whole = |slice| log.whole.push((u64::from(number), slice, now));
    slices.insert(start.max(connection.delivered), end, whole);
}

impl Agent for TcpReceiver {
    fn attach(&mut self, port: PortId) {
        self.ports.attach(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let (now, number) = (arrival.now, arrival.stream);
        let Some(path) = self.ports.arrive(arrival.port, arrival.size) else { return };
        let Payload::Segment(segment) = arrival.payload else { return };
        if self.connections.get_mut(number).is_none() {
            self.accept(number);
        }
        let Some(connection) = self.connections.get_mut(number) else { return };
        if let Some(log) = &mut self.log
            && let Some(data) = connection.end.data_of(path, segment)
        {
            log_arrival(log, connection, number, now, data);
        }
        connection.end.handle_segment(now, path, segment, arrival.ecn == Ecn::Ce);
        self.after(now, number, out);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        for at in 0..self.waiting.len() {
            let Some(number) = self.waiting.get(at).copied() else { break };
            if let Some(connection) = self.connections.get_mut(number) {
                connection.end.handle_timeout(now);
                self.after(now, number, out);
            }
        }
        let connections = &mut self.connections;
        self.waiting.retain(|number| {
            connections.get_mut(*number).is_some_and(|connection| {
                connection.waits = connection.end.next_timeout().is_some();
                connection.waits
            })
        });
    }

    fn next_timer(&self) -> Option<Time> {
        let connections = self.waiting.iter().filter_map(|number| self.connections.get(*number));
        connections.filter_map(|connection| connection.end.next_timeout()).min()
    }
}
