//! Detects that packets which met a full queue are lost more often than random loss explains.
//!
//! There are two tests. The losses of one round trip may be too many for chance. Fewer losses may
//! be too many if they continue, so they are added up over round trips (Page's cumulative sum,
//! Biometrika 1954).

use anabranch_types::math;

use super::random::{Memory, Random, Stretches, Tally};
use crate::congestion::AckEvent;

/// The share of random loss that is assumed without an estimate, and the number of packets as which
/// this assumption counts.
const BELIEVED: (f64, f64) = (0.1, 8.0);
/// Number of standard deviations by which the losses of one round trip are too many.
const DEVIATIONS: f64 = 3.0;
/// Continuing losses are tested for being this many times as frequent as random loss.
const MORE: f64 = 1.5;
/// Sum above which continuing losses are too many: the logarithm of how much more likely they are
/// at [`MORE`] times the random loss than at the random loss itself.
const ENOUGH: f64 = 7.0;

/// Losses of packets that met a full queue, compared with random loss.
#[derive(Clone, Debug, Default)]
pub(super) struct Excess {
    /// Packets that met a delay near the longest.
    top: Stretches,
    /// Logarithm of how much more likely the losses of such packets are at [`MORE`] times the
    /// random loss than at the random loss itself; at least 0.
    sum: f64,
}

impl Excess {
    /// Processes acknowledged packets. `met` says whether their delay was near the longest.
    pub(super) fn on_acked(&mut self, event: &AckEvent, met: bool, random: &Random) {
        self.top.acked(event, met);
        if met {
            self.add(f64::from(event.acked_packets), 0.0, random);
        }
    }

    /// Processes losses. Returns true if a full queue dropped them.
    ///
    /// A flow that never sees the queue empty has no estimate of random loss. `is_full` says
    /// whether others keep the queue full, given how many packets met it. If they do, only a small
    /// share of the losses counts as random while there is no estimate; otherwise the flow would
    /// send more for every packet that the queue drops.
    pub(super) fn on_lost(
        &mut self,
        event: &AckEvent,
        random: &Random,
        is_full: impl Fn(f64) -> bool,
    ) -> bool {
        let Some(top) = self.top.lost(event) else { return false };
        let (top, lost) = (top.packets, f64::from(event.lost_packets));
        self.add(lost, lost, random);
        if self.sum > ENOUGH {
            self.sum = 0.0;
            return true;
        }
        if !random.is_known() && is_full(top.total()) {
            let (share, packets) = BELIEVED;
            let [Memory { packets: known, .. }, _] = random.memories();
            let believed = (known.lost + share * packets) / (known.total() + packets);
            return top.lost > believed * top.total() + 1.0;
        }
        random.memories().into_iter().all(|memory| is_beyond_chance(&top, memory))
    }

    /// Updates the sum by `packets` packets, of which `lost` were lost.
    fn add(&mut self, packets: f64, lost: f64, random: &Random) {
        if !random.is_known() {
            self.sum = 0.0;
            return;
        }
        let [lately, past] = random.memories();
        let memory = if past.share() > lately.share() { past } else { lately };
        // The estimate may be too low: one standard deviation is added to it.
        let (share, total) = estimate(memory);
        let bursts = memory.bursts();
        let share = share + (share / total * bursts).sqrt();
        let likely = lost * math::ln(MORE) - (MORE - 1.0) * share * packets;
        self.sum = (self.sum + likely / bursts).max(0.0);
    }
}

/// The share of packets that is lost at random, and the number of packets from which it is
/// estimated. Half a loss is added, since random loss may exist even if none was seen.
fn estimate(memory: &Memory) -> (f64, f64) {
    let packets = memory.packets;
    let total = packets.total() + 1.0;
    ((packets.lost + 0.5) / total, total)
}

/// Whether more of the packets of one round trip were lost than random loss explains, by three
/// standard deviations. The variance of the count is its mean times [`Memory::bursts`], and larger
/// if the estimate is from few packets. Random losses alone exceed the limit in at most a twentieth
/// of a queue's sawtooth cycles.
fn is_beyond_chance(top: &Tally, memory: &Memory) -> bool {
    let bursts = memory.bursts();
    let (share, known) = estimate(memory);
    let expected = share * top.total();
    let variance = expected * (1.0 + top.total() / known) * bursts;
    top.lost >= expected + DEVIATIONS * variance.sqrt() + 0.6 * bursts
}
