//! Moves bytes from send buffers into symbols.

use std::collections::VecDeque;

use anabranch_policy::view::{Blocked, SymbolId, TrafficClass};

use super::datagrams::DatagramQueue;
use super::events::EventSet;
use super::returned::Returned;
use super::send::SendSide;
use super::streams::Streams;
use crate::wire::symbol::{datagram_len, stream_data_room};
use crate::wire::{StreamId, SymbolWriter};

/// Least length, in bytes, of a piece of split stream data, unless the symbol is otherwise empty.
const MIN_PIECE: u64 = 16;

/// Data that could be put into symbols now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The most urgent class that has something to send within the current credit.
    pub class: Option<TrafficClass>,
    /// Bytes of this class that can be sent. A stream end without data counts as 1 byte; a datagram
    /// counts its length plus 16.
    pub bytes: u64,
    /// Bytes of less urgent classes that can be sent afterwards.
    pub beyond: u64,
    /// Whether the application has more to write in this class than the send buffers hold.
    pub more: bool,
    /// The reason, if nothing can be sent.
    pub blocked: Option<Blocked>,
}

/// Streams, datagrams and frames that wait in one class.
#[derive(Debug)]
pub(super) struct ClassQueue {
    /// Streams with something to send, in the order of their turns, the highest priority first. A
    /// stream without data is removed when its turn comes.
    pub(super) turns: VecDeque<Turn>,
    /// Sum of the streams' sendable bytes.
    pub(super) data: u64,
    /// Number of streams of which only the end is left to be sent.
    pub(super) lone_fins: u64,
    /// Number of streams for which the application has more to write than was accepted.
    pub(super) unwritten: u64,
    pub(super) datagrams: DatagramQueue,
    /// Stream frames taken back from symbols, to be put into new symbols.
    pub(super) returned: Returned,
    /// Whether datagrams come before streams in the next symbol. The order alternates.
    datagrams_first: bool,
}

/// A stream's turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    stream: StreamId,
    priority: i32,
}

impl ClassQueue {
    /// Bytes of datagrams, and of stream data taken back from symbols. Data waiting in a stream is
    /// counted with the stream.
    pub(super) fn memory(&self) -> u64 {
        self.datagrams.memory() + self.returned.cost()
    }

    pub(super) fn new(datagram_buffer: usize) -> Self {
        ClassQueue {
            turns: VecDeque::new(),
            data: 0,
            lone_fins: 0,
            unwritten: 0,
            datagrams: DatagramQueue::new(datagram_buffer),
            returned: Returned::default(),
            datagrams_first: true,
        }
    }

    /// Returns a value other than 0 if something can be sent. `has_credit` says whether the
    /// connection has credit.
    #[inline]
    fn waiting(&self, has_credit: bool) -> u64 {
        let data = if has_credit { self.data } else { 0 };
        data | self.lone_fins | self.returned.cost() | self.datagrams.len() as u64
    }

    /// Accounts for `piece` sent bytes of the stream that had its turn and has more to send, and
    /// moves it behind the other streams of its priority.
    fn goes_on(&mut self, send: &mut SendSide, piece: u64) {
        send.counted.data -= piece;
        debug_assert_eq!(send.counted, send.sendable());
        self.data -= piece;
        if self.turns.len() > 1
            && let Some(turn) = self.turns.pop_front()
        {
            self.enqueue(turn);
        }
    }

    /// Queues a stream behind all streams of the same or a higher priority.
    fn enqueue(&mut self, turn: Turn) {
        let last = self.turns.back().is_none_or(|last| last.priority >= turn.priority);
        let place = if last {
            self.turns.len()
        } else {
            self.turns.partition_point(|other| other.priority >= turn.priority)
        };
        self.turns.insert(place, turn);
    }

    fn sendable(&self, credit: u64) -> u64 {
        let returned = self.returned.cost();
        returned + self.data.min(credit) + self.lone_fins + self.datagrams.cost() as u64
    }
}

impl Streams {
    /// Data that could be put into symbols now. Constant time.
    pub fn pending(&self) -> Pending {
        self.pending_of(|_| true)
    }

    /// Version of [`pending`](Self::pending) for the classes for which `counts` returns true.
    pub fn pending_of(&self, counts: impl Fn(TrafficClass) -> bool) -> Pending {
        let credit = self.sent_limit.saturating_sub(self.sent);
        let queues = TrafficClass::ALL.into_iter().zip(&self.classes);
        let mut queues = queues.filter(|(class, _)| counts(*class));
        let next = queues.find_map(|(class, queue)| {
            let bytes = queue.sendable(credit);
            (bytes > 0).then_some((class, queue, bytes))
        });
        let Some((class, queue, bytes)) = next else {
            let blocked = if self.unsent > 0 { Blocked::FlowControl } else { Blocked::Application };
            return Pending {
                class: None,
                bytes: 0,
                beyond: 0,
                more: false,
                blocked: Some(blocked),
            };
        };
        let mut left = credit.saturating_sub(queue.data);
        let beyond = queues.map(|(_, queue)| {
            let bytes = queue.sendable(left);
            left = left.saturating_sub(queue.data);
            bytes
        });
        let beyond = beyond.sum();
        Pending { class: Some(class), bytes, beyond, more: queue.unwritten > 0, blocked: None }
    }

    /// Whether nothing can be put into symbols now.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let has_credit = self.sent < self.sent_limit;
        let waiting = self.classes.iter().map(|queue| queue.waiting(has_credit));
        waiting.fold(0, |all, waiting| all | waiting) == 0
    }

    /// Whether anything of the class can be put into symbols now.
    #[inline]
    pub fn is_waiting(&self, class: TrafficClass) -> bool {
        self.classes[class as usize].waiting(self.sent < self.sent_limit) != 0
    }

    /// Bytes of streams of `class` that the peer's credit allows beyond those sent. This is the
    /// connection's credit, further limited by the stream's credit if only one stream has a turn.
    pub fn credit(&self, class: TrafficClass) -> u64 {
        let credit = self.sent_limit.saturating_sub(self.sent);
        let turns = &self.classes[class as usize].turns;
        let only = turns.front().filter(|_| turns.len() == 1);
        let own =
            only.and_then(|turn| self.streams.get(&turn.stream)).map(|stream| stream.send.credit());
        own.map_or(credit, |own| own.min(credit))
    }

    /// Length of the shortest symbol that holds the next datagram of `class`; 0 if none waits.
    pub fn least_symbol(&self, class: TrafficClass) -> u16 {
        let next = self.classes[class as usize].datagrams.next_length();
        next.map_or(0, |length| datagram_len(length).min(u16::MAX.into()) as u16)
    }

    /// Fills `buffer` with frames of `class` for the source symbol `symbol`. Returns the number of
    /// bytes used, which is 0 if there is nothing to send or the buffer is too short for any frame.
    ///
    /// The bytes are removed from the send buffers, so the caller must keep the symbol until the
    /// peer has it. Streams take turns; in each turn a stream fills one symbol or sends all that it
    /// has.
    pub fn fill_symbol(
        &mut self,
        class: TrafficClass,
        symbol: SymbolId,
        buffer: &mut [u8],
    ) -> usize {
        let mut writer = SymbolWriter::new(buffer);
        self.fill_returned(class, symbol, &mut writer);
        let queue = &mut self.classes[class as usize];
        if queue.datagrams.is_empty() {
            self.fill_streams(class, symbol, &mut writer);
            return writer.finish();
        }
        let datagrams_first = queue.datagrams_first;
        queue.datagrams_first = !datagrams_first;
        if datagrams_first {
            self.fill_datagrams(class, &mut writer);
        }
        self.fill_streams(class, symbol, &mut writer);
        if !datagrams_first {
            self.fill_datagrams(class, &mut writer);
        }
        writer.finish()
    }

    fn fill_datagrams(&mut self, class: TrafficClass, writer: &mut SymbolWriter<'_>) {
        let queue = &mut self.classes[class as usize].datagrams;
        let mut popped = false;
        while let Some(length) = queue.next_length() {
            if datagram_len(length) > writer.room() {
                if !writer.is_empty() {
                    break;
                }
                // Symbols have become shorter since the datagram was queued, so no symbol can hold
                // it.
                queue.pop(&mut []);
                self.datagrams_dropped += 1;
                popped = true;
                continue;
            }
            let written = writer.datagram(length, |target| {
                queue.pop(target);
            });
            if written.is_err() {
                break;
            }
            popped = true;
        }
        if popped && core::mem::take(&mut self.wants_datagram) {
            self.notices.datagram_space = true;
        }
    }

    fn fill_streams(
        &mut self,
        class: TrafficClass,
        symbol: SymbolId,
        writer: &mut SymbolWriter<'_>,
    ) {
        for _ in 0..self.classes[class as usize].turns.len() {
            let Some(turn) = self.classes[class as usize].turns.front() else { break };
            if !self.fill_stream(class, turn.stream, symbol, writer) {
                break;
            }
        }
    }

    /// Writes one frame, as long as possible, of the stream whose turn it is. Returns false if
    /// there is no space; the stream then keeps its turn.
    #[inline]
    fn fill_stream(
        &mut self,
        class: TrafficClass,
        id: StreamId,
        symbol: SymbolId,
        writer: &mut SymbolWriter<'_>,
    ) -> bool {
        let turns = &mut self.classes[class as usize].turns;
        let Some(stream) = self.streams.get_mut(&id) else {
            turns.pop_front();
            return true;
        };
        let send = &mut stream.send;
        let sendable = send.sendable();
        let length = sendable.data.min(self.sent_limit.saturating_sub(self.sent));
        if length == 0 && !sendable.lone_fin {
            turns.pop_front();
            send.queued = false;
            count(&mut self.classes, id, send);
            return true;
        }
        let Some(room) = stream_data_room(id, send.sent, writer.room()) else {
            return false;
        };
        let piece = length.min(room as u64);
        if piece < length.min(MIN_PIECE) && (!writer.is_empty() || piece == 0) {
            return false;
        }
        let fin = send.ends_after(piece);
        let at = (id, send.sent);
        if writer.stream(at, fin, piece as usize, |target| send.take(target)).is_err() {
            return false;
        }
        send.newest[symbol.space() as usize] = Some(symbol);
        self.sent += piece;
        self.unsent -= piece;
        if fin || sendable.data == piece {
            turns.pop_front();
            send.fin_sent |= fin;
            send.queued = false;
            count(&mut self.classes, id, send);
        } else {
            self.classes[class as usize].goes_on(send, piece);
        }
        if send.wants_space && send.space(self.limits.send_buffer) * 2 >= self.limits.send_buffer {
            send.wants_space = false;
            stream.notify(id, EventSet::WRITABLE, &mut self.eventful);
        }
        if fin {
            self.note_end(id);
        }
        true
    }

    /// Updates the totals and turns of a class after a change of one of its streams.
    pub(super) fn recount(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            count(&mut self.classes, id, &mut stream.send);
        }
    }

    /// Removes a stream from the totals and turns of its class.
    pub(super) fn dequeue(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            uncount(&mut self.classes, id, &mut stream.send);
        }
    }
}

/// Version of [`Streams::dequeue`] for a borrowed stream.
pub(super) fn uncount(classes: &mut [ClassQueue; 3], id: StreamId, send: &mut SendSide) {
    let queue = &mut classes[send.class as usize];
    let counted = core::mem::take(&mut send.counted);
    queue.data -= counted.data;
    queue.lone_fins -= u64::from(counted.lone_fin);
    queue.unwritten -= u64::from(counted.more);
    if core::mem::take(&mut send.queued) {
        queue.turns.retain(|turn| turn.stream != id);
    }
}

/// Updates the totals of a stream's class with the data that the stream can send now, and gives the
/// stream a turn if it has none.
fn count(classes: &mut [ClassQueue; 3], id: StreamId, send: &mut SendSide) {
    let queue = &mut classes[send.class as usize];
    let sendable = send.sendable();
    queue.data = queue.data - send.counted.data + sendable.data;
    queue.lone_fins =
        queue.lone_fins - u64::from(send.counted.lone_fin) + u64::from(sendable.lone_fin);
    queue.unwritten = queue.unwritten - u64::from(send.counted.more) + u64::from(sendable.more);
    send.counted = sendable;
    if !sendable.is_none() && !send.queued {
        send.queued = true;
        queue.enqueue(Turn { stream: id, priority: send.priority });
    }
}
