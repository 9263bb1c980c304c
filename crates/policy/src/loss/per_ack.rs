//! MPLOT's estimator, one step per acknowledgement, in two readings of its eq. 2.

use anabranch_types::PathId;

use crate::loss::per_block::{VARIANCE, variance};
use crate::loss::tally::{ByBlock, ByPath, Count, Smoothed, VarianceFrom};
use crate::loss::{LossEstimator, Resolved};
use crate::registry::{Entry, Options, PolicyError};
use crate::view::{BlockId, LossView};

/// The registry entry of the estimator over resolved packets.
pub const PER_ACK: Entry = Entry {
    name: "per-ack",
    summary: "lost share of the block's resolved packets, smoothed by 1/2 at every acknowledgement",
    source: "MPLOT §III-A eqs 2 and 3, step per packet, over resolved packets",
    options: &[VARIANCE],
};

/// The registry entry of the estimator over sent packets.
pub const LITERAL: Entry = Entry {
    name: "literal",
    summary: "as per-ack, but counts packets still in flight as not delivered; overestimates",
    source: "MPLOT §III-A eqs 2 and 3, to the letter",
    options: &[VARIANCE],
};

/// S and R of eq. 2 for one block and path.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    sent: u64,
    resolved: Count,
}

impl Sent {
    /// S: packets sent if `literal`, else resolved ones.
    fn base(&self, literal: bool) -> u64 {
        if literal { self.sent.max(self.resolved.total()) } else { self.resolved.total() }
    }
}

/// Estimates per path and over the aggregate, one smoothing step per event.
#[derive(Clone, Debug)]
pub struct PerAck {
    blocks: ByBlock<ByPath<Sent>>,
    paths: ByPath<Smoothed>,
    aggregate: Smoothed,
    literal: bool,
    from: VarianceFrom,
}

fn make(options: &Options<'_>, literal: bool) -> Result<Box<dyn LossEstimator>, PolicyError> {
    Ok(Box::new(PerAck {
        blocks: ByBlock::default(),
        paths: ByPath::default(),
        aggregate: Smoothed::default(),
        literal,
        from: variance(options)?,
    }))
}

/// Makes the estimator over resolved packets.
pub fn build_per_ack(options: &Options<'_>) -> Result<Box<dyn LossEstimator>, PolicyError> {
    make(options, false)
}

/// Makes the estimator over sent packets.
pub fn build_literal(options: &Options<'_>) -> Result<Box<dyn LossEstimator>, PolicyError> {
    make(options, true)
}

impl LossEstimator for PerAck {
    fn on_sent(&mut self, path: PathId, block: Option<BlockId>, packets: u32) {
        if let Some(block) = block.filter(|_| self.literal) {
            let sent = &mut self.blocks.entry(block).entry(path).sent;
            *sent = sent.saturating_add(u64::from(packets));
        }
    }

    fn on_resolved(&mut self, event: &Resolved) {
        let smoothed = self.paths.entry(event.path);
        smoothed.see(event.acked, event.lost);
        self.aggregate.see(event.acked, event.lost);
        let Some(id) = event.block else { return };
        let block = self.blocks.entry(id);
        let own = block.entry(event.path);
        own.resolved.add(event.acked, event.lost);
        let base = own.base(self.literal);
        if base == 0 {
            return;
        }
        smoothed.update(1.0 - own.resolved.acked as f64 / base as f64, self.from);
        let (acked, base) = block.iter().fold((0_u64, 0_u64), |(acked, base), (_, sent)| {
            (
                acked.saturating_add(sent.resolved.acked),
                base.saturating_add(sent.base(self.literal)),
            )
        });
        self.aggregate.update(1.0 - acked as f64 / base.max(1) as f64, self.from);
    }

    fn path(&self, path: PathId) -> LossView {
        self.paths.find(path).map_or_else(LossView::default, Smoothed::view)
    }

    fn aggregate(&self) -> LossView {
        self.aggregate.view()
    }
}
