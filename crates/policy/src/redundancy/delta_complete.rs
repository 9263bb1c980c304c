//! FMTCP's provisioning: a block gets symbols until the probability of a decoding failure is small.
//!
//! A block is δ-complete (definition 2) when enough of its symbols in flight and queued will arrive
//! with a chance of at least 1 − δ̂. How many more symbols it needs depends on the paths that will
//! carry them. A scheduler that knows these paths names them when it asks
//! ([`Demand`](crate::view::Demand)); otherwise the path of least loss is assumed.
//!
//! Our readings of the paper: the chance is computed over all paths that carry packets of the block
//! (B8); eq. 4 is the case of a single path. Only the packets of the last round trip count, since
//! the fate of earlier packets is known and their losses have been repaired. These are the packets
//! in flight and, of those still to be sent, at most a current congestion window ŵ. So a block
//! larger than the window needs as many extra packets as a block of a window, and a smaller block
//! as many as its own size requires. Extra packets are counted in packets, however many symbols a
//! packet holds.

use crate::analysis::fountain::{losses_beyond, tolerable_losses};
use crate::redundancy::{BlockShape, RedundancyPolicy, RedundancyView};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{BlockView, MAX_PATHS, PathView, TrafficClass};
use anabranch_types::math;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "delta-complete",
    summary: "blocks of so many bytes, each sent until it is decoded but for a small chance",
    source: "FMTCP §V-A, definition 2 and eqs 4 to 7",
    options: &[
        option("block", "source bytes of a block, 64 to 16777216", "32768"),
        option(
            "symbol",
            "payload of a symbol, bytes, 16 to 65535, as far as paths carry it",
            "1400",
        ),
        option("together", "symbols that may share a packet, 1 to 64", "1"),
        option("failure", "chance that a block does not decode, at most (δ̂)", "0.05"),
        option(
            "append",
            "extra packets of a block: a number up to 1000, or auto, by the chance",
            "auto",
        ),
    ],
};

/// The loss that extra packets cover is computed in advance for fewer than this many extra packets.
const TABLED: usize = 32;
/// Largest loss for which extra packets are computed; beyond it, no number of packets helps much.
const MAX_LOSS: f64 = 0.95;
/// Most extra packets that a block is given at once.
const MOST_EXTRA: u16 = 1000;

/// FMTCP's provisioning of blocks; the module's documentation describes it.
#[derive(Clone, Debug)]
pub struct DeltaComplete {
    block: u32,
    symbol: u16,
    together: u16,
    failure: f64,
    /// A fixed number of extra packets; `None` if `failure` determines the number.
    append: Option<u16>,
    /// By number of extra packets: a mean number of losses up to which a block is certainly
    /// complete.
    tolerable: [f64; TABLED],
    /// The mean number of losses beyond which a block without extra packets is certainly not
    /// complete.
    fatal: f64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    let failure = options.real("failure", 1e-6..=0.999)?;
    let append = options.integer_unless("append", "auto", 0..=1000)?;
    Ok(Box::new(DeltaComplete {
        block: options.integer("block", 64..=1 << 24)? as u32,
        symbol: options.integer("symbol", 16..=65535)? as u16,
        together: options.integer("together", 1..=64)? as u16,
        failure,
        append: append.map(|packets| packets as u16),
        fatal: -math::ln(1.0 - failure) * (1.0 + 1e-9),
        tolerable: core::array::from_fn(|spare| tolerable_losses(spare as u32, failure)),
    }))
}

/// The packets of a block that may still be lost, by index of the open path, with derived numbers.
#[derive(Clone, Copy, Debug)]
struct Risk {
    /// Packets and their chance of being lost.
    paths: [(u32, f64); MAX_PATHS],
    count: usize,
    /// Symbols in flight and queued, including those that are not at risk.
    symbols: u32,
    /// The index of the path of least loss among those in use, and how many packets at risk may
    /// still be added on it.
    best: usize,
    room: u32,
}

impl Risk {
    fn packets(&self) -> &[(u32, f64)] {
        self.paths.get(..self.count).unwrap_or_default()
    }
}

impl DeltaComplete {
    /// Symbols in a packet that is filled with them.
    fn per_packet(&self, path: &PathView, view: &RedundancyView<'_>) -> u32 {
        if self.together == 1 {
            return 1;
        }
        let payload = path.packet_size.min(view.max_symbol_size.into());
        (payload / u64::from(self.symbol.max(1))).clamp(1, u64::from(self.together)) as u32
    }

    /// Packets at risk with `more` symbols by path slot, in addition to those in flight and queued.
    fn risk(&self, block: &BlockView, more: &[u16; MAX_PATHS], view: &RedundancyView<'_>) -> Risk {
        // Copies of a symbol count once.
        let distinct = u32::from(block.in_flight) + u32::from(block.queued);
        let symbols = more.iter().fold(distinct, |sum, n| sum + u32::from(*n));
        let mut risk = Risk { paths: [(0, 0.0); MAX_PATHS], count: 0, symbols, best: 0, room: 0 };
        let mut least = f64::INFINITY;
        for (path, entry) in view.paths.iter().zip(&mut risk.paths) {
            let slot = usize::from(path.slot) % MAX_PATHS;
            let flying = u32::from(block.in_flight_on[slot]);
            let coming = u32::from(block.queued_on[slot]) + u32::from(more[slot]);
            let loss = path.loss.mean_up_to(MAX_LOSS);
            *entry = (at_risk(path, flying, coming, self.per_packet(path, view)), loss);
            // A path that is not in use gets no new symbols, unless no path is in use.
            let rank = if path.usable() && !path.backup { loss } else { loss + 1.0 };
            if rank < least {
                (least, risk.best) = (rank, risk.count);
            }
            risk.count += 1;
        }
        if let (Some(best), Some((packets, _))) =
            (view.paths.get(risk.best), risk.paths.get(risk.best))
        {
            risk.room = window(best).saturating_sub(*packets);
        }
        risk
    }

    /// Whether a quick test shows that `block` is complete with the symbols in flight and queued.
    /// The test assumes that each symbol has its own packet, and that all are on the path of most
    /// loss.
    fn is_plainly_complete(&self, block: &BlockView, most_loss: f64) -> bool {
        let symbols = u32::from(block.in_flight) + u32::from(block.queued);
        let spare = symbols.checked_sub(u32::from(block.deficit()));
        let most = spare.and_then(|spare| self.tolerable.get(spare as usize));
        let copies = block.in_flight_on.iter().chain(&block.queued_on);
        let copies: u32 = copies.map(|copies| u32::from(*copies)).sum();
        most.is_some_and(|most| f64::from(copies) * most_loss <= *most)
    }

    /// Whether at most `spare` of these packets are lost, except for the chance that is accepted.
    fn is_safe(&self, paths: &[(u32, f64)], spare: u32) -> bool {
        let mean: f64 = paths.iter().map(|(packets, loss)| f64::from(*packets) * loss).sum();
        if self.tolerable.get(spare as usize).is_some_and(|most| mean <= *most) {
            return true;
        }
        // The chance that no packet is lost is at most e to the power of minus the mean.
        let certain = spare == 0 && mean > self.fatal;
        !certain && losses_beyond(spare, paths.iter().copied()) <= self.failure
    }

    /// How many symbols to add on the path of least loss until the block is complete. The result
    /// includes the `waiting` symbols, whose paths are not known yet.
    fn missing(&self, needed: u32, waiting: u32, mut risk: Risk, view: &RedundancyView<'_>) -> u16 {
        let each = view.paths.get(risk.best).map_or(1, |path| self.per_packet(path, view));
        let most = u16::MAX.into();
        if let Some(append) = self.append {
            let wanted = needed + u32::from(append) * each;
            return wanted.saturating_sub(risk.symbols).min(most) as u16;
        }
        let add = |risk: &mut Risk, symbols: u32| {
            let packets = symbols.div_ceil(each).min(risk.room);
            risk.room -= packets;
            risk.symbols += symbols;
            if let Some((on_best, _)) = risk.paths.get_mut(risk.best) {
                *on_best += packets;
            }
        };
        let certain = needed.saturating_sub(risk.symbols);
        let (first, start) = (certain.max(waiting), risk.symbols);
        add(&mut risk, first);
        for _ in 0..MOST_EXTRA {
            if self.is_safe(risk.packets(), (risk.symbols - needed) / each) {
                break;
            }
            add(&mut risk, each);
        }
        (risk.symbols - start).min(most) as u16
    }
}

fn window(path: &PathView) -> u32 {
    path.cwnd_packets().min(u64::from(u32::MAX)) as u32
}

/// How many packets are at risk, of those for `flying` symbols in flight and `coming` symbols to be
/// sent.
fn at_risk(path: &PathView, flying: u32, coming: u32, each: u32) -> u32 {
    let all = packets(flying + coming, each);
    let within = u64::from(all).saturating_mul(path.packet_size) <= path.cwnd;
    if within { all } else { all.min(window(path).max(packets(flying, each))) }
}

/// Packets for this many symbols.
fn packets(symbols: u32, each: u32) -> u32 {
    if each == 1 { symbols } else { symbols.div_ceil(each) }
}

impl RedundancyPolicy for DeltaComplete {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        let symbol_size = self.symbol.min(view.max_symbol_size).max(1);
        // At least half of the codeword is left for repairs.
        let most = u32::from(view.max_symbols / 2).max(1);
        let sources = self.block.div_ceil(u32::from(symbol_size)).clamp(1, most) as u16;
        BlockShape { sources, symbol_size }
    }

    /// The repairs that complete the block as it is now. When the last symbols leave,
    /// [`still_needed`](RedundancyPolicy::still_needed) is called again.
    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        // The symbol that closes the block is neither in flight nor queued yet.
        let risk = self.risk(block, &[0; MAX_PATHS], view);
        let needed = u32::from(block.deficit());
        let unsent = needed.saturating_sub(risk.symbols);
        let all = u32::from(self.missing(needed, unsent, risk, view));
        let room = view.max_symbols.saturating_sub(block.sources);
        (all.saturating_sub(unsent) as u16).min(room)
    }

    fn symbols_per_packet(&self) -> u16 {
        self.together
    }

    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        let needed = u32::from(block.deficit());
        // A block is encoded as a whole, so it has no repairs until it closes.
        if needed == 0 || !block.closed {
            return 0;
        }
        let waiting = block.due.saturating_add(block.proactive_left);
        let risk = self.risk(block, hypothetical, view);
        let missing = self.missing(needed, waiting.into(), risk, view);
        missing.saturating_sub(waiting).min(view.max_symbols.max(1))
    }

    fn needs_more(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> bool {
        let needed = u32::from(block.deficit());
        if needed == 0 || !block.closed {
            return false;
        }
        if self.append.is_some() || self.together > 1 || block.takeable() > 0 {
            return self.still_needed(block, hypothetical, view) > 0;
        }
        let handed: u32 = hypothetical.iter().map(|n| u32::from(*n)).sum();
        let symbols = u32::from(block.in_flight) + u32::from(block.queued) + handed;
        let Some(spare) = symbols.checked_sub(needed) else { return true };
        // Few paths carry a block, so the others are skipped.
        let carries: [u16; MAX_PATHS] = core::array::from_fn(|slot| {
            block.in_flight_on[slot] | block.queued_on[slot] | hypothetical[slot]
        });
        let (mut risk, mut count) = ([(0, 0.0); MAX_PATHS], 0);
        for path in view.paths {
            let slot = usize::from(path.slot) % MAX_PATHS;
            if carries[slot] == 0 {
                continue;
            }
            let flying = u32::from(block.in_flight_on[slot]);
            let coming = u32::from(block.queued_on[slot]) + u32::from(hypothetical[slot]);
            let packets = at_risk(path, flying, coming, 1);
            risk[count % MAX_PATHS] = (packets, path.loss.mean_up_to(MAX_LOSS));
            count += 1;
        }
        !self.is_safe(&risk[..count.min(MAX_PATHS)], spare)
    }

    fn first_in_need(
        &self,
        blocks: &[BlockView],
        class: TrafficClass,
        view: &RedundancyView<'_>,
    ) -> Option<usize> {
        if blocks.is_empty() {
            return None;
        }
        let losses = view.paths.iter().map(|path| path.loss.mean_up_to(MAX_LOSS));
        let most_loss = losses.fold(0.0, f64::max);
        let quickly = self.append.is_none() && self.together == 1;
        let needs_more = |block: &BlockView| {
            !(quickly && self.is_plainly_complete(block, most_loss))
                && self.needs_more(block, &[0; MAX_PATHS], view)
        };
        blocks.iter().position(|block| block.concerns(class, needs_more))
    }
}
