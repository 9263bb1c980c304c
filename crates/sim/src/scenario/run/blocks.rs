//! Statistics of a flow's blocks: the times of their first transmission and completion, and their
//! losses.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::connection::BlockRecord;
use anabranch_types::Time;

/// The complete blocks of one flow. Blocks are slices of its streams, or its coding blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Whether losses of the blocks are known.
    counts_losses: bool,
    whole: Vec<Whole>,
    /// Number of lost packets with data of each slice, by transfer and slice number.
    lost: BTreeMap<(u64, u64), u32>,
    coding: Coding,
}

/// Progress of the source symbols of a flow whose coding blocks are logged.
#[derive(Debug, Default)]
struct Coding {
    /// The number of symbols sent so far, at each time when it grew.
    sent: Vec<(u64, Time)>,
    /// When each symbol was received or decoded, until its block is complete.
    held: BTreeMap<u64, Time>,
    /// Symbols that the receiver holds although it lacks an earlier one, `next`.
    ahead: BTreeSet<u64>,
    next: u64,
    /// The number of symbols held without a gap, at each time when it grew.
    in_order: Vec<(u64, Time)>,
}

/// A complete block.
#[derive(Clone, Copy, Debug)]
struct Whole {
    transfer: u64,
    /// Number of the block's first symbol or of the slice, and that of the next block.
    place: u64,
    next: u64,
    sent: Time,
    at: Time,
    /// Number of the block's packets that were lost, if it was recorded with the block.
    lost: Option<u32>,
}

/// Figures that are reported of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    /// Time from the block's first transmission until the block was complete, s.
    pub delay: f64,
    /// Time from the block's first transmission until this block and all before it were complete,
    /// s; `None` if an earlier block never was.
    pub in_order: Option<f64>,
    /// Number of the block's packets that were lost, if it is known.
    pub lost: Option<u32>,
}

impl Coding {
    fn symbol_held(&mut self, symbol: u64, time: Time) {
        self.held.insert(symbol, time);
        self.ahead.insert(symbol);
        if symbol == self.next {
            while self.ahead.remove(&self.next) {
                self.next += 1;
            }
            self.in_order.push((self.next, time));
        }
    }
}

/// The time of the first entry of `ends` that is above `place`.
fn reached(ends: &[(u64, Time)], place: u64) -> Option<Time> {
    let after = ends.partition_point(|(end, _)| *end <= place);
    ends.get(after).map(|(_, time)| *time)
}

impl Blocks {
    /// A record without blocks. `counts_losses` says whether the losses of blocks will be known.
    pub(super) fn new(counts_losses: bool) -> Self {
        let (whole, lost, coding) = (Vec::new(), BTreeMap::new(), Coding::default());
        Blocks { counts_losses, whole, lost, coding }
    }

    /// Records that a slice that was first sent at `sent` was complete at `at`.
    pub(super) fn slice_whole(&mut self, transfer: u64, place: u64, sent: Time, at: Time) {
        self.whole.push(Whole { transfer, place, next: place + 1, sent, at, lost: None });
    }

    /// Records the loss of a packet with data of a slice.
    pub(super) fn slice_lost(&mut self, transfer: u64, place: u64) {
        *self.lost.entry((transfer, place)).or_default() += 1;
    }

    /// Records that all source symbols below `end` had been sent by `time`.
    pub(super) fn symbols_sent(&mut self, end: u64, time: Time) {
        self.coding.sent.push((end, time));
    }

    /// Records that a source symbol was received or decoded at `time`.
    pub(super) fn symbol_held(&mut self, symbol: u64, time: Time) {
        self.coding.symbol_held(symbol, time);
    }

    /// Adds a coding block once the fate of all its packets is known.
    pub(super) fn complete(&mut self, record: BlockRecord) {
        let (place, next) = (record.first.0, record.first.0 + u64::from(record.sources));
        let held: Vec<u64> = self.coding.held.range(place..next).map(|(id, _)| *id).collect();
        let times = held.iter().filter_map(|id| self.coding.held.remove(id));
        let at = times.max();
        // A block that was given up, or sent before recording began, has no times.
        if let Some(at) = at.filter(|_| held.len() as u64 == next - place)
            && let Some(sent) = reached(&self.coding.sent, place)
        {
            let lost = Some(record.lost);
            self.whole.push(Whole { transfer: 0, place, next, sent, at, lost });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.whole.len()
    }

    /// The longest delay of the blocks after the first `known`; `None` if there are none.
    pub(super) fn longest_since(&self, known: usize) -> Option<Duration> {
        self.whole.iter().skip(known).map(|whole| whole.at.since(whole.sent)).max()
    }

    /// All blocks that were first sent at `measured_from` or later, in the order of transfers and
    /// places.
    pub(super) fn all(&self, measured_from: Time) -> Vec<Block> {
        let mut whole = self.whole.clone();
        whole.sort_by_key(|whole| (whole.transfer, whole.place));
        let mut blocks = Vec::new();
        let mut before: Option<(u64, u64)> = None;
        // When all blocks up to the last one were complete; `None` after a gap.
        let mut there = Some(Time::ZERO);
        for block in &whole {
            let follows = before == Some((block.transfer, block.place));
            let begins = before.is_none_or(|(transfer, _)| transfer != block.transfer);
            there = match (begins, follows) {
                (true, _) => Some(block.at),
                (false, true) => there.map(|time| time.max(block.at)),
                (false, false) => None,
            };
            before = Some((block.transfer, block.next));
            if block.sent < measured_from {
                continue;
            }
            let of_slice = self.lost.get(&(block.transfer, block.place)).copied().unwrap_or(0);
            let in_order = match block.lost {
                Some(_) => reached(&self.coding.in_order, block.next - 1),
                None => there,
            };
            blocks.push(Block {
                delay: block.at.since(block.sent).as_secs_f64(),
                in_order: in_order.map(|time| time.since(block.sent).as_secs_f64()),
                lost: self.counts_losses.then_some(block.lost.unwrap_or(of_slice)),
            });
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::view::SymbolId;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn slices_are_in_order_when_those_before_them_are_whole() {
        let mut blocks = Blocks::new(true);
        blocks.slice_lost(0, 0);
        blocks.slice_lost(0, 0);
        blocks.slice_whole(0, 1, ms(10), ms(30));
        blocks.slice_whole(0, 0, ms(0), ms(70));
        blocks.slice_whole(0, 3, ms(20), ms(90));
        let all = blocks.all(ms(0));
        let expected =
            [(0.070, Some(0.070), Some(2)), (0.020, Some(0.060), Some(0)), (0.070, None, Some(0))];
        let found: Vec<_> =
            all.iter().map(|block| (block.delay, block.in_order, block.lost)).collect();
        assert_eq!(found, expected);
        assert_eq!(blocks.longest_since(2), Some(Duration::from_millis(70)));
        assert_eq!(blocks.longest_since(3), None);
        assert_eq!(blocks.all(ms(5)).len(), 2);
    }

    #[test]
    fn a_coding_block_runs_from_its_first_symbol_to_the_last_that_is_decoded() {
        let mut blocks = Blocks::new(true);
        blocks.symbols_sent(2, ms(5));
        blocks.symbols_sent(4, ms(9));
        for (symbol, time) in [(0, 20), (3, 22), (1, 40), (2, 41)] {
            blocks.symbol_held(symbol, ms(time));
        }
        let record = |first, sources, lost| {
            let first = SymbolId(first);
            BlockRecord { first, sources, sent: 0, lost }
        };
        blocks.complete(record(2, 2, 0));
        blocks.complete(record(0, 2, 3));
        blocks.complete(record(4, 2, 0));
        let all = blocks.all(Time::ZERO);
        let first = Block { delay: 0.035, in_order: Some(0.035), lost: Some(3) };
        let second = Block { delay: 0.032, in_order: Some(0.032), lost: Some(0) };
        assert_eq!(all, [first, second]);
    }
}
