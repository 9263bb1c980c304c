//! Detects when the peer has all data of a stream that has ended.

use anabranch_policy::view::{SymbolId, SymbolSpace};

use super::events::EventSet;
use super::streams::Streams;
use crate::wire::StreamId;

impl Streams {
    /// Notes that `symbol` is the newest symbol of its space with bytes of a stream. If the end of
    /// the stream has been sent, the stream waits for this symbol.
    pub(super) fn note_carried(&mut self, id: StreamId, symbol: SymbolId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let newest = stream.send.newest[symbol.space() as usize].replace(symbol);
        if stream.send.fin_sent {
            newest.map(|before| self.ends.remove(&(before, id)));
            self.ends.insert((symbol, id));
        }
    }

    /// Notes that the end of a stream is in a symbol. The peer has the whole stream once it has, in
    /// each space, all symbols up to the newest one with bytes of the stream.
    pub(super) fn note_end(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        for (newest, floor) in stream.send.newest.iter_mut().zip(self.floors) {
            *newest = newest.filter(|symbol| *symbol >= floor);
            self.ends.extend(newest.map(|symbol| (symbol, id)));
        }
    }

    /// Notes that the peer has recovered all symbols below `floor` in its space.
    pub fn on_floor(&mut self, floor: SymbolId) {
        let space = floor.space();
        self.floors[space as usize] = floor;
        let below = (space.symbol(0), StreamId(0))..(floor, StreamId(0));
        while let Some(end) = self.ends.range(below.clone()).next().copied() {
            self.ends.remove(&end);
            self.on_recovered(end.1, space);
        }
    }

    /// Notes that the peer has all data of a stream that was sent in this space.
    fn on_recovered(&mut self, id: StreamId, space: SymbolSpace) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.send.newest[space as usize] = None;
        let waits = stream.send.newest.iter().any(Option::is_some)
            || self.classes.iter().any(|queue| queue.returned.holds(id));
        if !waits {
            stream.send.done = true;
            self.notify(id, EventSet::ACKED);
        }
    }
}
