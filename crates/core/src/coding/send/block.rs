//! One coding block of the sender: its symbols and their states.

use anabranch_policy::code::{Coverage, Encoder};
use anabranch_types::Time;

use super::super::USUAL_BLOCK;
use super::super::pool::{Buffer, Pool};
use super::early::Early;
use super::repairs::Prepared;

/// State of one symbol, source or repair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SymbolState {
    /// Whether the receiver has the symbol.
    pub(super) received: bool,
    /// How many packets in flight carry the symbol.
    pub(super) copies: u8,
    /// Whether the symbol must be sent, or sent again.
    pub(super) due: bool,
    /// Path slots that have carried it.
    pub(super) carried: u16,
    /// Path slots on which it is in flight.
    pub(super) on: u16,
    /// Path slots whose queues hold it.
    pub(super) queued: u16,
    /// Path slot that carried it last.
    pub(super) last: u8,
    /// Early copies of the symbol: those that left before the fate of any was known.
    pub(super) early: Early,
    /// Whether the symbol's first packet belongs to the block's first transmission and its fate is
    /// not known yet.
    pub(super) first_open: bool,
}

impl SymbolState {
    /// Whether the symbol waits in a queue and is not in flight; the view counts it as queued.
    pub(super) fn waits(&self) -> bool {
        self.queued != 0 && self.copies == 0 && !self.received
    }
}

/// A source symbol, kept until the block is recovered.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) bytes: Buffer,
    pub(super) length: u16,
    pub(super) state: SymbolState,
}

/// State of a block that the sender keeps in addition to the block's view.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) sources: Vec<Source>,
    pub(super) repairs: Vec<SymbolState>,
    pub(super) encoder: Box<dyn Encoder>,
    /// For a code that slides: the coverage and the length of each repair.
    pub(super) covered: Vec<(Coverage, u16)>,
    /// For a code that slides: the coverage of the next repair.
    pub(super) reach: Option<Coverage>,
    /// Repairs made and not sent yet.
    pub(super) prepared: Prepared,
    /// How many fresh repairs are due, in addition to the symbols that are themselves marked as
    /// due.
    pub(super) repairs_due: u16,
    /// Length of the longest source, which is the length of every repair.
    pub(super) longest: u16,
    /// Payload of a full symbol.
    pub(super) symbol_size: u16,
    /// Where the sender continues after all repairs have been used: an index over sources, then
    /// repairs.
    pub(super) cursor: usize,
    /// Packets of the first transmission (sources and planned repairs) whose fate is not known yet.
    pub(super) first_open: u16,
    /// Whether the first transmission has been reported as resolved.
    pub(super) first_reported: bool,
    /// Distinct symbols acknowledged, and how many of them are sources.
    pub(super) acknowledged: u16,
    pub(super) sources_acknowledged: u16,
    /// Highest rank that the receiver reported. It may exceed `acknowledged` if acknowledgements
    /// were lost.
    pub(super) reported: u16,
    /// Acknowledged symbols beyond the reported rank, which did not raise the receiver's rank.
    pub(super) dependent: u16,
    /// Whether decoding may need more symbols than the block has sources.
    pub(super) doubtful: bool,
    /// For a code that slides: lost sources that repairs of any block replace.
    pub(super) matched: u16,
    /// Whether the receiver has reported that it recovered the block.
    pub(super) recovered: bool,
    /// Further repairs that become due before this time belong to the current round.
    pub(super) round_ends: Time,
}

impl Block {
    /// An empty block with room for the usual number of symbols.
    pub(super) fn new(encoder: Box<dyn Encoder>) -> Self {
        Block {
            sources: Vec::with_capacity(USUAL_BLOCK),
            repairs: Vec::with_capacity(USUAL_BLOCK),
            encoder,
            covered: Vec::new(),
            reach: None,
            prepared: Prepared::default(),
            repairs_due: 0,
            longest: 0,
            symbol_size: 0,
            cursor: 0,
            first_open: 0,
            first_reported: false,
            acknowledged: 0,
            sources_acknowledged: 0,
            reported: 0,
            dependent: 0,
            doubtful: false,
            matched: 0,
            recovered: false,
            round_ends: Time::ZERO,
        }
    }

    /// Empties the block for another use.
    pub(super) fn reset(&mut self, pool: &mut Pool) {
        for source in self.sources.drain(..) {
            pool.put(source.bytes);
        }
        self.repairs.clear();
        self.encoder.reset();
        self.covered.clear();
        self.reach = None;
        self.prepared.clear(pool);
        self.repairs_due = 0;
        self.longest = 0;
        self.cursor = 0;
        self.first_open = 0;
        self.first_reported = false;
        self.acknowledged = 0;
        self.sources_acknowledged = 0;
        self.reported = 0;
        self.dependent = 0;
        self.doubtful = false;
        self.matched = 0;
        self.recovered = false;
        self.round_ends = Time::ZERO;
    }

    /// Whether the receiver is known to have all `sources` of a closed block: it holds the sources
    /// themselves or, if any symbols suffice for the code, as many symbols as there are sources.
    /// With other codes, only the receiver knows when its symbols suffice.
    pub(super) fn is_recovered(&self, sources: u16, any_symbols_suffice: bool) -> bool {
        self.recovered
            || self.sources_acknowledged >= sources
            || (any_symbols_suffice && self.rank() >= sources)
    }

    /// Independent symbols that the receiver holds, as far as is known.
    fn rank(&self) -> u16 {
        self.acknowledged.saturating_sub(self.dependent).max(self.reported)
    }

    /// The rank. If as many symbols as sources may not suffice, it is below `sources` until the
    /// block is known to be recovered.
    pub(super) fn received(&self, sources: u16, any_symbols_suffice: bool) -> u16 {
        if !self.doubtful || self.is_recovered(sources, any_symbols_suffice) {
            self.rank()
        } else {
            self.rank().min(sources.saturating_sub(1))
        }
    }

    pub(super) fn state(&mut self, symbol: Symbol) -> Option<&mut SymbolState> {
        match symbol {
            Symbol::Source(index) => self.sources.get_mut(index).map(|s| &mut s.state),
            Symbol::Repair(key) => self.repairs.get_mut(key),
        }
    }
}

/// A symbol within its block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbol {
    /// By index.
    Source(usize),
    /// By key.
    Repair(usize),
}
