//! All streams of one connection, and the application's operations on them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_policy::view::{SymbolId, SymbolSpace, TrafficClass};
use bytes::Bytes;

use super::control::{ControlQueue, DueSet};
use super::datagrams::DatagramQueue;
use super::egress::{ClassQueue, uncount};
use super::error::StreamError;
use super::events::{EventSet, Notices};
use super::growth::Growth;
use super::lent::HeldSymbols;
use super::receive::ReceiveSide;
use super::send::SendSide;
use crate::wire::control::MAX_STREAM_COUNT;
use crate::wire::{Direction, Role, StreamId};

/// Limits of this side. The transport parameters announce `max_data`, `max_stream_data` and
/// `max_streams`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Initial credit of the peer over all streams, in bytes received and not read yet.
    pub max_data: u64,
    /// Initial credit of the peer on each stream, in bytes received and not read yet.
    pub max_stream_data: u64,
    /// Largest factor, at least 1, by which these two credits and the decoder credit grow. They
    /// grow while the application reads more than a quarter of a stream's credit per round trip.
    /// With the defaults, the credit of a stream grows to 32 MiB, which covers four round trips of
    /// a satellite link of 100 Mb/s and 600 ms.
    pub growth: u64,
    /// Most streams that the peer may have open at a time.
    pub max_streams: u64,
    /// Most bytes that the application may write ahead on each stream. The default fits into a
    /// core's cache, so that data is still cached when it is copied into a symbol, and holds half a
    /// millisecond at 4 Gb/s.
    pub send_buffer: u64,
    /// Size in bytes of each datagram queue: one send queue for each class, and one receive queue.
    pub datagram_buffer: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        StreamLimits {
            max_data: 16 << 20,
            max_stream_data: 8 << 20,
            growth: 4,
            max_streams: 100,
            send_buffer: 256 << 10,
            datagram_buffer: 256 << 10,
        }
    }
}

impl StreamLimits {
    /// Largest total capacity, bytes, of the receive buffers of `count` streams. Buffers that grow
    /// by doubling need up to twice their content; another factor of two avoids frequent changes of
    /// size.
    pub const fn most_room(&self, count: u64) -> u64 {
        let most = self.max_data.saturating_mul(self.growth);
        most.saturating_mul(4).saturating_add(count.saturating_mul(1024))
    }
}

/// Result of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Number of bytes copied. 0 without `finished` means that there is nothing to read at present.
    pub n: usize,
    /// Whether the stream ends after these bytes. Reported once.
    pub finished: bool,
}

/// The streams and datagrams of one connection.
#[derive(Debug)]
pub struct Streams {
    pub(super) role: Role,
    pub(super) limits: StreamLimits,
    /// Boxed because the map moves its entries when streams are added or removed.
    pub(super) streams: BTreeMap<StreamId, Box<Stream>>,
    /// Number of streams that this side has opened, by direction.
    opened: Opened,
    /// Total number of streams that this side may open.
    pub(super) may_open: u64,
    /// Number of streams that the peer has opened, by direction. Streams with smaller ordinals are
    /// open or closed, never new.
    pub(super) peer_opened: Opened,
    /// Number of the peer's streams that are closed.
    pub(super) peer_closed: u64,
    /// The peer's credit for each new stream, bytes.
    pub(super) peer_stream_data: u64,
    /// Bytes of all streams that were put into symbols.
    pub(super) sent: u64,
    /// The peer's credit over all streams.
    pub(super) sent_limit: u64,
    /// Sum of the streams' highest offsets received.
    pub(super) received: u64,
    /// Bytes of `received` that were read or discarded.
    pub(super) consumed: u64,
    pub(super) growth: Growth,
    /// Number of pieces kept beyond gaps, over all streams.
    pub(super) pieces: usize,
    /// Upper bound of the receive buffers' total capacity, bytes. It is recomputed only when it
    /// exceeds the limit.
    pub(super) room: u64,
    /// Bytes in send buffers, including those beyond the credit.
    pub(super) unsent: u64,
    pub(super) classes: [ClassQueue; 3],
    /// Streams whose end is in a symbol. For each space there is an entry with the newest symbol
    /// that carries bytes of the stream, until the peer has recovered this symbol.
    pub(super) ends: BTreeSet<(SymbolId, StreamId)>,
    /// For each space, the peer has recovered all symbols below this one.
    pub(super) floors: [SymbolId; SymbolSpace::ALL.len()],
    pub(super) control: ControlQueue,
    /// Streams with waiting events, each once.
    pub(super) eventful: VecDeque<StreamId>,
    pub(super) notices: Notices,
    /// Whether an open was refused and the application has not been notified since that it may open
    /// a stream.
    pub(super) wants_open: bool,
    /// Whether a datagram was refused and the application has not been notified since that there is
    /// space.
    pub(super) wants_datagram: bool,
    pub(super) incoming: DatagramQueue,
    /// Number of datagrams dropped because a queue was full or the symbols were too short.
    pub(super) datagrams_dropped: u64,
    pub(super) datagram_limit: usize,
}

/// Number of streams that one side has opened, by direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opened([u64; 2]);

impl Opened {
    pub(super) const fn of(self, direction: Direction) -> u64 {
        self.0[direction as usize]
    }

    /// Counts one more stream and returns its id.
    pub(super) const fn next(&mut self, opener: Role, direction: Direction) -> StreamId {
        let id = StreamId::new(opener, direction, self.of(direction));
        self.0[direction as usize] += 1;
        id
    }

    /// Number of streams of both directions.
    pub(super) const fn total(self) -> u64 {
        self.0[0] + self.0[1]
    }
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) send: SendSide,
    pub(super) receive: ReceiveSide,
    pub(super) events: EventSet,
    /// Whether the stream is in the list of streams with events.
    pub(super) listed: bool,
    pub(super) due: DueSet,
}

impl Stream {
    /// Whether the stream has ended in both directions and has no waiting events or control frames.
    pub(super) fn is_over(&self) -> bool {
        self.send.done && self.receive.done && self.events.is_empty() && self.due.is_empty()
    }

    /// Adds an event to the stream's set, and the stream to the list of streams with events.
    pub(super) fn notify(
        &mut self,
        id: StreamId,
        kind: EventSet,
        eventful: &mut VecDeque<StreamId>,
    ) {
        self.events.add(kind);
        if !core::mem::replace(&mut self.listed, true) {
            eventful.push_back(id);
        }
    }
}

impl Streams {
    /// Creates the state without streams. The peer's limits are 0 until
    /// [`set_peer_limits`](Self::set_peer_limits) is called.
    pub fn new(role: Role, limits: StreamLimits) -> Self {
        let limits =
            StreamLimits { max_streams: limits.max_streams.min(MAX_STREAM_COUNT), ..limits };
        let class = || ClassQueue::new(limits.datagram_buffer);
        Streams {
            role,
            limits,
            streams: BTreeMap::new(),
            opened: Opened::default(),
            may_open: 0,
            peer_opened: Opened::default(),
            peer_closed: 0,
            peer_stream_data: 0,
            sent: 0,
            sent_limit: 0,
            received: 0,
            consumed: 0,
            growth: Growth::new(limits.growth),
            pieces: 0,
            room: 0,
            unsent: 0,
            classes: [class(), class(), class()],
            ends: BTreeSet::new(),
            floors: SymbolSpace::ALL.map(|space| space.symbol(0)),
            control: ControlQueue::new(&limits),
            eventful: VecDeque::new(),
            notices: Notices::default(),
            wants_open: false,
            wants_datagram: false,
            incoming: DatagramQueue::new(limits.datagram_buffer),
            datagrams_dropped: 0,
            datagram_limit: 1024,
        }
    }

    /// Applies the peer's transport parameters: the credit over all streams, the credit of each
    /// stream, and the number of streams that this side may open. Limits are only raised, never
    /// lowered.
    pub fn set_peer_limits(&mut self, max_data: u64, max_stream_data: u64, max_streams: u64) {
        self.on_max_data(max_data);
        self.on_max_streams(max_streams);
        self.peer_stream_data = self.peer_stream_data.max(max_stream_data);
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.raise_stream_limit(id, max_stream_data);
        }
    }

    /// Opens a stream to which both sides can write. The bytes of this side belong to `class`.
    pub fn open(&mut self, class: TrafficClass) -> Result<StreamId, StreamError> {
        self.open_in(Direction::Bidirectional, class)
    }

    /// Opens a stream to which only this side can write.
    pub fn open_uni(&mut self, class: TrafficClass) -> Result<StreamId, StreamError> {
        self.open_in(Direction::Unidirectional, class)
    }

    fn open_in(
        &mut self,
        direction: Direction,
        class: TrafficClass,
    ) -> Result<StreamId, StreamError> {
        if !self.may_open() {
            self.wants_open = true;
            return Err(StreamError::Limit);
        }
        let id = self.opened.next(self.role, direction);
        self.insert(id, class);
        Ok(id)
    }

    /// Whether the peer allows another stream.
    pub(super) const fn may_open(&self) -> bool {
        self.opened.total() < self.may_open
    }

    /// Whether this side has opened stream `id`. The stream may be closed by now.
    pub(super) const fn has_opened(&self, id: StreamId) -> bool {
        id.ordinal() < self.opened.of(id.direction())
    }

    /// Sets a stream's priority among the streams of its class. Data of streams of higher priority
    /// is sent first; streams of the same priority take turns. The initial priority is 0.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), StreamError> {
        self.requeue(id, |send| send.priority = priority)
    }

    /// Applies a change that affects the order of turns, and queues the stream again.
    fn requeue(
        &mut self,
        id: StreamId,
        change: impl FnOnce(&mut SendSide),
    ) -> Result<(), StreamError> {
        self.dequeue(id);
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown)?;
        change(&mut stream.send);
        self.recount(id);
        Ok(())
    }

    /// The class and the priority of this side's data on a stream; `None` if there is no such
    /// stream.
    pub fn urgency(&self, id: StreamId) -> Option<(TrafficClass, i32)> {
        let stream = self.streams.get(&id)?;
        Some((stream.send.class, stream.send.priority))
    }

    /// Changes the class of a stream's bytes that are not in symbols yet. The initial class of
    /// streams that the peer opens is bulk.
    pub fn set_class(&mut self, id: StreamId, class: TrafficClass) -> Result<(), StreamError> {
        self.requeue(id, |send| send.class = class)
    }

    /// Accepts as many bytes of `data` as fit into the send buffer. Returns their number. If not
    /// all fit, [`StreamEvent::Writable`](super::StreamEvent::Writable) follows once there is
    /// space.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        self.write_with(id, |send, capacity| send.write(data, capacity))
    }

    /// Zero-copy version of [`write`](Self::write): the bytes are kept by reference until they are
    /// sent, but short pieces are copied. The accepted bytes are removed from the front of `chunk`.
    pub fn write_chunk(&mut self, id: StreamId, chunk: &mut Bytes) -> Result<usize, StreamError> {
        self.write_with(id, |send, capacity| send.write_chunk(chunk, capacity))
    }

    fn write_with(
        &mut self,
        id: StreamId,
        write: impl FnOnce(&mut SendSide, u64) -> usize,
    ) -> Result<usize, StreamError> {
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown)?;
        if let Some(code) = stream.send.stopped {
            return Err(StreamError::Stopped(code));
        }
        if !stream.send.is_open() {
            return Err(StreamError::Ended);
        }
        stream.events.remove(EventSet::WRITABLE);
        let taken = write(&mut stream.send, self.limits.send_buffer);
        self.unsent += taken as u64;
        self.recount(id);
        Ok(taken)
    }

    /// Ends a stream after the bytes written so far.
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown)?;
        if let Some(code) = stream.send.stopped {
            return Err(StreamError::Stopped(code));
        }
        if !stream.send.is_open() {
            return Err(StreamError::Ended);
        }
        stream.send.finish();
        self.recount(id);
        Ok(())
    }

    /// Resets the send side of a stream: bytes that are not in symbols yet are dropped, and `code`
    /// is sent to the peer.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let stream = self.streams.get(&id).ok_or(StreamError::Unknown)?;
        if stream.send.reset.is_some() || stream.send.done {
            return Err(StreamError::Ended);
        }
        self.abort_sending(id, code);
        Ok(())
    }

    /// Stops receiving on a stream: unread and later bytes are dropped, and the peer is asked with
    /// `code` to stop sending.
    pub fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown)?;
        if stream.receive.discards() {
            return Err(StreamError::Ended);
        }
        self.pieces -= stream.receive.pieces();
        self.consumed += stream.receive.discard();
        stream.receive.stopped = Some(code);
        stream.events.remove(EventSet::READABLE);
        if stream.receive.final_size.is_some() {
            stream.receive.done = true;
        } else {
            self.control.add(id, stream, DueSet::STOP_SENDING);
        }
        self.refresh_max_data();
        self.retire(id);
        Ok(())
    }

    /// Copies bytes that can be read in order into `buffer`. Pieces that were left in symbols are
    /// read from `symbols`.
    pub fn read(
        &mut self,
        id: StreamId,
        buffer: &mut [u8],
        symbols: &mut impl HeldSymbols,
    ) -> Result<ReadOutcome, StreamError> {
        let stream = self.streams.get_mut(&id).ok_or(StreamError::Unknown)?;
        if let Some(code) = stream.receive.reset {
            return Err(StreamError::Reset(code));
        }
        if stream.receive.discards() {
            return Err(StreamError::Ended);
        }
        let n = stream.receive.take(buffer, symbols);
        let finished = stream.receive.done;
        if stream.receive.readable() == 0 {
            stream.events.remove(EventSet::READABLE);
        }
        self.consumed += n as u64;
        self.refresh_max_stream_data(id);
        self.refresh_max_data();
        if finished {
            self.retire(id);
        }
        Ok(ReadOutcome { n, finished })
    }

    /// Number of bytes of a stream that can be read now; `None` if there is no such stream.
    pub fn readable(&self, id: StreamId) -> Option<u64> {
        self.streams.get(&id).map(|stream| stream.receive.readable())
    }

    /// Number of bytes that a stream's send buffer accepts now; `None` if there is no such stream.
    pub fn writable(&self, id: StreamId) -> Option<u64> {
        let stream = self.streams.get(&id)?;
        let open = stream.send.is_open();
        Some(if open { stream.send.space(self.limits.send_buffer) } else { 0 })
    }

    /// Number of streams that are open or not yet removed.
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    /// Bytes of streams that were written and are not in symbols yet, including those beyond the
    /// credit. Datagrams do not count.
    pub const fn unsent(&self) -> u64 {
        self.unsent
    }

    pub(super) fn insert(&mut self, id: StreamId, class: TrafficClass) {
        let mut stream = Stream {
            send: SendSide::new(class, self.peer_stream_data),
            receive: ReceiveSide::new(self.limits.max_stream_data),
            events: EventSet::default(),
            listed: false,
            due: DueSet::default(),
        };
        if !id.carries_from(self.role) {
            stream.send.end_unused();
        }
        if !id.carries_from(self.role.peer()) {
            stream.receive.end_unused();
        }
        self.streams.insert(id, Box::new(stream));
    }

    /// Resets the send side of a stream with `code`.
    pub(super) fn abort_sending(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.send.reset = Some(code);
        self.unsent -= stream.send.discard();
        self.control.add(id, stream, DueSet::RESET);
        self.ends.retain(|(_, stream)| *stream != id);
        self.classes.iter_mut().for_each(|queue| queue.returned.forget(id));
        self.recount(id);
    }

    /// Adds an event to a stream's set.
    pub(super) fn notify(&mut self, id: StreamId, kind: EventSet) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.notify(id, kind, &mut self.eventful);
        }
    }

    /// Removes a stream that has ended in both directions and has no waiting events or control
    /// frames.
    pub(super) fn retire(&mut self, id: StreamId) {
        let Entry::Occupied(mut stream) = self.streams.entry(id) else { return };
        if !stream.get().is_over() {
            return;
        }
        uncount(&mut self.classes, id, &mut stream.get_mut().send);
        stream.remove();
        if id.opener() != self.role {
            self.peer_closed += 1;
            self.refresh_max_streams();
        }
    }
}
