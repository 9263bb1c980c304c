//! Blocks with missing symbols of which a repair has arrived, their decoders, and when they are
//! decoded.

use anabranch_policy::code::{Coverage, HeldRepair, HeldSource};
use core::ops::Range;

use super::super::{MAX_BLOCK, USUAL_BLOCK};
use super::{
    CodingViolation, Follower, Group, MAX_RECOVERED, ReceiveBlocks, SPARE_REPAIRS, Slot, SymbolSink,
};

impl ReceiveBlocks {
    /// The group that waits for this symbol.
    pub(super) fn group_of(&mut self, id: u64) -> Option<&mut Group> {
        let (_, group) = self.groups.range_mut(..=id).next_back()?;
        (id < group.coverage.end()).then_some(group)
    }

    /// Drops the groups that wait for any of these symbols.
    pub(super) fn take_apart(&mut self, ids: &Range<u64>) {
        let first = self.group_of(ids.start).map_or(ids.start, |group| group.coverage.first.0);
        while let Some((&first, _)) = self.groups.range(first..ids.end).next()
            && let Some(mut group) = self.groups.remove(&first)
        {
            self.held_repairs -= group.follower.repairs.len() as u64;
            group.follower.repairs.drain(..).for_each(|(_, bytes)| self.pool.put(bytes));
        }
    }

    /// Makes sure that there is a group with exactly this coverage. Returns false if none of its
    /// symbols is missing.
    pub(super) fn group_exists(
        &mut self,
        coverage: Coverage,
        length: u16,
    ) -> Result<bool, CodingViolation> {
        match self.groups.get(&coverage.first.0) {
            Some(group) if group.coverage == coverage && group.length != length => {
                Err(CodingViolation::Length)
            }
            Some(group) if group.coverage == coverage => Ok(true),
            _ => self.begin_group(coverage, length),
        }
    }

    /// Makes a group. Returns false if none of its symbols is missing.
    fn begin_group(&mut self, coverage: Coverage, length: u16) -> Result<bool, CodingViolation> {
        let first = coverage.first.0;
        let end = first + u64::from(coverage.count);
        let before_end = self.groups.range(..end).next_back();
        let overlaps = before_end.is_some_and(|(_, group)| group.coverage.end() > first);
        // If a part of the block is below the floor, its bytes are no longer held, so the block
        // cannot be decoded.
        if overlaps || first < self.base {
            return Err(CodingViolation::Coverage);
        }
        self.reach(end - 1);
        let held = (first..end).filter(|id| !self.is_missing(*id)).count() as u16;
        if held == coverage.count {
            return Ok(false);
        }
        // For repairs of a block decoded earlier no symbol is missing; that case is handled above.
        // A block with both discarded and missing symbols cannot be decoded.
        if (first..end).any(|id| self.is_done(id)) {
            return Err(CodingViolation::Coverage);
        }
        let follower = self.follow(coverage);
        let missing = coverage.count - held;
        self.groups.insert(first, Group { coverage, missing, length, follower });
        Ok(true)
    }

    /// Starts a decoder, and tells it which sources are held.
    fn follow(&mut self, coverage: Coverage) -> Follower {
        let spare = self.spare.pop();
        let mut follower =
            spare.unwrap_or_else(|| Follower { decoder: self.code.decoder(), repairs: Vec::new() });
        follower.decoder.begin(coverage.count);
        for index in 0..coverage.count {
            if !self.is_missing(coverage.first.0 + u64::from(index)) {
                follower.decoder.source(index);
            }
        }
        follower
    }

    /// Decodes the group that begins with `first`, if its symbols suffice and the budget covers the
    /// work. Returns whether it is recovered.
    pub(super) fn try_decode(&mut self, first: u64, sink: &mut dyn SymbolSink) -> bool {
        let Some(group) = self.groups.get(&first) else { return false };
        let (sources, length) = (group.coverage.count, usize::from(group.length));
        let ready = group.missing == 0
            || (group.follower.decoder.deficit() == 0
                && self.budget.spend(self.code.recovery_work(sources, length))
                && self.decode(first, sink));
        if !ready {
            return false;
        }
        let Some(Group { coverage, mut follower, .. }) = self.groups.remove(&first) else {
            return false;
        };
        self.held_repairs -= follower.repairs.len() as u64;
        for (_, bytes) in follower.repairs.drain(..) {
            self.pool.put(bytes);
        }
        // Without this, every recycled list would eventually have the capacity of the largest.
        follower.repairs.shrink_to(SPARE_REPAIRS);
        self.spare.push(follower);
        self.note_recovered(coverage);
        // If blocks are delivered as a whole, this one waits for the blocks before it.
        if self.whole.is_none() {
            self.finish(coverage.first.0..coverage.end(), sink);
        }
        true
    }

    /// Remembers a recovered block for reports, so that the sender stops sending repairs of it.
    pub(super) fn note_recovered(&mut self, coverage: Coverage) {
        if self.limits.any_symbols_suffice || coverage.end() <= self.first_missing {
            return;
        }
        self.recovered.retain(|other| *other != coverage);
        if self.recovered.len() >= MAX_RECOVERED {
            self.recovered.remove(0);
        }
        self.recovered.push(coverage);
    }

    /// Decodes a group that may have enough symbols. Returns false if they do not suffice, or if
    /// they contradict each other (only if the peer does not follow the code); the group then waits
    /// for more.
    fn decode(&mut self, first: u64, sink: &mut dyn SymbolSink) -> bool {
        let Some(group) = self.groups.get(&first) else { return false };
        // Short blocks use short lists, since clearing long lists would take longer than the
        // decoding.
        let symbols = usize::from(group.coverage.count + self.limits.surplus);
        if symbols <= USUAL_BLOCK {
            self.decode_up_to::<USUAL_BLOCK>(first, sink)
        } else {
            self.decode_up_to::<MAX_BLOCK>(first, sink)
        }
    }

    fn decode_up_to<const MAX: usize>(&mut self, first: u64, sink: &mut dyn SymbolSink) -> bool {
        let Some(group) = self.groups.get_mut(&first) else { return false };
        let Group { coverage, length, follower, .. } = group;
        let length = usize::from(*length);
        let offset = (coverage.first.0 - self.base) as usize;
        let mut known = [HeldSource::default(); MAX];
        let mut known_count = 0;
        let slots = self.slots.iter().skip(offset).take(usize::from(coverage.count));
        for (i, slot) in slots.enumerate() {
            if let Slot::Held(held) = slot
                && let Some(entry) = known.get_mut(known_count)
            {
                // A source longer than the repairs contradicts them; it is cut so that it does no
                // harm.
                let bytes = held.payload();
                let bytes = bytes.get(..length).unwrap_or(bytes);
                *entry = HeldSource { index: i as u16, bytes };
                known_count += 1;
            }
        }
        let mut repairs = [HeldRepair::default(); MAX];
        let mut repair_count = 0;
        for ((key, bytes), entry) in follower.repairs.iter().zip(repairs.iter_mut()) {
            *entry = HeldRepair { key: *key, bytes: &bytes[..length] };
            repair_count += 1;
        }
        let mut recovered = 0;
        let (whole, pool) = (&mut self.whole, &mut self.pool);
        let result = follower.decoder.recover(
            &known[..known_count],
            &repairs[..repair_count],
            &mut self.work,
            &mut |index, bytes| {
                recovered += 1;
                match whole {
                    None => sink.recovered(bytes),
                    Some(whole) => whole.keep(offset + usize::from(index), bytes, pool),
                }
            },
        );
        self.decoded += recovered;
        let is_ok = result.is_ok();
        self.place_recovered(is_ok);
        is_ok
    }
}
