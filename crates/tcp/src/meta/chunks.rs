//! The table of chunks that are cut and not acknowledged at the data level, as the scheduler sees them.

use anabranch_policy::view::{BlockId, BlockView, MAX_PATHS, SymbolId};
use anabranch_types::Time;
use std::collections::BTreeSet;

use super::binding::Chunk;

/// Tables longer than this are shown in part, so that a pull costs the same however much is outstanding.
const MOST_SHOWN: usize = 256;
/// How many of the oldest chunks are shown of a table longer than [`MOST_SHOWN`], and at how many
/// due chunks a search looks.
const OLDEST_SHOWN: usize = 64;

/// The state of a chunk that its view does not show.
#[derive(Clone, Copy, Debug)]
struct Entry {
    data: u64,
    len: u64,
    /// Bit i: the stream of the subflow in slot i carries the chunk, and this part is not
    /// acknowledged yet.
    bound: u16,
    /// Bit i, a subset of `bound`: the subflow in slot i keeps only a copy. It timed out, and
    /// another subflow is responsible for the chunk.
    kept: u16,
    /// Bit i: the chunk waits in the queue of the subflow in slot i.
    queued: u16,
}

impl Entry {
    /// The slots whose subflows are responsible for the chunk, in their stream or in their queue.
    fn holders(&self) -> u16 {
        self.bound & !self.kept | self.queued
    }
}

/// Outstanding chunks in the order of the data. Each is a block of one symbol.
///
/// The views lie in one slice and are kept up to date as chunks move, so that showing them costs
/// nothing. Finding a chunk by its ordinal takes constant time, finding a due one by its length
/// O(log n). A chunk that a subflow has to retransmit counts as queued there.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    views: Vec<BlockView>,
    entries: Vec<Entry>,
    /// Entries before this index are released. They are removed when they make up half of the
    /// table.
    start: usize,
    /// Ordinal of the chunk at `start`.
    first: u64,
    /// Due chunks.
    due: BTreeSet<u64>,
    /// Due chunks by length, then ordinal.
    due_by_len: BTreeSet<(u64, u64)>,
    /// Chunks that are in flight and have not arrived.
    flying: BTreeSet<u64>,
    /// By slot: ordinal below which the subflow there can take a copy of no chunk.
    copied: [u64; MAX_PATHS],
    /// By slot: number of chunks that wait in the stream or the queue of the subflow there.
    waiting: [u64; MAX_PATHS],
    /// The views to show where they differ from `views`: those of a long table, or those with a
    /// subflow's own due chunks hidden.
    shown: Vec<BlockView>,
}

/// The bit of a slot in masks.
pub(super) fn bit(slot: u8) -> u16 {
    1_u16.checked_shl(u32::from(slot)).unwrap_or(0)
}

impl Chunks {
    /// Whether no chunk is due.
    pub(super) fn none_due(&self) -> bool {
        self.due.is_empty()
    }

    /// The ordinal of the chunk that is cut next.
    pub(super) fn next(&self) -> SymbolId {
        SymbolId(self.first + (self.views.len() - self.start) as u64)
    }

    /// Cuts the next chunk.
    pub(super) fn cut(&mut self, data: u64, len: u64) -> Chunk {
        let SymbolId(id) = self.next();
        self.entries.push(Entry { data, len, bound: 0, kept: 0, queued: 0 });
        self.views.push(BlockView {
            id: BlockId(id),
            first: SymbolId(id),
            sources: 1,
            planned: 1,
            closed: true,
            ..BlockView::default()
        });
        Chunk { id, data, len }
    }

    /// The views of all chunks, oldest first. Of a long table it shows the oldest chunks, the
    /// oldest due one, and the oldest of which the subflow in slot `puller` could take a copy.
    pub(super) fn show(&mut self, puller: Option<u8>) -> &[BlockView] {
        let mut oldest_due = self.due.iter().take(OLDEST_SHOWN);
        let own = puller.is_some_and(|slot| oldest_due.any(|id| self.is_on(*id, slot)));
        if self.views.len() - self.start > MOST_SHOWN {
            self.select(puller);
        } else if own {
            self.shown.clear();
            self.shown.extend_from_slice(self.views.get(self.start..).unwrap_or_default());
        } else {
            return self.views.get(self.start..).unwrap_or_default();
        }
        if own && let Some(slot) = puller {
            self.hide_own(slot);
        }
        &self.shown
    }

    /// Shows due chunks that the subflow in `slot` has to retransmit by itself as not due.
    fn hide_own(&mut self, slot: u8) {
        let mut shown = core::mem::take(&mut self.shown);
        for view in shown.iter_mut().filter(|view| view.due > 0) {
            if self.is_on(view.id.0, slot) {
                view.due = 0;
            }
        }
        self.shown = shown;
    }

    /// Selects the views to show of a long table.
    fn select(&mut self, puller: Option<u8>) {
        let offered = |id: &&u64| puller.is_none_or(|slot| !self.is_on(**id, slot));
        let due = self.due.iter().take(OLDEST_SHOWN).find(offered).copied();
        let uncopied = puller.and_then(|slot| self.oldest_uncopied(slot));
        let mut others = [due, uncopied].map(|id| id.and_then(|id| self.index(id)));
        others.sort_unstable();
        let end = self.start + OLDEST_SHOWN;
        self.shown.clear();
        self.shown.extend_from_slice(self.views.get(self.start..end).unwrap_or_default());
        let mut last = end;
        for index in others.into_iter().flatten().filter(|index| *index >= end) {
            if index >= last {
                self.shown.extend(self.views.get(index));
                last = index + 1;
            }
        }
    }

    /// The oldest chunk of which the subflow in `slot` could take a copy: one in flight that this subflow does not
    /// have.
    fn oldest_uncopied(&mut self, slot: u8) -> Option<u64> {
        let at = usize::from(slot) % MAX_PATHS;
        let from = self.copied.get(at).map_or(self.first, |from| self.first.max(*from));
        let found = self.flying.range(from..).copied().find(|id| !self.is_on(*id, slot));
        let SymbolId(next) = self.next();
        if let Some(copied) = self.copied.get_mut(at) {
            // This subflow has the chunks that were passed over, so the next search begins after
            // them.
            *copied = found.unwrap_or(next);
        }
        found
    }

    fn index(&self, id: u64) -> Option<usize> {
        let ahead = usize::try_from(id.checked_sub(self.first)?).ok()?;
        self.start.checked_add(ahead).filter(|index| *index < self.views.len())
    }

    fn at(&mut self, id: u64) -> Option<(&mut Entry, &mut BlockView)> {
        let index = self.index(id)?;
        Some((self.entries.get_mut(index)?, self.views.get_mut(index)?))
    }

    /// The chunk of this ordinal, unless it has been released.
    pub(super) fn get(&self, id: u64) -> Option<Chunk> {
        let entry = self.entries.get(self.index(id)?)?;
        Some(Chunk { id, data: entry.data, len: entry.len })
    }

    /// Whether the subflow in `slot` has the chunk, in its stream or in its queue.
    pub(super) fn is_on(&self, id: u64, slot: u8) -> bool {
        let entry = self.index(id).and_then(|index| self.entries.get(index));
        entry.is_some_and(|entry| (entry.bound | entry.queued) & bit(slot) != 0)
    }

    /// Whether a subflow has reported the chunk's arrival or the chunk has been released.
    pub(super) fn has_arrived(&self, id: u64) -> bool {
        let view = self.index(id).and_then(|index| self.views.get(index));
        view.is_none_or(|view| view.received > 0)
    }

    /// The chunk waits in the queue of the subflow in `slot`.
    pub(super) fn on_queued(&mut self, id: u64, slot: u8) {
        self.change(id, slot, |entry, _| entry.queued |= bit(slot));
    }

    /// The chunk no longer waits in the queue of the subflow in `slot`.
    pub(super) fn on_unqueued(&mut self, id: u64, slot: u8) {
        self.change(id, slot, |entry, _| entry.queued &= !bit(slot));
    }

    /// The stream of the subflow in `slot` carries the chunk from now on.
    pub(super) fn on_bound(&mut self, id: u64, slot: u8) {
        self.change(id, slot, |entry, _| entry.bound |= bit(slot));
    }

    /// A segment with the chunk left on the subflow in `slot`. Returns false if one was in flight
    /// there already.
    pub(super) fn on_sent(&mut self, id: u64, slot: u8, now: Time) -> bool {
        let mut fresh = true;
        self.change(id, slot, |_, view| {
            if view.carried_on == 0 {
                view.opened = now;
            }
            view.carried_on |= bit(slot);
            fresh = set(&mut view.in_flight_on, slot, 1) == 0;
        });
        fresh
    }

    /// The chunk's segment in flight on the subflow in `slot` was lost.
    pub(super) fn on_lost(&mut self, id: u64, slot: u8) {
        self.change(id, slot, |_, view| {
            set(&mut view.in_flight_on, slot, 0);
            view.lost_on |= bit(slot);
        });
    }

    /// The subflow in `slot` reports that the chunk arrived.
    pub(super) fn on_delivered(&mut self, id: u64, slot: u8) {
        self.take_due(id);
        self.change(id, slot, |_, view| {
            set(&mut view.in_flight_on, slot, 0);
            view.received = 1;
        });
    }

    /// The stream of the subflow in `slot` has been acknowledged beyond the chunk, or the chunk was
    /// taken back from it.
    pub(super) fn on_unbound(&mut self, id: u64, slot: u8) {
        self.change(id, slot, |entry, view| {
            entry.bound &= !bit(slot);
            entry.kept &= !bit(slot);
            set(&mut view.in_flight_on, slot, 0);
        });
    }

    /// The subflow in `slot` timed out with the chunk and keeps only a copy from now on.
    pub(super) fn leave_copy(&mut self, id: u64, slot: u8) {
        self.change(id, slot, |entry, _| entry.kept |= entry.bound & bit(slot));
    }

    /// Number of chunks that wait in the stream or the queue of the subflow in `slot`: not sent
    /// yet, or lost there.
    pub(super) fn waiting_on(&self, slot: u8) -> u64 {
        self.waiting.get(usize::from(slot)).copied().unwrap_or(0)
    }

    /// Whether the subflow in `slot` lacks one of the oldest due chunks.
    pub(super) fn any_due_for(&self, slot: u8) -> bool {
        self.due.iter().take(OLDEST_SHOWN).any(|id| !self.is_on(*id, slot))
    }

    /// Applies `change` to the chunk's state on the subflow in `slot`, then updates its view and
    /// the counts.
    fn change(&mut self, id: u64, slot: u8, change: impl FnOnce(&mut Entry, &mut BlockView)) {
        let Some((entry, view)) = self.at(id) else { return };
        change(entry, view);
        let at = usize::from(slot) % MAX_PATHS;
        let flies = view.in_flight_on.get(at).is_some_and(|count| *count > 0);
        let waits = (entry.bound | entry.queued) & bit(slot) != 0 && view.received == 0 && !flies;
        let waited = set(&mut view.queued_on, slot, u16::from(waits)) > 0;
        settle(view);
        let flying = view.in_flight > 0;
        // Subflows without the chunk could take a copy.
        let without = if flying { !(entry.bound | entry.queued) } else { 0 };
        match flying {
            true => self.flying.insert(id),
            false => self.flying.remove(&id),
        };
        for (_, copied) in (0..).zip(&mut self.copied).filter(|(at, _)| without >> at & 1 == 1) {
            *copied = (*copied).min(id);
        }
        if let Some(count) = self.waiting.get_mut(at) {
            *count = *count + u64::from(waits) - u64::from(waited);
        }
    }

    /// Makes the chunk due, unless it has arrived or a subflow in `others` is responsible for it.
    /// Returns true if it is newly due.
    pub(super) fn make_due(&mut self, id: u64, others: u16) -> bool {
        let Some((entry, view)) = self.at(id) else { return false };
        if view.received > 0 || view.due > 0 || entry.holders() & others != 0 {
            return false;
        }
        view.due = 1;
        settle(view);
        let len = entry.len;
        self.due_by_len.insert((len, id));
        self.due.insert(id)
    }

    /// Returns the chunk of this ordinal if it is due, and marks it as not due.
    pub(super) fn take_due(&mut self, id: u64) -> Option<Chunk> {
        let chunk = self.get(id)?;
        let (_, view) = self.at(id)?;
        if view.due == 0 {
            return None;
        }
        view.due = 0;
        view.lost_on = 0;
        settle(view);
        self.forget_due(id, chunk.len);
        Some(chunk)
    }

    /// The chunk of this ordinal, if it is in flight and the subflow in `slot` does not have it.
    pub(super) fn take_copy(&self, id: u64, slot: u8) -> Option<Chunk> {
        let view = self.views.get(self.index(id)?)?;
        (view.in_flight > 0 && !self.is_on(id, slot)).then(|| self.get(id))?
    }

    fn forget_due(&mut self, id: u64, len: u64) {
        if self.due.remove(&id) {
            self.due_by_len.remove(&(len, id));
        }
    }

    /// The oldest due chunk.
    pub(super) fn oldest_due(&self) -> Option<u64> {
        self.due.first().copied()
    }

    /// The oldest due chunk of exactly `len` bytes that the subflow in `slot` does not have.
    pub(super) fn due_of(&self, len: u64, slot: u8) -> Option<u64> {
        // Only the first `OLDEST_SHOWN` are looked at. If this subflow has all of those, it is
        // offered none.
        let due = self.due_by_len.range((len, 0)..=(len, u64::MAX)).map(|(_, id)| *id);
        due.take(OLDEST_SHOWN).find(|id| !self.is_on(*id, slot))
    }

    /// Releases the chunks that end at or below `una`; returns their ordinals.
    pub(super) fn release(&mut self, una: u64) -> core::ops::Range<u64> {
        let from = self.first;
        while let Some(entry) = self.entries.get(self.start).copied() {
            if entry.data + entry.len > una {
                break;
            }
            self.forget_due(self.first, entry.len);
            self.forget_waiting();
            self.flying.remove(&self.first);
            self.start += 1;
            self.first += 1;
        }
        if self.start >= 64 && 2 * self.start >= self.views.len() {
            self.views.drain(..self.start);
            self.entries.drain(..self.start);
            self.start = 0;
        }
        from..self.first
    }

    /// Takes the oldest chunk, which is about to be released, out of the counts of waiting chunks.
    fn forget_waiting(&mut self) {
        let Some(view) = self.views.get(self.start) else { return };
        for (count, waits) in self.waiting.iter_mut().zip(&view.queued_on) {
            *count -= u64::from(*waits > 0);
        }
    }

    /// Makes the oldest chunk due if no subflow has it, or if one has reported that it arrived.
    ///
    /// The receiver acknowledges data at once with the segment that brings it. So the oldest chunk
    /// cannot have arrived, even if a subflow reports so: its offset had carried other data, and
    /// that data arrived.
    pub(super) fn rescue_oldest(&mut self) -> bool {
        let Some((entry, view)) = self.at(self.first) else { return false };
        let abandoned = entry.bound | entry.queued == 0;
        if view.due > 0 || !(abandoned || view.received > 0) {
            return false;
        }
        view.received = 0;
        let made = self.make_due(self.first, 0);
        // If the chunk is in flight, it can be copied again.
        self.change(self.first, 0, |_, _| {});
        made
    }

    /// Another subflow takes `slot`: clears the state of the subflow before.
    pub(super) fn clear_slot(&mut self, slot: u8) {
        for id in self.first..self.first + (self.views.len() - self.start) as u64 {
            self.change(id, slot, |entry, view| {
                entry.bound &= !bit(slot);
                entry.kept &= !bit(slot);
                entry.queued &= !bit(slot);
                set(&mut view.in_flight_on, slot, 0);
                view.lost_on &= !bit(slot);
                view.carried_on &= !bit(slot);
            });
        }
    }
}

/// Sets the count of a slot; returns the previous count.
fn set(counts: &mut [u16; MAX_PATHS], slot: u8, count: u16) -> u16 {
    let place = counts.get_mut(usize::from(slot));
    place.map_or(count, |place| core::mem::replace(place, count))
}

/// Sets the totals of a chunk from its state in each slot. A chunk counts as in flight or else as
/// queued, and as neither once it has arrived.
fn settle(view: &mut BlockView) {
    let any = |counts: &[u16; MAX_PATHS]| counts.iter().any(|count| *count > 0);
    let missing = view.received == 0;
    view.in_flight = u16::from(missing && any(&view.in_flight_on));
    view.queued =
        u16::from(missing && view.due == 0 && view.in_flight == 0 && any(&view.queued_on));
}

#[cfg(test)]
mod tests;
