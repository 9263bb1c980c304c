//! Logs the progress of a flow's streams. Each stream carries one transfer; both are numbered in
//! the order of opening.

use anabranch_core::connection::Connection;
use anabranch_core::wire::{Direction, Role, StreamId};
use anabranch_policy::view::SymbolId;
use anabranch_types::Time;
use std::collections::VecDeque;

use crate::endpoint::{Log, Watch};

/// The sender's log, and the progress of its streams when they were last examined.
#[derive(Debug)]
pub(super) struct Sent {
    pub log: Log,
    /// Whether the sender's coding blocks are logged.
    coding_blocks: bool,
    symbols: u64,
    /// For each stream from `first` on, the bytes that are logged as sent.
    logged: Vec<u64>,
    first: u64,
}

/// The receiver's log, and the progress of its streams when they were last examined.
#[derive(Debug)]
pub(super) struct Received {
    pub log: Log,
    watch: Watch,
    /// For each source symbol from `first_symbol` on, whether the receiver holds it.
    symbols: VecDeque<bool>,
    first_symbol: u64,
    /// The progress of each stream from `first` on.
    streams: Vec<Stream>,
    first: u64,
}

/// Logged progress of a stream.
#[derive(Clone, Debug, Default)]
struct Stream {
    read: u64,
    /// For each slice from `first_slice` on, whether it has arrived completely.
    whole: Vec<bool>,
    first_slice: u64,
    done: bool,
}

impl Sent {
    pub(super) fn new(coding_blocks: bool) -> Self {
        let (log, logged) = (Log::default(), Vec::new());
        Sent { log, coding_blocks, symbols: 0, logged, first: 0 }
    }

    /// Logs the progress of the first `opened` streams.
    pub(super) fn note(&mut self, now: Time, connection: &mut Connection, opened: u64) {
        if self.coding_blocks {
            self.note_blocks(now, connection);
        }
        self.logged.resize((opened - self.first.min(opened)) as usize, 0);
        for (number, logged) in (self.first..).zip(&mut self.logged) {
            let Some(progress) = connection.stream_progress(stream(number)) else { continue };
            if progress.sent > *logged {
                *logged = progress.sent;
                self.log.sent.push((number, progress.sent, now));
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

    fn note_blocks(&mut self, now: Time, connection: &mut Connection) {
        connection.watch_blocks();
        let symbols = connection.unsent_symbol().0;
        if symbols > self.symbols {
            self.symbols = symbols;
            self.log.symbols_sent.push((symbols, now));
        }
        self.log.blocks.extend(connection.take_block_records());
    }
}

impl Received {
    pub(super) fn new(watch: Watch) -> Self {
        let (log, symbols) = (Log::default(), VecDeque::new());
        Received { log, watch, symbols, first_symbol: 0, streams: Vec::new(), first: 0 }
    }

    /// Logs the progress of all streams. `finished` lists the streams that were read to their end.
    pub(super) fn note(
        &mut self,
        now: Time,
        connection: &Connection,
        finished: &[(StreamId, Time)],
    ) {
        let finished: Vec<u64> = finished
            .iter()
            .map(|(stream, _)| stream.ordinal())
            .filter(|number| *number >= self.first)
            .collect();
        let first = self.first;
        if self.watch.coding_blocks {
            self.note_symbols(now, connection);
        }
        let slice = (!self.watch.coding_blocks).then_some(self.watch.slice);
        let look = Look { now, connection, slice };
        // Streams are opened in order, but the first packet of a stream may overtake that of an
        // earlier stream. So the newest known stream is searched for.
        let newest = (first..first + self.streams.len() as u64 + 64)
            .rev()
            .find(|number| connection.stream_progress(stream(*number)).is_some());
        let known = newest.map_or(0, |newest| (newest + 1 - first) as usize);
        self.streams.resize(self.streams.len().max(known), Stream::default());
        for (number, entry) in (first..).zip(&mut self.streams) {
            entry.note(look, number, finished.contains(&number), &mut self.log);
        }
        while self.streams.first().is_some_and(|stream| stream.done) {
            self.streams.remove(0);
            self.first += 1;
        }
    }

    fn note_symbols(&mut self, now: Time, connection: &Connection) {
        let known = connection.reached_symbol().0.saturating_sub(self.first_symbol) as usize;
        self.symbols.resize(known.max(self.symbols.len()), false);
        for (symbol, held) in (self.first_symbol..).zip(&mut self.symbols) {
            if !*held && connection.holds_symbol(SymbolId(symbol)) {
                *held = true;
                self.log.symbols_held.push((symbol, now));
            }
        }
        while self.symbols.front() == Some(&true) {
            self.symbols.pop_front();
            self.first_symbol += 1;
        }
    }
}

/// A connection at one instant, and the length of the slices to log.
#[derive(Clone, Copy)]
struct Look<'a> {
    now: Time,
    connection: &'a Connection,
    /// Length of a slice, bytes; `None` if slices are not logged.
    slice: Option<u64>,
}

impl Stream {
    fn note(&mut self, look: Look<'_>, number: u64, finished: bool, log: &mut Log) {
        let Look { now, connection, slice } = look;
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
        let Some(slice) = slice else { return };
        // Slices more than `LOOK_AHEAD` beyond the contiguous data are checked later.
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

/// How far beyond the contiguous data slices are checked, bytes.
const LOOK_AHEAD: u64 = 4 << 20;

fn stream(number: u64) -> StreamId {
    StreamId::new(Role::Initiator, Direction::Bidirectional, number)
}
