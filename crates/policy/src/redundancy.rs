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

/// State that a redundancy policy may use.
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
    /// Class of the data that is sent next.
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

    /// The loss of the path in use that loses most, but at least the loss of the aggregate plus
    /// half its deviation. Urgent symbols go to the quickest path, which may be the one that loses
    /// most.
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

    /// How many proactive repairs to send in all for a block that has closed with `block.sources`
    /// symbols. Called whenever a block closes, so that a short last block gets repairs for its own
    /// size.
    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16;

    /// Until when a block stays open for further data if no data waits after its newest symbol. Its
    /// repairs wait as long, since they are made when the block closes. Asked once after each such
    /// symbol.
    fn open_until(&mut self, _block: &BlockView, view: &RedundancyView<'_>) -> Time {
        view.now
    }

    /// How many repairs to send right after a source symbol has joined an open block. Asked only
    /// with codes that slide ([`CodeLimits::slides`](crate::code::CodeLimits)).
    fn after_source(&mut self, _block: &BlockView, _view: &RedundancyView<'_>) -> u16 {
        0
    }

    /// The sources that the next repair of `block` combines. Asked after each source that joins the
    /// block, and only with codes that slide; with others, a repair covers the whole block. The
    /// coverage may begin before the block's first symbol, as far as the sender still has symbols
    /// and the code allows, but must not exceed the block's newest symbol.
    fn coverage(&self, block: &BlockView) -> Coverage {
        whole(block)
    }

    /// Whether live data is to have its own symbol space with a code that slides, if the peer
    /// offers one. For live data, [`RedundancyView::slides`] says whether there is such a space.
    fn separates_live(&self) -> bool {
        false
    }

    /// Most symbols that may share a packet, at least 1, as far as they fit. Asked for each packet.
    /// Several short symbols in one packet save datagrams but are lost together, so this is decided
    /// by the policy that chooses the size of symbols and the number of repairs.
    fn symbols_per_packet(&self) -> u16 {
        1
    }

    /// How many further symbols the block needs now, beyond those in flight, due and planned, if
    /// `hypothetical[i]` more were given to the path in slot i. The core adds the result to
    /// `block.due`; 0 means that the block is expected to be recovered. The call changes nothing,
    /// so that schedulers may ask about allocations that they do not make. The core asks on losses
    /// and acknowledgements of a closed block (an open block cannot be repaired yet), and when a
    /// block closes before it is full, since it may have no packet in flight that would cause such
    /// an event.
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

    /// The index of the first block of the class that is open, has work, or [needs
    /// more](Self::needs_more) symbols than are in flight and planned. Schedulers ask this at each
    /// pull, so a policy that can check many blocks at once should do so.
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
