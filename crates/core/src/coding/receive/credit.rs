//! The credit for symbols: how far ahead of the sender's floor they may be.

use super::ReceiveBlocks;

impl ReceiveBlocks {
    /// Holds at most `credit` symbols from now on, which are no fewer than before.
    pub fn raise_credit(&mut self, credit: u64) {
        self.credit = self.credit.max(credit);
    }

    /// A new limit worth announcing: a quarter of the credit has been freed.
    pub fn new_limit(&mut self) -> Option<u64> {
        let limit = self.base + self.credit;
        (limit >= self.limit + self.credit / 4).then(|| {
            self.limit = limit;
            limit
        })
    }

    /// The limit in force.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}
