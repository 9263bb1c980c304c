//! From symbols into receive buffers.

use super::error::Violation;
use super::events::EventSet;
use super::streams::Streams;
use crate::wire::{StreamId, SymbolFrame, SymbolFrames};
use anabranch_policy::view::TrafficClass;

/// Most pieces of streams that are kept beyond holes, over all streams of a connection.
///
/// An honest peer leaves at most one piece per stream frame in a symbol that has arrived while an
/// earlier one is missing, so decoder credit (MAX_SYMBOLS) bounds the pieces long before this does.
pub const MAX_GAPS: usize = 1 << 16;

impl Streams {
    /// Applies the frames of a source symbol. The caller gives each symbol once; frames that overlap
    /// others are harmless, whoever came first counts.
    ///
    /// # Errors
    /// The peer broke a rule. Frames before the offending one have been applied.
    pub fn on_symbol(&mut self, payload: &[u8]) -> Result<(), Violation> {
        for frame in SymbolFrames::new(payload) {
            match frame? {
                SymbolFrame::Stream { stream, offset, fin, data } => {
                    self.on_stream(stream, offset, fin, data)?;
                }
                SymbolFrame::Datagram(data) => self.on_datagram(data),
            }
        }
        Ok(())
    }

    fn on_stream(
        &mut self,
        id: StreamId,
        offset: u64,
        fin: bool,
        data: &[u8],
    ) -> Result<(), Violation> {
        if !self.streams.contains_key(&id) {
            self.admit(id)?;
        }
        // A closed stream has all its bytes: this is a copy.
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let receive = &mut stream.receive;
        let growth = receive.check(id, offset, data.len() as u64, fin)?;
        if growth > self.control.max_data().saturating_sub(self.received) {
            return Err(Violation::ConnectionCredit);
        }
        self.received += growth;
        self.pieces -= receive.pieces();
        let capacity = receive.capacity();
        let news = receive.store(offset, data, fin);
        self.pieces += receive.pieces();
        if self.pieces > MAX_GAPS {
            return Err(Violation::Gaps);
        }
        let grown = receive.capacity() > capacity;
        if receive.discards() {
            self.consumed += receive.discard();
            self.refresh_max_data();
            self.retire(id);
        } else if news {
            stream.notify(id, EventSet::READABLE, &mut self.eventful);
        }
        if grown {
            self.bound_buffers();
        }
        Ok(())
    }

    /// Lets no peer make the buffers of one stream after the other large: once there is more room in them
    /// than `StreamLimits::most_room` says, what they do not need is given back.
    fn bound_buffers(&mut self) {
        let room: u64 = self.streams.values().map(|stream| stream.receive.capacity()).sum();
        if room > self.limits.most_room(self.streams.len() as u64) {
            for stream in self.streams.values_mut() {
                stream.receive.fit();
            }
        }
    }

    fn on_datagram(&mut self, data: &[u8]) {
        if !self.incoming.could_hold(data.len()) {
            self.datagrams_dropped += 1;
            return;
        }
        // What is live is worth more the younger it is, so the oldest makes room.
        while !self.incoming.push(data) {
            self.incoming.pop(&mut []);
            self.datagrams_dropped += 1;
        }
        self.notices.datagram = true;
    }

    /// The peer gave up sending on a stream after `final_size` bytes.
    ///
    /// # Errors
    /// The peer broke a rule.
    pub fn on_reset(&mut self, id: StreamId, code: u64, final_size: u64) -> Result<(), Violation> {
        self.admit(id)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let receive = &mut stream.receive;
        let growth = receive.check(id, final_size, 0, true)?;
        if growth > self.control.max_data().saturating_sub(self.received) {
            return Err(Violation::ConnectionCredit);
        }
        self.received += growth;
        if receive.done || receive.is_complete() {
            // Everything is here: there is nothing left to give up.
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

    /// Makes sure that `id` is a stream that exists or existed: opens it and all before it if the peer
    /// may, since a symbol of a later stream can overtake one of an earlier.
    pub(super) fn admit(&mut self, id: StreamId) -> Result<(), Violation> {
        if !id.is_bidirectional() {
            return Err(Violation::StreamState(id));
        }
        if id.opener() == self.role {
            let known = id.ordinal() < self.opened;
            return if known { Ok(()) } else { Err(Violation::StreamState(id)) };
        }
        if id.ordinal() >= self.control.max_streams() {
            return Err(Violation::StreamLimit(id));
        }
        while self.peer_opened <= id.ordinal() {
            let new = StreamId::bidirectional(self.role.peer(), self.peer_opened);
            self.peer_opened += 1;
            self.insert(new, TrafficClass::default());
            self.notify(new, EventSet::OPENED);
        }
        Ok(())
    }
}
