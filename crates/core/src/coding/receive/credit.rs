//! Which symbols are accepted: their symbol space, and how far they may be above the sender's
//! floor.

use anabranch_policy::view::{SymbolId, SymbolSpace};

use super::ReceiveBlocks;

impl ReceiveBlocks {
    /// Moves the receiver to another symbol space. Nothing may have arrived.
    #[must_use]
    pub fn in_space(mut self, space: SymbolSpace) -> Self {
        self.base = space.symbol(0).0;
        (self.floor, self.first_missing) = (self.base, self.base);
        self.limit = self.base + self.credit;
        self
    }

    /// Raises the limit on the symbols held to `credit`; it never falls.
    pub fn raise_credit(&mut self, credit: u64) {
        self.credit = self.credit.max(credit);
    }

    /// The new limit to announce, an ordinal, if it exceeds the last one by at least a quarter of the credit.
    pub fn new_limit(&mut self) -> Option<u64> {
        let limit = self.base + self.credit;
        (limit >= self.limit + (self.credit / 4).max(1)).then(|| {
            self.limit = limit;
            self.limit()
        })
    }

    /// The current limit, an ordinal.
    pub fn limit(&self) -> u64 {
        self.limit - self.space().symbol(0).0
    }

    /// The symbol space of this receiver.
    pub fn space(&self) -> SymbolSpace {
        SymbolId(self.base).space()
    }
}
