//! The peer's credit for symbols, and the floors that make the peer grant more.

use anabranch_policy::view::{SymbolId, SymbolSpace};

/// Which symbols of a space the peer accepts.
#[derive(Debug)]
pub(super) struct SymbolCredit {
    /// The peer accepts ordinals below this.
    limit: u64,
    /// Highest floor that any packet has told the peer.
    floor_told: SymbolId,
}

impl SymbolCredit {
    pub(super) fn new(space: SymbolSpace, limit: u64) -> Self {
        SymbolCredit { limit, floor_told: space.symbol(0) }
    }

    /// Raises the limit to `limit`, if it is higher: the peer accepts symbols below it.
    pub(super) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// How many symbols from `next` on the peer accepts.
    pub(super) fn left(&self, next: SymbolId) -> u64 {
        self.limit.saturating_sub(next.ordinal())
    }

    /// Whether a floor is above all floors that the peer was told.
    pub(super) fn is_news(&self, floor: SymbolId) -> bool {
        floor > self.floor_told
    }

    /// Notes that the peer is told a floor.
    pub(super) fn on_told(&mut self, floor: SymbolId) {
        self.floor_told = self.floor_told.max(floor);
    }
}
