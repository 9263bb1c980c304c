//! MPLOT's mapping: older blocks on the better half of the paths.

use anabranch_types::PathId;

use crate::registry::{Entry, Options, PolicyError, option};
use crate::scheduler::work::{NOTHING, carrier, carriers, fresh, oldest, send};
use crate::scheduler::{Pick, Pull, Reason, Scheduler, Work};
use crate::view::{MAX_PATHS, PathView, SchedulerView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "rank",
    summary: "older blocks on paths of higher loss-free bandwidth, newer ones on the others",
    source: "MPLOT §II-D and §III-D, eq. 1",
    options: &[option(
        "fill",
        "two groups of paths about the median rank (halves), or one per path (full)",
        "halves",
    )],
};

/// Ranks paths by w(1 − p)/RTT. Paths above the median serve the older half of the unrecovered
/// blocks first, the others the newer half; new data counts with the newest block. A path without
/// work in its own half takes other work, so that no opportunity is wasted.
#[derive(Clone, Copy, Debug)]
pub struct Rank {
    full: bool,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let full = options.choice("fill", &[("halves", false), ("full", true)])?;
    Ok(Box::new(Rank { full }))
}

/// The ranks of the carriers, and how many there are.
fn ranks(view: &SchedulerView<'_>) -> ([f64; MAX_PATHS], usize) {
    let mut ranks = [0.0; MAX_PATHS];
    let mut count = 0;
    for (slot, path) in ranks.iter_mut().zip(carriers(view)) {
        *slot = path.loss_free_bandwidth();
        count += 1;
    }
    (ranks, count)
}

/// Whether a path of rank `own` is GOOD: its rank is above the median, or all ranks are equal. The
/// median of an even number is the mean of the middle two.
fn good(own: f64, mut ranks: [f64; MAX_PATHS], count: usize) -> bool {
    let ranks = &mut ranks[..count];
    ranks.sort_unstable_by(f64::total_cmp);
    let (Some(low), Some(high)) = (ranks.get(count.saturating_sub(1) / 2), ranks.get(count / 2))
    else {
        return true;
    };
    ranks.first() == ranks.last() || own > (low + high) / 2.0
}

/// How many carriers rank before `path`, the lower identifier first between equals.
fn position(path: &PathView, view: &SchedulerView<'_>) -> usize {
    let own = path.loss_free_bandwidth();
    let before = |other: &&PathView| {
        let rank = other.loss_free_bandwidth();
        rank > own || (rank == own && other.id < path.id)
    };
    carriers(view).filter(before).count()
}

impl Rank {
    /// The unrecovered blocks that this path serves first, as a range of indices. The last index is
    /// that of the block that new data joins or opens.
    fn own(&self, path: &PathView, view: &SchedulerView<'_>, blocks: usize) -> (usize, usize) {
        let (ranks, count) = ranks(view);
        if self.full {
            let position = position(path, view).min(count.saturating_sub(1));
            let count = count.max(1);
            return (position * blocks / count, (position + 1) * blocks / count);
        }
        let older = blocks.div_ceil(2);
        if good(path.loss_free_bandwidth(), ranks, count) { (0, older) } else { (older, blocks) }
    }
}

impl Scheduler for Rank {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let path = match carrier(view, path) {
            Ok(path) => path,
            Err(idle) => return idle,
        };
        let known = view.blocks;
        let fresh = fresh(view);
        // New data joins the open block, or opens one more.
        let opens = fresh.is_some() && known.last().is_none_or(|block| block.closed);
        let blocks = known.len() + usize::from(opens);
        let (start, end) = self.own(path, view, blocks);
        let within = |from: usize, to: usize| {
            oldest(known.get(from..to.min(known.len())).unwrap_or_default())
        };
        let own_fresh = fresh.filter(|_| start < end && end == blocks);
        let choices: [(Option<Work>, Reason); 5] = [
            (within(start, end), "own share of blocks"),
            (own_fresh, "new data, own share"),
            (within(end, known.len()), "newer block, own share empty"),
            (fresh, "new data, own share empty"),
            (within(0, start), "older block, own share empty"),
        ];
        for (work, reason) in choices {
            if let Some(work) = work {
                return send(picks, path.id, work, reason);
            }
        }
        NOTHING
    }
}
