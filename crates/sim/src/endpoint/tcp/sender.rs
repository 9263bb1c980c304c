use core::time::Duration;
use std::sync::Arc;

use anabranch_policy::PolicyError;
use anabranch_tcp::{Flags, Sender, SenderStatistics, WireFormat};
use anabranch_types::{Rng, Time};

use super::connection::SendingEnd;
use super::{TcpProtocol, send};
use crate::endpoint::ports::Ports;
use crate::endpoint::table::Table;
use crate::endpoint::{Log, SendJitter, ShutWindow};
use crate::engine::{Agent, Arrival, Loss, Outbox, Payload, PortId};
use crate::link::DropCause;
use crate::traffic::{Messages, Source, Traffic, Transfer};

/// Bytes that an endless transfer writes at once, which is more than any run sends.
const ENDLESS: u64 = 1 << 60;

/// The sending end of a flow, with the application above it. It opens a connection for every
/// transfer, over all its ports if the protocol uses several paths.
#[derive(Debug)]
pub struct TcpSender {
    connections: Table<Connection>,
    ports: Ports,
    wire: WireFormat,
    /// Whether the application sends one transfer without end or pause.
    bulk: bool,
    messages: Option<Messages>,
    started: bool,
    jitter: Option<Box<SendJitter>>,
    notices: Vec<Notice>,
    pub(super) log: Option<Box<Log>>,
    protocol: Arc<TcpProtocol>,
    source: Source,
    /// Seed of the random numbers that connections use to detect shared bottlenecks.
    coins: u64,
    /// When each transfer was opened, by number.
    opened: Vec<Time>,
    /// Statistics of the complete connections, the bytes they carried, and their closed receive
    /// windows on each path.
    closed: SenderStatistics,
    closed_bytes: u64,
    closed_shut: Vec<ShutWindow>,
    finished: Option<Time>,
    failure: Option<PolicyError>,
}

/// A connection that is open.
#[derive(Debug)]
struct Connection {
    end: SendingEnd,
    /// Bytes still to be written; `None` for a transfer without end.
    left: Option<u64>,
    written: u64,
    logged: u64,
}

/// A notice of a random loss on its way to the sender. It arrives after a round trip, or with the
/// first acknowledgement that shows the gap, because this acknowledgement carries the notice
/// (Balakrishnan and Katz 1998).
#[derive(Clone, Copy, Debug)]
struct Notice {
    due: Time,
    /// Whether the lost segment was no retransmission, so that a SACK range above it shows the gap.
    first: bool,
    number: u32,
    path: usize,
    offset: u64,
}

impl TcpSender {
    /// An application of `traffic` over `protocol`. Its random draws are substreams of `seed` named
    /// after `name`.
    ///
    /// # Errors
    /// When a congestion controller or scheduler does not exist, or one of its options is wrong.
    pub fn new(
        protocol: &Arc<TcpProtocol>,
        traffic: Traffic,
        seed: u64,
        name: &str,
    ) -> Result<Self, PolicyError> {
        // Build one sender and discard it, so that an invalid policy is reported before the run.
        SendingEnd::new(protocol, protocol.path_controls.len().max(1))?;
        Ok(TcpSender {
            connections: Table::new(),
            ports: Ports::default(),
            wire: protocol.connection().wire,
            bulk: traffic == Traffic::Bulk,
            messages: match traffic {
                Traffic::Messages(messages) => Some(messages),
                _ => None,
            },
            started: false,
            jitter: SendJitter::new(protocol.send_jitter, seed, name).map(Box::new),
            notices: Vec::new(),
            log: None,
            protocol: Arc::clone(protocol),
            source: Source::new(traffic, seed, name),
            coins: Rng::substream(seed, &format!("{name}.coins")).next_u64(),
            opened: Vec::new(),
            closed: SenderStatistics::default(),
            closed_bytes: 0,
            closed_shut: Vec::new(),
            finished: None,
            failure: None,
        })
    }

    /// Counters over all connections so far.
    pub fn statistics(&self) -> SenderStatistics {
        let mut sum = self.closed;
        self.ends().for_each(|end| sum += end.statistics());
        sum
    }

    /// Bytes acknowledged in order, over all connections.
    pub fn acknowledged(&self) -> u64 {
        self.closed_bytes + self.ends().map(SendingEnd::acknowledged).sum::<u64>()
    }

    /// Totals of the receiver's closed windows on each path, over all connections; `None` where paths share a window.
    pub(super) fn shut_windows(&self, now: Time) -> Option<Vec<ShutWindow>> {
        if self.protocol.meta.is_some() {
            return None;
        }
        let mut sum = self.closed_shut.clone();
        self.ends().for_each(|end| add_shut(&mut sum, end, now));
        Some(sum)
    }

    /// The senders of the connections that are open, on one path or on all of them.
    pub fn senders(&self, path: Option<usize>) -> impl Iterator<Item = &Sender> {
        self.ends().flat_map(move |end| end.senders(path))
    }

    /// When each transfer was opened, by number.
    pub fn opened(&self) -> &[Time] {
        &self.opened
    }

    /// When the last byte of the application's data was acknowledged; `None` until then.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// The error of a connection that could not be built. This cannot happen for a protocol that
    /// [`new`](Self::new) accepted.
    pub fn failure(&self) -> Option<&PolicyError> {
        self.failure.as_ref()
    }

    /// The messages of the application, and how many it has offered so far; `None` if its traffic
    /// is not messages.
    pub(super) fn messages(&self) -> Option<(Messages, u64)> {
        self.messages.map(|messages| (messages, self.source.messages()))
    }

    /// Sets the interface of a path down or up. Nothing leaves or arrives while it is down. A
    /// multipath connection is told: its subflow on the path leaves, and a new subflow joins when
    /// the interface is up again. The caller must wake the agent afterwards.
    pub fn set_down(&mut self, now: Time, path: usize, down: bool) {
        self.ports.set_down(path, down);
        let (protocol, failure) = (&self.protocol, &mut self.failure);
        self.connections.for_each(|_, connection| {
            if down {
                connection.end.leave(now, path);
            } else if let Err(error) = connection.end.rejoin(path, protocol) {
                *failure = Some(error);
            }
        });
    }

    /// Makes a path of multipath connections a backup path, which is used only when no other path
    /// is usable, or a regular path again. The caller must wake the agent afterwards.
    pub fn set_backup(&mut self, path: usize, backup: bool) {
        if let Some(meta) = &mut Arc::make_mut(&mut self.protocol).meta {
            let bit = 1_u16.checked_shl(path as u32).unwrap_or(0);
            meta.backups = if backup { meta.backups | bit } else { meta.backups & !bit };
        }
        self.connections.for_each(|_, connection| connection.end.set_backup(path, backup));
    }

    /// Sets whether segments that leave from now on lose their multipath options; see
    /// [`TcpProtocol::set_stripped`].
    pub(super) fn set_stripped(&mut self, path: usize, strips: bool) {
        Arc::make_mut(&mut self.protocol).set_stripped(path, strips);
    }

    /// Stops the application at `stop`. Data written by then is still delivered.
    #[must_use]
    pub fn until(mut self, stop: Time) -> Self {
        if stop < Time::MAX {
            self.bulk = false;
            self.source = self.source.until(stop);
        }
        self
    }

    /// Payload of a full segment, bytes.
    pub(super) fn mss(&self) -> u64 {
        u64::from(self.protocol.connection().mss)
    }

    fn ends(&self) -> impl Iterator<Item = &SendingEnd> {
        self.connections.iter().map(|(_, connection)| &connection.end)
    }

    /// Opens a connection for every transfer that is due.
    fn open_due(&mut self, now: Time) {
        while let Some(transfer) = self.source.next_transfer() {
            self.open(now, transfer);
        }
    }

    fn open(&mut self, now: Time, transfer: Transfer) {
        match SendingEnd::new(&self.protocol, self.ports.len()) {
            Ok(mut end) => {
                end.toss_with(Rng::substream(self.coins, &transfer.number.to_string()));
                let gone = |path: &usize| self.ports.get(*path).is_none();
                (0..self.ports.len()).filter(gone).for_each(|path| end.leave(now, path));
                self.opened.push(transfer.opened);
                let left = transfer.bytes;
                let make = || Connection { end, left, written: 0, logged: 0 };
                self.connections.get_or_insert_with(transfer.number as u32, make);
            }
            Err(error) => self.failure = Some(error),
        }
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            return;
        }
        if self.bulk {
            return self.advance(now, out);
        }
        self.source.handle(now);
        loop {
            self.open_due(now);
            self.advance(now, out);
            // The end of one transfer may start the next.
            if !self.close(now) {
                return;
            }
        }
    }

    /// Writes the application's data, and sends the segments that may leave.
    fn advance(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.offer();
        if self.jitter.as_mut().is_none_or(|jitter| jitter.is_over(now)) {
            self.transmit(now, out);
        }
    }

    /// Writes as much of the application's data as the send buffers take.
    fn offer(&mut self) {
        let (bulk, protocol, source) = (self.bulk, &self.protocol, &mut self.source);
        self.connections.for_each(|_, connection| {
            match &mut connection.left {
                None if bulk => {
                    connection.end.write(ENDLESS);
                }
                Some(0) => {}
                Some(left) => {
                    *left -= connection.end.write(*left);
                    if *left == 0 {
                        connection.end.finish();
                    }
                }
                None if source.has_stopped() => {
                    connection.left = Some(0);
                    connection.end.finish();
                }
                None => {
                    // The application may stop at any time, so limit how far it writes ahead of the
                    // sender.
                    let mss = u64::from(protocol.connection().mss);
                    let ahead = connection.written.saturating_sub(connection.end.sent());
                    let room = (connection.end.room() + mss).saturating_sub(ahead);
                    let taken = connection.end.write(source.offered().min(room));
                    connection.written += taken;
                    source.take(taken);
                }
            }
        });
    }

    fn transmit(&mut self, now: Time, out: &mut Outbox<'_>) {
        let (ports, wire, log) = (&self.ports, &self.wire, &mut self.log);
        let protocol = &self.protocol;
        self.connections.for_each(|number, connection| {
            connection.end.transmit(now, |path, segment| {
                if let Some(port) = ports.get(path) {
                    send(out, port, number, wire, protocol.pass(path, segment));
                }
            });
            if let Some(log) = log {
                let sent = connection.end.sent();
                if sent > connection.logged {
                    connection.logged = sent;
                    log.sent.push((u64::from(number), sent, now));
                }
            }
        });
    }

    /// Closes the connections that are complete. Returns whether there were any.
    fn close(&mut self, now: Time) -> bool {
        let mut closed = false;
        while let Some(number) = self.complete() {
            if let Some(connection) = self.connections.remove(number) {
                self.closed += connection.end.statistics();
                self.closed_bytes += connection.end.acknowledged();
                if self.protocol.meta.is_none() {
                    add_shut(&mut self.closed_shut, &connection.end, now);
                }
            }
            self.source.complete(now);
            closed = true;
        }
        if closed && self.source.is_done() {
            self.finished = Some(now);
        }
        closed
    }

    /// The oldest connection that is complete.
    fn complete(&self) -> Option<u32> {
        let mut connections = self.connections.iter();
        let is_complete =
            |connection: &Connection| connection.left == Some(0) && connection.end.is_complete();
        connections.find(|(_, connection)| is_complete(connection)).map(|(number, _)| number)
    }

    fn hear_notices(&mut self, now: Time, with: impl Fn(&Notice) -> bool) {
        let connections = &mut self.connections;
        self.notices.retain(|notice| {
            let is_here = notice.due <= now || with(notice);
            if is_here && let Some(connection) = connections.get_mut(notice.number) {
                connection.end.handle_loss_notice(now, notice.path, notice.offset);
            }
            !is_here
        });
    }
}

/// Adds the totals of a connection's closed windows until `now`, path by path.
fn add_shut(sum: &mut Vec<ShutWindow>, end: &SendingEnd, now: Time) {
    let senders = end.senders(None);
    sum.resize(sum.len().max(senders.len()), ShutWindow::default());
    for (sum, sender) in sum.iter_mut().zip(senders) {
        let probes = sender.statistics().window_probes;
        *sum += ShutWindow { time: sender.persist_time(now), probes };
    }
}

impl Agent for TcpSender {
    fn attach(&mut self, port: PortId) {
        self.ports.attach(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let now = arrival.now;
        let Payload::Segment(segment) = arrival.payload else { return };
        let Some(path) = self.ports.path(arrival.port) else { return };
        if self.ports.get(path).is_none() {
            return;
        }
        let number = arrival.stream;
        if !self.notices.is_empty() {
            let top = segment.sack.iter(segment.ack).map(|(_, end)| end).max();
            let top = top.unwrap_or_default();
            self.hear_notices(now, |notice| {
                let is_its = notice.number == number && notice.path == path;
                is_its && notice.first && notice.offset < top
            });
        }
        if let Some(connection) = self.connections.get_mut(number) {
            connection.end.handle_segment(now, path, segment);
            self.drive(now, out);
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            self.started = true;
            self.source.start(now);
            if self.bulk {
                self.open_due(now);
            }
        }
        self.hear_notices(now, |_| false);
        self.connections.for_each(|_, connection| connection.end.handle_timeout(now));
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        let mut next = Time::MAX;
        let mut consider = |time: Option<Time>| next = next.min(time.unwrap_or(Time::MAX));
        if !self.bulk {
            consider(self.source.next_event());
        }
        consider(self.notices.iter().map(|notice| notice.due).min());
        consider(self.jitter.as_deref().and_then(SendJitter::until));
        self.connections.inspect(|connection| consider(connection.end.next_timeout()));
        (next < Time::MAX).then_some(next)
    }

    fn handle_loss(&mut self, loss: Loss<'_>, _out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = loss.payload
            && segment.len > 0
            && let Some(log) = &mut self.log
            && let Some(offset) = self.protocol.data_of(segment)
        {
            log.lost.push((u64::from(loss.stream), offset));
        }
        if let Payload::Segment(segment) = loss.payload
            && self.protocol.loss_notices
            && loss.cause == DropCause::Random
            && segment.len > 0
            && let Some(path) = self.ports.path(loss.port)
        {
            let connection = self.connections.get_mut(loss.stream);
            let rtt = connection.and_then(|connection| connection.end.smoothed_rtt(path));
            let due = (loss.sent + rtt.unwrap_or(Duration::ZERO)).max(loss.now);
            let (number, offset) = (loss.stream, segment.seq);
            let first = !segment.flags.has(Flags::RETRANSMISSION);
            self.notices.push(Notice { due, first, number, path, offset });
        }
    }
}
