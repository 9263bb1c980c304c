//! Moves bytes from symbols into receive buffers.

use super::error::Violation;
use super::events::EventSet;
use super::lent::Place;
use super::streams::Streams;
use crate::wire::{StreamId, SymbolFrame, SymbolFrames};
use anabranch_policy::view::{SymbolId, TrafficClass};

/// Most separate pieces of stream data that are kept beyond gaps, over all streams of a connection.
///
/// An honest peer causes at most one piece for each stream frame of a symbol that arrives while an
/// earlier symbol is missing. Decoder credit (MAX_SYMBOLS) therefore bounds the pieces long before
/// this limit does.
pub const MAX_GAPS: usize = 1 << 16;

impl Streams {
    /// Processes the frames of a source symbol and copies all data. The caller passes each symbol
    /// once. If frames overlap, the bytes that arrived first count.
    ///
    /// # Errors
    /// Returns the peer's protocol violation. Frames before the offending one have been processed.
    pub fn on_symbol(&mut self, payload: &[u8]) -> Result<(), Violation> {
        self.apply(payload, None).map(|_| ())
    }

    /// Version of [`on_symbol`](Self::on_symbol) for a symbol that the caller holds under `id`.
    /// Long pieces that can be read in order are left in the symbol until they have been read.
    /// Returns the number of these pieces. Before the caller drops the symbol earlier than that, it
    /// has to call [`keep`](Self::keep).
    ///
    /// # Errors
    /// The errors of [`on_symbol`](Self::on_symbol).
    pub fn on_held_symbol(&mut self, id: SymbolId, payload: &[u8]) -> Result<u16, Violation> {
        self.apply(payload, Some(id))
    }

    /// Copies the pieces that were left in a symbol and have not been read.
    pub fn keep(&mut self, id: SymbolId, payload: &[u8]) {
        let mut grown = 0;
        for frame in SymbolFrames::new(payload).flatten() {
            if let SymbolFrame::Stream { stream, offset, .. } = frame
                && let Some(stream) = self.streams.get_mut(&stream)
            {
                let capacity = stream.receive.capacity();
                stream.receive.keep(offset, id, payload);
                grown += stream.receive.capacity() - capacity;
            }
        }
        self.bound_buffers(grown);
    }

    fn apply(&mut self, payload: &[u8], held: Option<SymbolId>) -> Result<u16, Violation> {
        let mut pieces = 0;
        let mut frames = SymbolFrames::new(payload);
        while let Some(frame) = frames.next() {
            match frame? {
                SymbolFrame::Stream { stream, offset, fin, data } => {
                    let at = (payload.len() - frames.remaining() - data.len()) as u16;
                    let place = held.map(|symbol| Place { symbol, at });
                    pieces += u16::from(self.on_stream(stream, (offset, data), fin, place)?);
                }
                SymbolFrame::Datagram(data) => self.on_datagram(data),
            }
        }
        Ok(pieces)
    }

    /// Processes a STREAM frame. Returns whether its data is left in the symbol.
    #[inline]
    fn on_stream(
        &mut self,
        id: StreamId,
        (offset, data): (u64, &[u8]),
        fin: bool,
        place: Option<Place>,
    ) -> Result<bool, Violation> {
        self.check_sender(id)?;
        if !self.streams.contains_key(&id) {
            self.admit(id)?;
        }
        // A closed stream has all its bytes, so this data is a copy.
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(false) };
        let receive = &mut stream.receive;
        let growth = receive.check(id, offset, data.len() as u64, fin)?;
        if growth > self.control.max_data().saturating_sub(self.received) {
            return Err(Violation::ConnectionCredit);
        }
        self.received += growth;
        if let Some(place) = place.filter(|_| receive.lends(offset, data)) {
            receive.leave(offset, data, place, fin);
            stream.notify(id, EventSet::READABLE, &mut self.eventful);
            return Ok(true);
        }
        self.pieces -= receive.pieces();
        let capacity = receive.capacity();
        let news = receive.store(offset, data, fin);
        self.pieces += receive.pieces();
        if self.pieces > MAX_GAPS {
            return Err(Violation::Gaps);
        }
        let grown = receive.capacity() - capacity;
        if receive.discards() {
            self.consumed += receive.discard();
            self.refresh_max_data();
            self.retire(id);
        } else if news {
            stream.notify(id, EventSet::READABLE, &mut self.eventful);
        }
        self.bound_buffers(grown);
        Ok(false)
    }

    /// Limits the total capacity of the receive buffers, so that a peer cannot make the buffer of
    /// each stream large in turn. If the total exceeds `StreamLimits::most_room`, unneeded capacity
    /// is freed. Called after the buffers have grown by `grown` bytes.
    fn bound_buffers(&mut self, grown: u64) {
        if grown == 0 {
            return;
        }
        self.room += grown;
        let most = self.limits.most_room(self.streams.len() as u64);
        if self.room > most {
            self.room = self.counted_room();
        }
        if self.room > most {
            for stream in self.streams.values_mut() {
                stream.receive.fit();
            }
            self.room = self.counted_room();
        }
    }

    /// Total capacity of the receive buffers, bytes.
    pub(super) fn counted_room(&self) -> u64 {
        self.streams.values().map(|stream| stream.receive.capacity()).sum()
    }

    fn on_datagram(&mut self, data: &[u8]) {
        if !self.incoming.could_hold(data.len()) {
            self.datagrams_dropped += 1;
            return;
        }
        // For live data, new datagrams are worth more than old ones, so the oldest datagram is
        // dropped.
        while !self.incoming.push(data) {
            self.incoming.pop(&mut []);
            self.datagrams_dropped += 1;
        }
        self.notices.datagram = true;
    }

    /// Processes a RESET_STREAM frame: the peer stopped sending on a stream after `final_size`
    /// bytes.
    ///
    /// # Errors
    /// Returns the peer's protocol violation.
    pub fn on_reset(&mut self, id: StreamId, code: u64, final_size: u64) -> Result<(), Violation> {
        self.check_sender(id)?;
        self.admit(id)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let receive = &mut stream.receive;
        let growth = receive.check(id, final_size, 0, true)?;
        if growth > self.control.max_data().saturating_sub(self.received) {
            return Err(Violation::ConnectionCredit);
        }
        self.received += growth;
        if receive.done || receive.is_complete() {
            // All data has arrived, so the reset has no effect.
            return Ok(());
        }
        receive.final_size = Some(final_size);
        receive.highest = final_size;
        receive.done = true;
        let told = receive.reset.replace(code).is_some() || receive.stopped.is_some();
        self.pieces -= receive.pieces();
        self.consumed += receive.discard();
        stream.events.remove(EventSet::READABLE);
        if !told {
            self.notify(id, EventSet::RESET);
        }
        self.refresh_max_data();
        self.retire(id);
        Ok(())
    }

    /// Whether the peer may send on `id`.
    #[inline]
    const fn check_sender(&self, id: StreamId) -> Result<(), Violation> {
        let sends = id.carries_from(self.role.peer());
        if sends { Ok(()) } else { Err(Violation::StreamState(id)) }
    }

    /// Makes sure that stream `id` exists or existed. If the peer may open it, the stream and all
    /// earlier ones of its direction are opened, since a symbol of a later stream can overtake a
    /// symbol of an earlier one.
    pub(super) fn admit(&mut self, id: StreamId) -> Result<(), Violation> {
        if id.opener() == self.role {
            return if self.has_opened(id) { Ok(()) } else { Err(Violation::StreamState(id)) };
        }
        let new = (id.ordinal() + 1).saturating_sub(self.peer_opened.of(id.direction()));
        if new == 0 {
            return Ok(());
        }
        if new > self.control.max_streams().saturating_sub(self.peer_opened.total()) {
            return Err(Violation::StreamLimit(id));
        }
        for _ in 0..new {
            let new = self.peer_opened.next(self.role.peer(), id.direction());
            self.insert(new, TrafficClass::default());
            self.notify(new, EventSet::OPENED);
        }
        self.refresh_max_streams();
        Ok(())
    }
}
