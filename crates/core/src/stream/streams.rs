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

/// Limits of this side. The first three are what the transport parameters announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Credit for the peer over all streams at first, bytes received and not read yet.
    pub max_data: u64,
    /// Credit for the peer on each stream at first, bytes received and not read yet.
    pub max_stream_data: u64,
    /// Largest factor, at least 1, by which these two and the decoder credit grow. They grow while the application
    /// reads more than a quarter of a stream's credit in a round trip. With the default, the credit of a stream grows
    /// to 32 MiB, which covers four round trips of a satellite link of 100 Mb/s and 600 ms.
    pub growth: u64,
    /// Streams that the peer may have open at a time.
    pub max_streams: u64,
    /// Bytes that the application may write ahead, on each stream. The default stays in a core's cache
    /// from the write to the copy into a symbol, and holds half a millisecond at 4 Gb/s.
    pub send_buffer: u64,
    /// Bytes of datagrams kept: for each class outgoing, and incoming.
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
    /// Most capacity, bytes, of the receive buffers of `count` streams together. Doubling needs
    /// twice what they hold; twice that lets buffers that are large for a while stay so.
    pub const fn most_room(&self, count: u64) -> u64 {
        let most = self.max_data.saturating_mul(self.growth);
        most.saturating_mul(4).saturating_add(count.saturating_mul(1024))
    }
}

/// Result of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Bytes copied. 0 without `finished` means that there is nothing to read for now.
    pub n: usize,
    /// The stream ends after these bytes. Reported once.
    pub finished: bool,
}

/// The streams and datagrams of one connection; see the module's documentation.
#[derive(Debug)]
pub struct Streams {
    pub(super) role: Role,
    pub(super) limits: StreamLimits,
    /// Boxed, since a map moves its entries as streams come and go.
    pub(super) streams: BTreeMap<StreamId, Box<Stream>>,
    /// Streams opened by this side so far, of each direction.
    opened: Opened,
    /// Streams that this side may open in all.
    pub(super) may_open: u64,
    /// Streams opened by the peer so far, of each direction: ids below are open or closed, never new.
    pub(super) peer_opened: Opened,
    /// Streams of the peer that are closed.
    pub(super) peer_closed: u64,
    /// The peer's credit for each new stream, bytes.
    pub(super) peer_stream_data: u64,
    /// Bytes put into symbols over all streams.
    pub(super) sent: u64,
    /// The peer's credit over all streams.
    pub(super) sent_limit: u64,
    /// Sum of the streams' highest offsets received.
    pub(super) received: u64,
    /// Of those, read or discarded.
    pub(super) consumed: u64,
    pub(super) growth: Growth,
    /// Pieces kept beyond holes, over all streams.
    pub(super) pieces: usize,
    /// Upper bound of the receive buffers' capacity, bytes. What buffers give back is subtracted only once the bound is
    /// reached.
    pub(super) room: u64,
    /// Bytes in send buffers, sendable or not.
    pub(super) unsent: u64,
    pub(super) classes: [ClassQueue; 3],
    /// Streams whose end a symbol carries, with the newest symbol of each space that carries bytes of them, until the
    /// peer has recovered that symbol.
    pub(super) ends: BTreeSet<(SymbolId, StreamId)>,
    /// Of each space: all symbols below have been recovered by the peer.
    pub(super) floors: [SymbolId; SymbolSpace::ALL.len()],
    pub(super) control: ControlQueue,
    /// Streams with events waiting, each once.
    pub(super) eventful: VecDeque<StreamId>,
    pub(super) notices: Notices,
    /// An open was refused, and the application has not been told since that it may open one.
    pub(super) wants_open: bool,
    /// A datagram was refused, and the application has not been told since that there is space.
    pub(super) wants_datagram: bool,
    pub(super) incoming: DatagramQueue,
    /// Datagrams dropped because a queue was full or a symbol too short.
    pub(super) datagrams_dropped: u64,
    pub(super) datagram_limit: usize,
}

/// Streams that one side has opened, of each direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opened([u64; 2]);

impl Opened {
    pub(super) const fn of(self, direction: Direction) -> u64 {
        self.0[direction as usize]
    }

    /// Counts one more stream, and returns its id.
    pub(super) const fn next(&mut self, opener: Role, direction: Direction) -> StreamId {
        let id = StreamId::new(opener, direction, self.of(direction));
        self.0[direction as usize] += 1;
        id
    }

    /// Streams of both directions.
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
    /// Whether the stream stands in the list of streams with events.
    pub(super) listed: bool,
    pub(super) due: DueSet,
}

impl Stream {
    /// Whether the stream has ended on both sides and has nothing to tell anyone.
    pub(super) fn is_over(&self) -> bool {
        self.send.done && self.receive.done && self.events.is_empty() && self.due.is_empty()
    }

    /// Adds an event to its set, and itself to the streams with events.
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
    /// No streams. The peer's limits are zero until [`set_peer_limits`](Self::set_peer_limits).
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

    /// The peer's transport parameters: credit over all streams, credit of each stream, and streams
    /// that this side may open. Limits only ever rise.
    pub fn set_peer_limits(&mut self, max_data: u64, max_stream_data: u64, max_streams: u64) {
        self.on_max_data(max_data);
        self.on_max_streams(max_streams);
        self.peer_stream_data = self.peer_stream_data.max(max_stream_data);
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.raise_stream_limit(id, max_stream_data);
        }
    }

    /// Opens a stream that both sides can write to; the bytes of this side are to be treated as `class`.
    pub fn open(&mut self, class: TrafficClass) -> Result<StreamId, StreamError> {
        self.open_in(Direction::Bidirectional, class)
    }

    /// Opens a stream that only this side can write to.
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

    /// Whether the peer allows a further stream.
    pub(super) const fn may_open(&self) -> bool {
        self.opened.total() < self.may_open
    }

    /// Whether this side has opened the stream `id`, which may be closed by now.
    pub(super) const fn has_opened(&self, id: StreamId) -> bool {
        id.ordinal() < self.opened.of(id.direction())
    }

    /// Sets a stream's priority among the streams of its class: data of streams of higher priority
    /// is sent first, streams of the same priority take turns. Every stream begins at 0.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), StreamError> {
        self.requeue(id, |send| send.priority = priority)
    }

    /// Changes what determines a stream's turn, and queues the stream anew.
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

    /// The class and the priority of what this side sends on a stream; `None` if there is no such stream.
    pub fn urgency(&self, id: StreamId) -> Option<(TrafficClass, i32)> {
        let stream = self.streams.get(&id)?;
        Some((stream.send.class, stream.send.priority))
    }

    /// Changes the class of a stream's bytes that are not in symbols yet. Streams that the peer opened begin as bulk.
    pub fn set_class(&mut self, id: StreamId, class: TrafficClass) -> Result<(), StreamError> {
        self.requeue(id, |send| send.class = class)
    }

    /// Takes as many of `data`'s bytes as the send buffer holds; returns how many. If not all,
    /// [`StreamEvent::Writable`](super::StreamEvent::Writable) follows once there is space.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        self.write_with(id, |send, capacity| send.write(data, capacity))
    }

    /// Zero-copy version of [`write`](Self::write): keeps a reference to the bytes until they are sent, unless they
    /// are few. The bytes taken are removed from the front of `chunk`.
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

    /// Ends a stream after the bytes written.
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

    /// Gives up sending: bytes that are not in symbols yet are dropped, and the peer is told `code`.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let stream = self.streams.get(&id).ok_or(StreamError::Unknown)?;
        if stream.send.reset.is_some() || stream.send.done {
            return Err(StreamError::Ended);
        }
        self.abort_sending(id, code);
        Ok(())
    }

    /// Gives up receiving: bytes not read yet and all that follow are dropped, and the peer is asked
    /// with `code` not to send more.
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

    /// Copies bytes that arrived in order into `buffer`; what was left in symbols is read from `symbols`.
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

    /// Bytes of a stream that can be read now; `None` if there is no such stream.
    pub fn readable(&self, id: StreamId) -> Option<u64> {
        self.streams.get(&id).map(|stream| stream.receive.readable())
    }

    /// Bytes that a stream's send buffer takes now; `None` if there is no such stream.
    pub fn writable(&self, id: StreamId) -> Option<u64> {
        let stream = self.streams.get(&id)?;
        let open = stream.send.is_open();
        Some(if open { stream.send.space(self.limits.send_buffer) } else { 0 })
    }

    /// Streams open or not yet retired.
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    /// Bytes written and not in symbols yet, whether or not there is credit for them; without datagrams.
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

    /// Ends sending with `code` now.
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

    /// Forgets a stream that has ended on both sides and has nothing to tell anyone.
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
