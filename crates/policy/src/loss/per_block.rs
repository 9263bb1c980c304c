//! MPLOT's estimator, one step per block, when the block's first transmission is resolved.

use anabranch_types::PathId;

use crate::loss::tally::{ByBlock, ByPath, Count, Smoothed, VarianceFrom};
use crate::loss::{LossEstimator, Resolved};
use crate::registry::{Entry, OptionEntry, Options, PolicyError, option};
use crate::view::{BlockId, LossView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "per-block",
    summary: "lost share of each block once its first transmission is resolved, smoothed by 1/2",
    source: "MPLOT §III-A eqs 2 and 3, over resolved packets",
    options: &[VARIANCE],
};

/// The option that the MPLOT estimators share.
pub(super) const VARIANCE: OptionEntry = option(
    "variance",
    "distance in eq. 3 from the mean before (prior) or after (updated)",
    "updated",
);

pub(super) fn variance(options: &Options<'_>) -> Result<VarianceFrom, PolicyError> {
    let words = [("prior", VarianceFrom::Prior), ("updated", VarianceFrom::Updated)];
    options.choice("variance", &words)
}

/// Counts of one block, until its first transmission is resolved.
#[derive(Clone, Debug, Default)]
struct Block {
    counts: ByPath<Count>,
    done: bool,
}

/// Estimates per path and over the aggregate, one smoothing step per block. Successes resolve
/// before losses, so the lost share is biased low until the end of the block.
#[derive(Clone, Debug)]
pub struct PerBlock {
    blocks: ByBlock<Block>,
    paths: ByPath<Smoothed>,
    aggregate: Smoothed,
    from: VarianceFrom,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn LossEstimator>, PolicyError> {
    Ok(Box::new(PerBlock {
        blocks: ByBlock::default(),
        paths: ByPath::default(),
        aggregate: Smoothed::default(),
        from: variance(options)?,
    }))
}

impl LossEstimator for PerBlock {
    fn on_resolved(&mut self, event: &Resolved) {
        self.paths.entry(event.path).see(event.acked, event.lost);
        self.aggregate.see(event.acked, event.lost);
        if let Some(id) = event.block {
            let block = self.blocks.entry(id);
            // Reactive repairs that resolve after the first transmission belong to no p-block.
            if !block.done {
                block.counts.entry(event.path).add(event.acked, event.lost);
            }
        }
    }

    fn on_block_resolved(&mut self, id: BlockId) {
        let block = self.blocks.entry(id);
        let counts = core::mem::take(&mut block.counts);
        if core::mem::replace(&mut block.done, true) {
            return;
        }
        let mut all = Count::default();
        for (path, count) in counts.iter().filter(|(_, count)| count.total() > 0) {
            self.paths.entry(*path).update(count.fraction(), self.from);
            all.acked += count.acked;
            all.lost += count.lost;
        }
        if all.total() > 0 {
            self.aggregate.update(all.fraction(), self.from);
        }
    }

    fn path(&self, path: PathId) -> LossView {
        self.paths.find(path).map_or_else(LossView::default, Smoothed::view)
    }

    fn aggregate(&self) -> LossView {
        self.aggregate.view()
    }
}
