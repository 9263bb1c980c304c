//! The sender's coding blocks: source symbols kept until the receiver no longer needs them, repairs made on demand, and
//! which symbols are in flight, acknowledged or due.

mod block;
mod early;
mod fates;
mod matching;
mod queued;
mod repairs;
mod resegment;
mod sliding;
mod take;
mod tally;

use core::ops::Add;
use core::time::Duration;
use std::collections::VecDeque;

use anabranch_policy::code::{CodeLimits, Coverage, ErasureCode};
use anabranch_policy::view::{BlockId, BlockView, SymbolId, SymbolSpace, TrafficClass};
use anabranch_types::Time;

use super::most_sources;
use super::pool::Pool;
use crate::path::sent::Carried;
use block::{Block, Source, Symbol, SymbolState};
pub use take::Written;
pub use tally::BlockRecord;

/// Most repairs of one block whose states are kept; after them, its symbols are sent again from the start.
const MAX_REPAIRS: u32 = 4096;

/// Most recovered blocks for whose last packets' fates the sender waits.
const MAX_TRAILING: usize = 256;

/// A symbol taken for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingSymbol {
    /// Source symbol or repair, with its block.
    pub carried: Carried,
    /// Symbols that a repair covers; for a source, the symbol alone.
    pub coverage: Coverage,
    /// Length of the symbol, bytes.
    pub length: u16,
    /// Whether this is a source symbol that was sent before.
    pub again: bool,
}

/// Changes made by resolving a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Whether the symbol is newly known to be received.
    pub news: bool,
    /// Whether every packet of the block's first transmission is now resolved.
    pub first_resolved: bool,
}

/// Totals for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Blocks opened.
    pub blocks: u64,
    /// Source symbols sent for the first time.
    pub sources: u64,
    /// Repairs sent.
    pub repairs: u64,
    /// Repairs still in flight when their block turned out to be recovered.
    pub repairs_unneeded: u64,
    /// Source symbols sent again.
    pub resends: u64,
    /// Blocks whose repairs ran out, so that symbols were sent again from the start.
    pub wraps: u64,
    /// Rounds in which blocks got further repairs. Reactions to missing symbols of one block within
    /// a round trip of the first count as one round.
    pub repair_rounds: u64,
    /// Source symbols counted for the loss before repair: an early copy arrived, or all early
    /// copies are lost. A copy is early if it left before the fate of any copy was known.
    pub settled: u64,
    /// Symbols among `settled` that lost every early copy.
    pub lost_early: u64,
    /// Sum, over all openings of a block, of the number of blocks unrecovered at that time,
    /// including the new one.
    pub live_at_openings: u64,
}

impl Add for Totals {
    type Output = Totals;

    fn add(self, other: Totals) -> Totals {
        Totals {
            blocks: self.blocks + other.blocks,
            sources: self.sources + other.sources,
            repairs: self.repairs + other.repairs,
            repairs_unneeded: self.repairs_unneeded + other.repairs_unneeded,
            resends: self.resends + other.resends,
            wraps: self.wraps + other.wraps,
            repair_rounds: self.repair_rounds + other.repair_rounds,
            settled: self.settled + other.settled,
            lost_early: self.lost_early + other.lost_early,
            live_at_openings: self.live_at_openings + other.live_at_openings,
        }
    }
}

/// All blocks of a symbol space that the receiver has not recovered.
#[derive(Debug)]
pub struct SendBlocks {
    code: Box<dyn ErasureCode>,
    limits: CodeLimits,
    /// Most bytes, sources times symbol size, that the peer decodes in one block.
    max_block: u64,
    /// The views of `blocks`, in the same order.
    views: Vec<BlockView>,
    blocks: VecDeque<Block>,
    spare: Vec<Block>,
    pool: Pool,
    next_block: u64,
    next_symbol: u64,
    totals: Totals,
    /// Bound on the length of all symbols in `blocks`.
    widest: u16,
    /// Recovered blocks with packets of the first transmission still in flight, and the number of
    /// these packets. Their fate counts for loss estimates although the data no longer needs them.
    trailing: VecDeque<(BlockId, u16)>,
    undecided: early::Undecided,
    sliding: Option<sliding::Sliding>,
    /// Counts the packets of each block, if blocks are watched.
    tally: Option<Box<tally::Tally>>,
}

impl SendBlocks {
    /// A sender without blocks, for symbols of at most `symbol_capacity` bytes and coded blocks of
    /// at most `max_block` bytes in all.
    pub fn new(code: Box<dyn ErasureCode>, symbol_capacity: usize, max_block: u64) -> Self {
        let limits = code.limits();
        SendBlocks {
            sliding: limits.slides.map(|_| sliding::Sliding::new(code.encoder(), limits.sources)),
            limits,
            max_block,
            code,
            views: Vec::new(),
            blocks: VecDeque::new(),
            spare: Vec::new(),
            pool: Pool::new(symbol_capacity),
            next_block: 0,
            next_symbol: 0,
            totals: Totals::default(),
            widest: 0,
            trailing: VecDeque::new(),
            undecided: early::Undecided::default(),
            tally: None,
        }
    }

    /// Moves the sender to another symbol space. No block may have been opened.
    #[must_use]
    pub fn in_space(mut self, space: SymbolSpace) -> Self {
        (self.next_block, self.next_symbol) = (space.first_block().0, space.symbol(0).0);
        self
    }

    /// Bytes of the buffers of symbols and repairs, free ones included, and of the list of blocks.
    pub fn memory(&self) -> u64 {
        let blocks = (self.blocks.capacity() + self.spare.len()) * size_of::<Block>();
        self.pool.memory() + blocks as u64
    }

    /// Frees all blocks when the connection is over and nothing is sent any more.
    pub fn release(&mut self) {
        (self.views, self.blocks, self.spare) = (Vec::new(), VecDeque::new(), Vec::new());
        self.sliding = None;
        self.pool = Pool::new(self.pool.size());
    }

    /// Symbols and repairs whose bytes are held: each has a buffer, and no other buffer is in use.
    #[cfg(any(test, feature = "testing"))]
    pub fn held(&self) -> usize {
        let blocks = self.blocks.iter().chain(&self.spare);
        let of_blocks: usize = blocks.map(|block| block.sources.len() + block.prepared.len()).sum();
        let held = of_blocks + self.sliding.as_ref().map_or(0, sliding::Sliding::held);
        assert_eq!(held, self.pool.in_use(), "a buffer was dropped, or counts twice");
        held
    }

    /// Most symbols of a block, sources and repairs together.
    pub fn max_symbols(&self) -> u16 {
        self.limits.symbols.min(u16::MAX.into()) as u16
    }

    /// Most source symbols of a block with symbols of `symbol_size` bytes.
    pub fn max_sources(&self, symbol_size: u16) -> u16 {
        let most = most_sources(&self.limits);
        if !self.limits.repairs {
            return most;
        }
        let decodable = self.max_block / u64::from(symbol_size.max(1));
        most.min(u16::try_from(decodable).unwrap_or(u16::MAX)).max(1)
    }

    /// Whether the code makes repairs at all.
    pub fn makes_repairs(&self) -> bool {
        self.limits.repairs
    }

    /// Whether acknowledgements alone show that a block is recovered. If not, the receiver has to
    /// report it.
    pub fn any_symbols_suffice(&self) -> bool {
        self.limits.any_symbols_suffice
    }

    /// Most repairs of a block of `sources` symbols.
    fn keys(&self, sources: u16) -> u16 {
        self.limits.keys(sources).min(MAX_REPAIRS) as u16
    }

    /// Unrecovered blocks, oldest first.
    pub fn views(&self) -> &[BlockView] {
        &self.views
    }

    /// Counts the packets of each block that opens from now on.
    pub fn watch_blocks(&mut self) {
        self.tally.get_or_insert_default();
    }

    /// The watched blocks that were recovered and whose packets' fates have all become known since
    /// the last call.
    pub fn take_records(&mut self) -> Vec<BlockRecord> {
        self.tally.as_mut().map(|tally| tally.take()).unwrap_or_default()
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// All symbols below the returned one are known to be recovered.
    pub fn floor(&self) -> SymbolId {
        self.views.first().map_or(SymbolId(self.next_symbol), |view| view.first)
    }

    /// The id that the next source symbol gets.
    pub fn next_symbol(&self) -> SymbolId {
        SymbolId(self.next_symbol)
    }

    /// Whether everything sent has been recovered.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    #[inline]
    fn index(&self, id: BlockId) -> Option<usize> {
        // Blocks are numbered as they are opened and mostly retired in that order, so there are few
        // gaps.
        let first = self.views.first()?.id.0;
        let at = usize::try_from(id.0.checked_sub(first)?).ok()?;
        if self.views.get(at).is_some_and(|view| view.id == id) {
            return Some(at);
        }
        self.views.binary_search_by_key(&id, |view| view.id).ok()
    }

    /// The block that still takes source symbols, if there is one.
    pub fn open_block(&self) -> Option<&BlockView> {
        self.views.last().filter(|view| !view.closed)
    }

    /// Whether a source symbol is the last of a block that is closed.
    pub fn ends_block(&self, id: SymbolId) -> bool {
        let at = self.views.partition_point(|view| view.first <= id);
        let view = at.checked_sub(1).and_then(|at| self.views.get(at));
        view.is_some_and(|view| view.closed && view.first.0 + u64::from(view.sources) == id.0 + 1)
    }

    /// Payload of a full symbol of the open block.
    pub fn open_symbol_size(&self) -> Option<u16> {
        self.open_block().and(self.blocks.back()).map(|block| block.symbol_size)
    }

    /// Bound on the length of a block's symbols. Repairs of a code that slides may be longer, because they
    /// cover symbols of other blocks too.
    pub fn longest(&self, id: BlockId) -> usize {
        self.index(id).map_or(0, |index| usize::from(self.blocks[index].longest))
    }

    /// Opens a block for `sources` symbols of `symbol_size` bytes. The previous one must be closed.
    pub fn open(
        &mut self,
        now: Time,
        class: TrafficClass,
        sources: u16,
        symbol_size: u16,
    ) -> BlockId {
        let id = BlockId(self.next_block);
        self.next_block += 1;
        self.totals.blocks += 1;
        let spare = self.spare.pop();
        let mut block = spare.unwrap_or_else(|| Block::new(self.code.encoder()));
        let planned = sources.clamp(1, self.max_sources(symbol_size));
        block.symbol_size = symbol_size.min(self.pool.size() as u16);
        block.doubtful = !self.limits.any_symbols_suffice && !self.slides();
        self.blocks.push_back(block);
        self.views.push(BlockView {
            id,
            first: SymbolId(self.next_symbol),
            class,
            planned,
            opened: now,
            ..BlockView::default()
        });
        self.totals.live_at_openings += self.views.len() as u64;
        if let Some(tally) = &mut self.tally {
            tally.opened(id, SymbolId(self.next_symbol));
        }
        id
    }

    /// Adds a source symbol to the open block; `fill` writes it and returns its length. If the
    /// length is 0, no symbol is made. Returns the symbol and whether the block is full.
    pub fn push(
        &mut self,
        fill: impl FnOnce(SymbolId, &mut [u8]) -> usize,
    ) -> Option<(OutgoingSymbol, bool)> {
        let view = self.views.last_mut().filter(|view| !view.closed)?;
        let block = self.blocks.back_mut()?;
        let id = SymbolId(self.next_symbol);
        let mut bytes = self.pool.take();
        let length = fill(id, &mut bytes[..usize::from(block.symbol_size)]);
        if length == 0 {
            self.pool.put(bytes);
            return None;
        }
        self.next_symbol += 1;
        let length = length as u16;
        block.longest = block.longest.max(length);
        self.widest = self.widest.max(length);
        block.sources.push(Source { bytes, length, state: SymbolState::default() });
        view.sources += 1;
        let carried = Carried::Source(view.id, id);
        let coverage = Coverage { first: id, count: 1 };
        let taken = OutgoingSymbol { carried, coverage, length, again: false };
        Some((taken, view.sources >= view.planned))
    }

    /// Closes the open block, so that no further symbols join it. An empty block is dropped.
    pub fn close(&mut self) -> Option<BlockId> {
        let view = self.views.last_mut().filter(|view| !view.closed)?;
        if view.sources == 0 {
            let empty = view.id;
            self.views.pop();
            if let Some(tally) = &mut self.tally {
                tally.dropped(empty);
            }
            if let Some(block) = self.blocks.pop_back() {
                self.recycle(block);
            }
            return None;
        }
        view.closed = true;
        Some(view.id)
    }

    /// Plans `count` proactive repairs for a closed block.
    pub fn plan_repairs(&mut self, id: BlockId, count: u16) {
        if let Some(index) = self.index(id) {
            let keys = self.keys(self.views[index].sources);
            self.views[index].proactive_left = count.min(keys);
        }
    }

    /// Makes due `count` repairs that were planned after a source joined the block.
    pub fn add_repairs(&mut self, id: BlockId, count: u16) {
        if let Some(index) = self.index(id) {
            let (view, block) = (&mut self.views[index], &mut self.blocks[index]);
            block.repairs_due = block.repairs_due.saturating_add(count);
            view.due = view.due.saturating_add(count);
        }
    }

    /// Makes `count` more symbols due. They are fresh repairs; with a code that slides, lost symbols come first.
    ///
    /// Calls for one block within `rtt` of the first count as one round.
    pub fn add_due(&mut self, now: Time, id: BlockId, count: u16, rtt: Duration) {
        if let Some(index) = self.index(id) {
            let block = &mut self.blocks[index];
            if now >= block.round_ends {
                block.round_ends = now + rtt;
                self.totals.repair_rounds += 1;
            }
            let count = count - self.resend_lost(index, count.min(self.views[index].shortfall()));
            self.add_repairs(id, count);
        }
    }

    /// Makes the carried symbol due again, unless it has arrived, is still in flight or waits in a
    /// queue. Instead of a repair, a fresh repair becomes due.
    pub fn make_due(&mut self, carried: Carried) {
        let Some((index, symbol)) = self.locate(carried) else { return };
        let state = self.blocks[index].state(symbol);
        if state.is_none_or(|state| state.copies == 0) {
            self.flag_due(index, symbol);
        }
    }

    /// Makes the carried symbol due again, even if a packet with it is in flight.
    pub fn make_due_copy(&mut self, carried: Carried) {
        if let Some((index, symbol)) = self.locate(carried) {
            self.flag_due(index, symbol);
        }
    }

    fn flag_due(&mut self, index: usize, symbol: Symbol) {
        let view = &mut self.views[index];
        let block = &mut self.blocks[index];
        let Some(state) = block.state(symbol) else { return };
        if state.received || state.due || state.queued != 0 {
            return;
        }
        if state.carried != 0 {
            view.lost_on |= 1 << state.last;
        }
        match symbol {
            Symbol::Source(_) => state.due = true,
            Symbol::Repair(_) => block.repairs_due = block.repairs_due.saturating_add(1),
        }
        view.due = view.due.saturating_add(1);
    }

    #[inline]
    fn locate(&self, carried: Carried) -> Option<(usize, Symbol)> {
        let index = self.index(carried.block())?;
        let symbol = match carried {
            Carried::Source(_, id) => {
                Symbol::Source(usize::try_from(id.0.checked_sub(self.views[index].first.0)?).ok()?)
            }
            Carried::Repair(_, key) => Symbol::Repair(key as usize),
        };
        Some((index, symbol))
    }

    fn recycle(&mut self, mut block: Block) {
        self.keep_history(&mut block);
        block.reset(&mut self.pool);
        self.spare.push(block);
    }
}
