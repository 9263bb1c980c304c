//! The receiver's coding blocks. Source symbols are delivered at once; repairs wait until a block's
//! symbols suffice to decode the missing ones.

use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

use anabranch_policy::code::{
    CodeLimits, Coverage, Decoder, ErasureCode, SlidingDecoder, Workspace,
};
use anabranch_policy::view::SymbolId;

use super::pool::{Buffer, Pool};
use super::{MAX_BLOCK, most_sources};
use crate::runs::Runs;

mod credit;
mod groups;
mod sink;
mod sliding;
mod whole;
mod work;

pub use sink::SymbolSink;
use whole::Whole;
use work::Budget;

/// The peer broke a rule of coding; closes the connection with code `CODING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodingViolation {
    /// A symbol or repair reaches beyond the advertised credit.
    Credit,
    /// A symbol is longer than agreed.
    Length,
    /// A repair's coverage is empty, too large, or overlaps another block.
    Coverage,
    /// A repair's key is out of range.
    Key,
}

/// Capacity, in repairs, that the list of a recycled follower keeps.
const SPARE_REPAIRS: usize = 32;

/// Most recovered blocks remembered above the first missing symbol, for reports to the sender.
const MAX_RECOVERED: usize = 64;

/// The fate of an arriving symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The symbol was new, and has been delivered or is of use for decoding.
    New,
    /// The symbol was held already, or is not needed any more.
    Redundant,
}

#[derive(Debug)]
enum Slot {
    Missing,
    /// Delivered; the bytes are kept for decoding and for pieces read in place.
    Held(Held),
    /// Delivered, and not needed for decoding.
    Done,
}

#[derive(Debug)]
struct Held {
    bytes: Buffer,
    length: u16,
    /// Pieces left in place by the sink and not read yet.
    pieces: u16,
}

impl Held {
    fn payload(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Group {
    coverage: Coverage,
    missing: u16,
    /// Length of every repair.
    length: u16,
    follower: Follower,
}

/// Decoder and repairs of a waiting block; recycled for later blocks.
#[derive(Debug)]
struct Follower {
    decoder: Box<dyn Decoder>,
    repairs: Vec<(u32, Buffer)>,
}

impl Group {
    /// Independent symbols that the group still needs; at least 1, since it would not wait otherwise.
    fn deficit(&self) -> u16 {
        self.follower.decoder.deficit().max(1)
    }
}

/// Source symbols and repairs held by the receiver.
#[derive(Debug)]
pub struct ReceiveBlocks {
    code: Box<dyn ErasureCode>,
    limits: CodeLimits,
    /// Symbol id of `slots[0]`; lower symbols are no longer held.
    base: u64,
    /// Highest floor that the sender has announced.
    floor: u64,
    slots: VecDeque<Slot>,
    /// Lowest symbol not held.
    first_missing: u64,
    /// Repairs held, of all blocks.
    held_repairs: u64,
    /// Blocks known from repairs and not yet decoded, by first symbol.
    groups: BTreeMap<u64, Group>,
    spare: Vec<Follower>,
    /// Decoder of a code whose repairs may overlap. There are then no groups.
    sliding: Option<Box<dyn SlidingDecoder>>,
    /// Coverages without missing symbols although an earlier symbol is missing, the newest last.
    recovered: Vec<Coverage>,
    work: Workspace,
    budget: Budget,
    pool: Pool,
    /// Symbols accepted above the sender's floor.
    credit: u64,
    /// Limit advertised last: symbol ids below it are accepted.
    limit: u64,
    decoded: u64,
    out_of_order: u64,
    repeated_bytes: u64,
    /// Where blocks end, if they are delivered as a whole.
    whole: Option<Whole>,
    /// Symbols that the sender has given up, and all below the first missing one.
    given_up: Runs,
    /// Ranges that `give_up` has newly given up; reused.
    fresh: Vec<Range<u64>>,
}

impl ReceiveBlocks {
    /// A receiver of at most `credit` symbols of at most `symbol_capacity` bytes, and `credit` +
    /// [`MAX_BLOCK`] repairs.
    pub fn new(code: Box<dyn ErasureCode>, symbol_capacity: usize, credit: u64) -> Self {
        let limits = code.limits();
        let dearest = code.recovery_work(most_sources(&limits), symbol_capacity);
        ReceiveBlocks {
            sliding: code.sliding_decoder(symbol_capacity),
            limits,
            code,
            base: 0,
            floor: 0,
            slots: VecDeque::new(),
            first_missing: 0,
            held_repairs: 0,
            groups: BTreeMap::new(),
            spare: Vec::new(),
            recovered: Vec::new(),
            work: Workspace::default(),
            budget: Budget::new(dearest),
            pool: Pool::new(symbol_capacity),
            credit,
            limit: credit,
            decoded: 0,
            out_of_order: 0,
            repeated_bytes: 0,
            whole: None,
            given_up: Runs::default(),
            fresh: Vec::new(),
        }
    }

    /// Symbols recovered by decoding so far.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    /// New source symbols that arrived while an earlier one was missing.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Bytes of source symbols that arrived although they had arrived or been decoded before.
    pub fn repeated_bytes(&self) -> u64 {
        self.repeated_bytes
    }

    /// Bytes of the buffers of symbols and repairs, free ones included, and of the list of symbols.
    pub fn memory(&self) -> u64 {
        self.pool.memory() + (self.slots.capacity() * size_of::<Slot>()) as u64
    }

    /// Frees all symbols when the connection is over and nothing is received any more.
    pub fn release(&mut self) {
        self.slots = VecDeque::new();
        self.groups.clear();
        self.spare = Vec::new();
        self.sliding = None;
        self.held_repairs = 0;
        self.pool = Pool::new(self.pool.size());
    }

    /// Symbols and repairs whose bytes are held: each has a buffer, and no other buffer is in use.
    #[cfg(any(test, feature = "testing"))]
    pub fn held(&self) -> usize {
        let sources = self.slots.iter().filter(|slot| matches!(slot, Slot::Held(_))).count();
        let held = sources + self.held_repairs as usize;
        assert_eq!(held, self.pool.in_use(), "a buffer was dropped, or counts twice");
        held
    }

    /// Lowest symbol not held: everything below has been delivered.
    pub fn first_missing(&self) -> SymbolId {
        SymbolId(self.first_missing)
    }

    /// The symbol after the highest one that is known.
    pub fn reached(&self) -> SymbolId {
        SymbolId(self.base + self.slots.len() as u64)
    }

    /// Whether a symbol has arrived or been decoded.
    pub fn holds(&self, id: SymbolId) -> bool {
        !self.is_missing(id.0)
    }

    /// First symbol and missing count of blocks that wait for more, oldest first.
    pub fn deficits(&self) -> impl Iterator<Item = (SymbolId, u16)> + '_ {
        let first = self.first_missing();
        let sliding = self.sliding.as_ref().filter(|_| first < self.reached());
        let sliding = sliding.map(|decoder| (first, decoder.deficit(first)));
        let groups = self.groups.values().map(|group| (group.coverage.first, group.deficit()));
        sliding.into_iter().chain(groups)
    }

    /// First symbols of recovered blocks above the first missing symbol, the newest first. Empty
    /// for codes with which acknowledgements alone show this to the sender.
    pub fn recovered(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.recovered.iter().rev().map(|coverage| coverage.first)
    }

    /// Notes that no symbol below `floor` is needed for decoding any more.
    #[inline]
    pub fn raise_floor(&mut self, floor: u64, sink: &mut dyn SymbolSink) {
        self.floor = self.floor.max(floor);
        if floor > self.base {
            self.forget_below(floor, sink);
        }
    }

    /// Passes a held symbol's payload to `read`, which returns whether it has read a piece to its
    /// end.
    #[inline]
    pub fn read_piece(&mut self, id: SymbolId, read: impl FnOnce(&[u8]) -> bool) {
        let offset = self.offset(id.0);
        if let Some(Slot::Held(held)) = offset.and_then(|offset| self.slots.get_mut(offset))
            && read(held.payload())
        {
            held.pieces = held.pieces.saturating_sub(1);
        }
    }

    /// Gives the buffer of a held symbol back; the sink is told if pieces in it are unread.
    #[inline]
    fn free(&mut self, id: u64, slot: Slot, sink: &mut dyn SymbolSink) {
        if let Slot::Held(held) = slot {
            if held.pieces > 0 {
                sink.forgotten(SymbolId(id), held.payload());
            }
            self.pool.put(held.bytes);
        }
    }

    fn forget_below(&mut self, floor: u64, sink: &mut dyn SymbolSink) {
        // Only delivered symbols are discarded, whatever floor the sender announces.
        let waiting = self.groups.first_key_value().map_or(u64::MAX, |(first, _)| *first);
        let delivered = self.whole.as_ref().map_or(u64::MAX, Whole::delivered);
        let floor = floor.min(self.first_missing).min(waiting).min(delivered);
        while self.base < floor {
            if let Some(slot) = self.slots.pop_front() {
                self.free(self.base, slot, sink);
            }
            self.base += 1;
        }
    }

    /// Stops waiting for the `count` symbols from `first`, which the sender will not send or repair
    /// any more. Beyond the first missing symbol, at most [`MAX_BLOCK`] are abandoned per call.
    pub fn abandon(&mut self, first: SymbolId, count: u64, sink: &mut dyn SymbolSink) {
        let end = first.0.saturating_add(count).min(self.limit);
        let from = first.0.max(self.first_missing);
        let most = if from == self.first_missing { u64::MAX } else { MAX_BLOCK as u64 };
        let end = end.min(from.saturating_add(most));
        if from < end {
            self.give_up(from, end, sink);
        }
        if first.0 <= self.base {
            self.deliver_up_to(end, sink);
            self.raise_floor(end, sink);
        }
    }

    /// Gives up the symbols from `from` to `end` that were not given up before.
    fn give_up(&mut self, from: u64, end: u64, sink: &mut dyn SymbolSink) {
        self.given_up.raise(self.first_missing);
        let mut fresh = core::mem::take(&mut self.fresh);
        self.given_up.insert(from, end, |from, end| fresh.push(from..end));
        let news = !fresh.is_empty();
        for ids in fresh.drain(..) {
            self.take_apart(&ids);
            self.reach(ids.end - 1);
            for id in ids.clone() {
                if self.is_missing(id)
                    && let Some(decoder) = &mut self.sliding
                {
                    decoder.give_up(SymbolId(id));
                }
            }
            self.finish(ids, sink);
        }
        self.fresh = fresh;
        if news {
            self.advance(sink);
        }
    }

    /// Marks symbols as done: neither needed for decoding nor waited for.
    fn finish(&mut self, ids: Range<u64>, sink: &mut dyn SymbolSink) {
        for id in ids {
            let Some(offset) = self.reach(id) else { continue };
            let slot = core::mem::replace(&mut self.slots[offset], Slot::Done);
            if let (Some(_), Slot::Held(held)) = (&self.whole, &slot) {
                sink.recovered(held.payload());
            }
            self.free(id, slot, sink);
        }
    }

    /// Adds to the decoding budget for a packet of `bytes` bytes that arrived, whatever it carries.
    #[inline]
    pub fn on_packet(&mut self, bytes: usize) {
        self.budget.earn(bytes);
    }

    /// Passes an arriving source symbol to `sink` if it is new, and then all newly decoded symbols.
    pub fn on_source(
        &mut self,
        id: SymbolId,
        payload: &[u8],
        sink: &mut dyn SymbolSink,
    ) -> Result<Arrival, CodingViolation> {
        if payload.len() > self.pool.size() {
            return Err(CodingViolation::Length);
        }
        if id.0 >= self.limit {
            return Err(CodingViolation::Credit);
        }
        let missing = |offset: &usize| {
            self.slots.get(*offset).is_none_or(|slot| matches!(slot, Slot::Missing))
        };
        let Some(offset) = self.offset(id.0).filter(missing) else {
            self.repeated_bytes += payload.len() as u64;
            return Ok(Arrival::Redundant);
        };
        self.out_of_order += u64::from(id.0 > self.first_missing);
        let pieces = if self.whole.is_some() { 0 } else { sink.arrived(id, payload) };
        let mut bytes = self.pool.take();
        bytes[..payload.len()].copy_from_slice(payload);
        let held = Slot::Held(Held { bytes, length: payload.len() as u16, pieces });
        if offset == self.slots.len() {
            self.slots.push_back(held);
        } else if let Some(offset) = self.reach(id.0) {
            self.slots[offset] = held;
        }
        if let Some(decoder) = &mut self.sliding {
            decoder.source(id, payload);
            self.take_recovered(sink);
        }
        if let Some(group) = self.group_of(id.0) {
            group.missing -= 1;
            let first = group.coverage.first.0;
            group.follower.decoder.source((id.0 - first) as u16);
            self.try_decode(first, sink);
        }
        self.advance(sink);
        Ok(Arrival::New)
    }

    /// Processes a repair that arrived. Passes all symbols that it completes to `sink`.
    pub fn on_repair(
        &mut self,
        coverage: Coverage,
        key: u32,
        payload: &[u8],
        sink: &mut dyn SymbolSink,
    ) -> Result<Arrival, CodingViolation> {
        let count = u64::from(coverage.count);
        if count == 0 || count > self.longest_block() {
            return Err(CodingViolation::Coverage);
        }
        if key >= self.limits.keys(coverage.count) {
            return Err(CodingViolation::Key);
        }
        if payload.is_empty() || payload.len() > self.pool.size() {
            return Err(CodingViolation::Length);
        }
        let end = coverage.first.0.checked_add(count).ok_or(CodingViolation::Credit)?;
        if end > self.limit {
            return Err(CodingViolation::Credit);
        }
        self.note_block(coverage.first.0, end);
        if end <= self.first_missing {
            self.deliver_whole(sink);
            return Ok(Arrival::Redundant);
        }
        if self.sliding.is_some() {
            return Ok(self.slide(coverage, key, payload, sink));
        }
        // The sender abandoned this block, and its new floor overtook this repair and the ABANDON
        // frame for the block's missing symbols.
        if coverage.first.0 < self.base && end <= self.floor {
            return Ok(Arrival::Redundant);
        }
        if !self.group_exists(coverage, payload.len() as u16)? {
            self.note_recovered(coverage);
            return Ok(Arrival::Redundant);
        }
        let is_oldest = coverage.first.0 <= self.first_missing;
        let Some(group) = self.groups.get_mut(&coverage.first.0) else {
            return Ok(Arrival::Redundant);
        };
        let Follower { decoder, repairs } = &mut group.follower;
        // The oldest block may exceed the credit; otherwise repairs held for other blocks could block it for ever.
        let room = repairs.len() < usize::from(coverage.count + self.limits.surplus)
            && (is_oldest || self.held_repairs < self.credit);
        let held = repairs.iter().any(|(held, _)| *held == key);
        let kept = !held && room && decoder.repair(key);
        if kept {
            let mut bytes = self.pool.take();
            bytes[..payload.len()].copy_from_slice(payload);
            repairs.push((key, bytes));
            self.held_repairs += 1;
        }
        // Even if this repair is redundant, its packet may have earned the work that decoding waits for.
        let is_recovered = self.try_decode(coverage.first.0, sink);
        self.advance(sink);
        Ok(if kept || is_recovered { Arrival::New } else { Arrival::Redundant })
    }

    /// Most source symbols that a repair may cover.
    fn longest_block(&self) -> u64 {
        most_sources(&self.limits).into()
    }

    /// The place of a symbol's slot; `None` if it is below the floor.
    #[inline]
    fn offset(&self, id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(self.base)?).ok()
    }

    /// Makes the slot of a symbol exist; `None` if it is below the floor.
    fn reach(&mut self, id: u64) -> Option<usize> {
        let offset = self.offset(id)?;
        while self.slots.len() <= offset {
            self.slots.push_back(Slot::Missing);
        }
        Some(offset)
    }

    fn slot(&self, id: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(id.checked_sub(self.base)?).ok()?)
    }

    fn is_missing(&self, id: u64) -> bool {
        id >= self.base && matches!(self.slot(id), None | Some(Slot::Missing))
    }

    fn is_done(&self, id: u64) -> bool {
        matches!(self.slot(id), Some(Slot::Done))
    }

    fn advance(&mut self, sink: &mut dyn SymbolSink) {
        while let Some(offset) = self.offset(self.first_missing)
            && let Some(Slot::Held(..) | Slot::Done) = self.slots.get(offset)
        {
            self.first_missing += 1;
        }
        if let Some(decoder) = &mut self.sliding {
            decoder.advance(SymbolId(self.first_missing));
        }
        if !self.recovered.is_empty() {
            let first_missing = self.first_missing;
            self.recovered.retain(|coverage| coverage.end() > first_missing);
        }
        self.deliver_whole(sink);
        // A block with a missing symbol begins less than a block's length before `first_missing`.
        // Symbols below that are not needed, and are best freed while in the cache.
        let floor = self.first_missing.saturating_sub(self.longest_block() - 1);
        self.raise_floor(floor, sink);
    }
}
