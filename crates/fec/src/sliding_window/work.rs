//! A work budget that grows with the bytes that arrive. It limits the work that a sender can cause.

/// Work granted for each byte that arrives. Honest symbols need most work if half of a full window
/// is lost: with 128 equations held, a source and a repair of 1370 bytes each together cause 382
/// additions, which is 300 units of work for each byte.
const FOR_EACH_BYTE: u64 = 512;
/// Bytes of the frame around a symbol, which earn work too.
const FRAME: u64 = 8;
/// The most work that may be saved up.
const MOST: u64 = 32 << 20;
/// Fixed work of an addition, on top of the work for its bytes.
const CALL: usize = 256;
/// Work of examining an equation whose row is not in the cache.
const LOOK: usize = 64;

/// The work that may still be done. A unit is one byte that is multiplied and added.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn new() -> Self {
        Budget(MOST)
    }

    #[cfg(test)]
    pub(super) fn of(work: u64) -> Self {
        Budget(work)
    }

    /// A symbol of `bytes` bytes has arrived.
    pub(super) fn earn(&mut self, bytes: usize) {
        let earned = (bytes as u64).saturating_add(FRAME).saturating_mul(FOR_EACH_BYTE);
        self.0 = self.0.saturating_add(earned).min(MOST);
    }

    /// Spends the work of this many additions of `bytes` bytes. Returns false and spends nothing if
    /// too little is left.
    #[must_use]
    pub(super) fn spend(&mut self, additions: usize, bytes: usize) -> bool {
        self.pay(Self::price(additions, bytes))
    }

    /// Units of work for this many additions of `bytes` bytes.
    pub(super) fn price(additions: usize, bytes: usize) -> u64 {
        (additions * (bytes + CALL)) as u64
    }

    /// The work of examining this many equations, plus that of additions as in [`Self::price`].
    pub(super) fn price_among(equations: usize, additions: usize, bytes: usize) -> u64 {
        (equations * LOOK) as u64 + Self::price(additions, bytes)
    }

    /// Whether this much work is left.
    pub(super) fn affords(&self, work: u64) -> bool {
        work <= self.0
    }

    /// Spends this much work. Returns false and spends nothing if too little is left.
    #[must_use]
    pub(super) fn pay(&mut self, work: u64) -> bool {
        match self.0.checked_sub(work) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}
