//! Repairs whose coverage may overlap: missing sources are recovered one by one.

use anabranch_policy::code::Coverage;
use anabranch_policy::view::SymbolId;

use super::{Arrival, Held, ReceiveBlocks, Slot, SymbolSink};

impl ReceiveBlocks {
    /// Processes a repair of a code that slides; the repair is within all limits.
    pub(super) fn slide(
        &mut self,
        coverage: Coverage,
        key: u32,
        payload: &[u8],
        sink: &mut dyn SymbolSink,
    ) -> Arrival {
        // Symbols below the floor are no longer held, so a repair that covers one is of no use.
        if coverage.first.0 < self.base {
            return Arrival::Redundant;
        }
        self.reach(coverage.end() - 1);
        let (slots, base) = (&self.slots, self.base);
        let slot = |id: SymbolId| slots.get((id.0 - base) as usize);
        let within = || (coverage.first.0..coverage.end()).map(SymbolId);
        let given_up = within().any(|id| matches!(slot(id), Some(Slot::Done)));
        let missing = within().any(|id| matches!(slot(id), Some(Slot::Missing)));
        let Some(decoder) = self.sliding.as_mut().filter(|_| missing && !given_up) else {
            return Arrival::Redundant;
        };
        let known = |id| match slot(id) {
            Some(Slot::Held(held)) => Some(held.payload()),
            _ => None,
        };
        if !decoder.repair(coverage, key, payload, &known) {
            return Arrival::Redundant;
        }
        self.take_recovered(sink);
        self.advance(sink);
        Arrival::New
    }

    /// Delivers the symbols that the repairs determine, and keeps them because later repairs may
    /// cover them.
    pub(super) fn take_recovered(&mut self, sink: &mut dyn SymbolSink) {
        loop {
            let mut bytes = self.pool.take();
            let decoder = self.sliding.as_mut();
            let Some((id, length)) = decoder.and_then(|decoder| decoder.take_recovered(&mut bytes))
            else {
                self.pool.put(bytes);
                return;
            };
            match self.reach(id.0) {
                Some(offset) if matches!(self.slots[offset], Slot::Missing) => {
                    let held = Held { bytes, length: length as u16, pieces: 0 };
                    sink.recovered(held.payload());
                    self.slots[offset] = Slot::Held(held);
                    self.decoded += 1;
                }
                _ => self.pool.put(bytes),
            }
        }
    }
}
