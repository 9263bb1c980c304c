//! Redundancy: how source symbols are grouped into blocks and how many repairs protect them.

pub mod budget;
pub mod delta_complete;
pub mod equations;
pub mod fixed;
mod interval;
pub mod mean_sigma;
pub mod none;
pub mod sliding;

use core::fmt::Debug;
use core::time::Duration;

use crate::code::Coverage;
use crate::registry::{PolicyError, PolicySpec, Registry, Row};
use crate::view::{BlockView, LossView, MAX_PATHS, PathView, TrafficClass};
use anabranch_types::Time;

/// The shape of a coding block that is about to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Source symbols, F, at least 1. The block closes earlier when the data ends.
    pub sources: u16,
    /// Payload of each symbol, bytes.
    pub symbol_size: u16,
}

/// State that a redundancy policy may look at.
#[derive(Clone, Copy, Debug)]
pub struct RedundancyView<'a> {
    /// The current time.
    pub now: Time,
    /// Open paths.
    pub paths: &'a [PathView],
    /// Loss over the aggregate of paths.
    pub loss: LossView,
    /// Most symbols (sources plus repairs) the code allows in a block.
    pub max_symbols: u16,
    /// Most payload bytes that a symbol may have on every open path.
    pub max_symbol_size: u16,
    /// Whether no more data waits for the same symbol space.
    pub flushing: bool,
    /// Class of the data at the front.
    pub class: TrafficClass,
    /// Whether the code of that data slides ([`CodeLimits::slides`](crate::code::CodeLimits)).
    pub slides: bool,
    /// Source symbols sent so far in the symbol space of that data.
    pub sources_sent: u64,
    /// Repairs that were sent although the block was recovered without them.
    pub repairs_unneeded: u64,
}

impl RedundancyView<'_> {
    /// The paths in use.
    fn usable(&self) -> impl Iterator<Item = &PathView> {
        self.paths.iter().filter(|path| path.usable())
    }

    /// The loss of the worst path in use, at least that of the aggregate with a reserve for its spread. Urgent symbols
    /// go to the quickest path, which may be the worst.
    fn worst_loss(&self) -> f64 {
        let losses = self.usable().map(|path| path.loss.mean);
        losses.fold(self.loss.mean + self.loss.deviation / 2.0, f64::max)
    }

    /// The least smoothed round-trip time of the paths in use.
    fn quickest_round(&self) -> Duration {
        self.usable().map(|path| path.rtt.smoothed).min().unwrap_or_default()
    }
}

/// Decides block shapes and repair counts.
pub trait RedundancyPolicy: Debug + Send {
    /// The shape of the block that is opened next.
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape;

    /// The block closed with `block.sources` symbols: how many proactive repairs to send in all.
    /// Called at every close, so that a short tail is protected for its own size.
    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16;

    /// Until when an open block stays open for further data if nothing waits behind its newest symbol. Its repairs
    /// wait as long, since they are made when it closes. Asked once after each such symbol.
    fn open_until(&mut self, _block: &BlockView, view: &RedundancyView<'_>) -> Time {
        view.now
    }

    /// Repairs to send right after a source symbol joined an open block. Asked only with codes that slide
    /// ([`CodeLimits::slides`](crate::code::CodeLimits)).
    fn after_source(&mut self, _block: &BlockView, _view: &RedundancyView<'_>) -> u16 {
        0
    }

    /// The sources that the next repair of `block` combines. Asked after each source that joined it, and only
    /// with codes that slide; others cover the whole block. May reach back before the block's first
    /// symbol, as far as the sender still has symbols and the code allows, but not beyond its newest.
    fn coverage(&self, block: &BlockView) -> Coverage {
        whole(block)
    }

    /// Whether live data is to have a symbol space of its own, with a code that slides, where the peer offers one.
    /// For live data, [`RedundancyView::slides`] tells whether it has one.
    fn separates_live(&self) -> bool {
        false
    }

    /// Most symbols that share a packet, at least 1, as far as they fit. Asked for each packet. Several
    /// short symbols in one packet spare datagrams, and are lost together: the policy that chooses the size of
    /// symbols and counts their repairs weighs that.
    fn symbols_per_packet(&self) -> u16 {
        1
    }

    /// How many further symbols the block needs now, beyond those in flight, due and planned, given
    /// that `hypothetical[i]` more were handed to the path in slot i. The core adds the answer to
    /// `block.due`. 0 when the block is expected to be recovered. A question only: asking changes
    /// nothing, so that schedulers may ask about allocations they do not make. Asked on losses and
    /// acknowledgements of a closed block (an open one cannot be repaired yet), and when one closes before
    /// it is full, since there may be no packet of it in flight that would cause such an event.
    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16;

    /// Whether [`still_needed`](Self::still_needed) is above 0, for callers to whom the number does not matter.
    fn needs_more(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> bool {
        self.still_needed(block, hypothetical, view) > 0
    }

    /// The place of the first of these blocks, of a class, that is open, has work, or [needs more](Self::needs_more)
    /// than is under way. Schedulers ask this at each turn: a policy that can answer for many blocks at once should
    /// do so.
    fn first_in_need(
        &self,
        blocks: &[BlockView],
        class: TrafficClass,
        view: &RedundancyView<'_>,
    ) -> Option<usize> {
        let needs_more = |block: &BlockView| self.needs_more(block, &[0; MAX_PATHS], view);
        blocks.iter().position(|block| block.concerns(class, needs_more))
    }
}

/// All sources of a block.
fn whole(block: &BlockView) -> Coverage {
    Coverage { first: block.first, count: block.sources }
}

/// The built-in policies of this axis.
pub const TABLE: &[Row<dyn RedundancyPolicy>] = &[
    (&budget::ENTRY, budget::build),
    (&delta_complete::ENTRY, delta_complete::build),
    (&fixed::ENTRY, fixed::build),
    (&mean_sigma::ENTRY, mean_sigma::build),
    (&none::ENTRY, none::build),
    (&sliding::ENTRY, sliding::build),
];

/// Makes the built-in redundancy policy that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    Registry::new().build(spec)
}

#[cfg(test)]
mod tests;
