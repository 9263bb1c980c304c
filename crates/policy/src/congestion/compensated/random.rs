//! Estimates random loss from the packets that left while none of our packets was queued.
//!
//! Another flow's queue may drop such packets as well. If many flows take each other's drops for
//! random loss, each sends more and more. A delay near the least of the last minute shows that the
//! queue is empty, so losses at such delays are random. Losses at longer delays count as random
//! only up to a small share.

use anabranch_types::Time;
use core::time::Duration;

use crate::congestion::AckEvent;

/// Number of recent packets from which random loss is estimated.
const LATELY: f64 = 1024.0;
/// Number of packets of the longer memory, from which the number of losses that chance explains is
/// estimated too. A link may lose ten packets in a row once in a thousand packets; a third of all
/// spans of a thousand packets then have no loss.
const PAST: f64 = 4096.0;
/// Fewest packets from which an estimate is made.
const KNOWN: f64 = 32.0;
/// Number of packets that make the estimate reliable.
const SURE: f64 = 256.0;
/// Losses at longer delays can raise the estimate of random loss to at most this share. Most paths
/// lose less, and flows that each send this much more still share a queue.
const UNSHOWN: f64 = 0.02;
/// [`UNSHOWN`] for the longer memory. If flows with this controller share a queue that drops a few packets all the
/// time, each flow would otherwise take the others' drops for random loss until the longer memory has forgotten them.
const UNSHOWN_IN_PAST: f64 = 0.005;
/// How long a larger share stays valid after the last short delay: this time or this many round
/// trips, whichever is longer. If a path's delay varies, short delays are infrequent.
const SHOWN_FOR: (Duration, u32) = (Duration::from_secs(4), 64);
/// Random loss counts as changing if its variance is more than [`CHANGES`] times that of
/// independent losses. The lower estimate is then [`DEVIATIONS`] standard deviations below the
/// mean.
const CHANGES: f64 = 1.5;
const DEVIATIONS: f64 = 0.5;
/// How many stretches of departures are remembered, each of at most a round trip. A loss is
/// declared later than that only if packets overtake one another by several round trips.
const STRETCHES: usize = 4;

/// Packets whose fate is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) acked: f64,
    pub(super) lost: f64,
}

impl Tally {
    pub(super) fn total(&self) -> f64 {
        self.acked + self.lost
    }
}

impl core::ops::Add for Tally {
    type Output = Tally;

    fn add(self, other: Tally) -> Tally {
        Tally { acked: self.acked + other.acked, lost: self.lost + other.lost }
    }
}

/// Packets that left one after the other and met a queue of one kind.
///
/// A packet is declared lost some time after the packets sent around it were acknowledged, and
/// later if the path reorders more. It met the same queue as these packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretch {
    since: Time,
    until: Time,
    pub(super) packets: Tally,
    /// Acknowledged packets with a short delay; counted only where random loss is learnt.
    short: f64,
}

/// The last stretches, the newest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretches {
    last: [Stretch; STRETCHES],
    is_open: bool,
}

impl Stretches {
    /// Processes acknowledged packets; `met` says whether they met a queue of this kind. Returns
    /// true if a stretch begins with them.
    pub(super) fn acked(&mut self, event: &AckEvent, met: bool) -> bool {
        let sent = event.largest_acked_sent;
        let goes_on = self.is_open && sent.since(self.last[0].since) <= event.rtt.smoothed;
        self.is_open = met;
        if !met {
            return false;
        }
        if !goes_on {
            self.last.rotate_right(1);
            self.last[0] = Stretch { since: sent, ..Stretch::default() };
        }
        self.last[0].until = sent.max(self.last[0].until);
        self.last[0].packets.acked += f64::from(event.acked_packets);
        !goes_on
    }

    /// Processes losses. Returns the stretch in which the lost packets left, if there is one.
    pub(super) fn lost(&mut self, event: &AckEvent) -> Option<Stretch> {
        let sent = event.largest_lost_sent;
        let stretch = self.last.iter_mut().find(|one| one.since <= sent && sent <= one.until)?;
        stretch.packets.lost += f64::from(event.lost_packets);
        Some(*stretch)
    }
}

/// Counts, over a number of recent packets, from which random loss is learnt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Most packets that are remembered.
    most: f64,
    /// Losses at longer delays can raise the estimate of random loss to at most this share.
    unshown: f64,
    pub(super) packets: Tally,
    /// Number of stretches in which the packets left, and the sum of the squares of each stretch's losses.
    stretches: f64,
    squares: f64,
}

impl Memory {
    fn new(most: f64, unshown: f64) -> Self {
        Memory { most, unshown, packets: Tally::default(), stretches: 0.0, squares: 0.0 }
    }

    /// Starts anew with `total` packets, of which `share` are lost.
    fn restart(&mut self, total: f64, share: f64) {
        let packets = Tally { acked: total * (1.0 - share), lost: total * share };
        *self = Memory { packets, ..Memory::new(self.most, self.unshown) };
    }

    /// The share of packets that is lost at random.
    pub(super) fn share(&self) -> f64 {
        self.packets.lost / (self.packets.total() + 8.0)
    }

    /// How bursty losses are: the variance of their number in a stretch divided by its mean, at
    /// least 1.
    pub(super) fn bursts(&self) -> f64 {
        (self.squares / self.packets.lost.max(1.0) - self.mean()).max(1.0)
    }

    /// Mean number of losses in a stretch.
    fn mean(&self) -> f64 {
        self.packets.lost / self.stretches.max(1.0)
    }

    /// Counts acknowledged packets, and the stretch if one `begins` with them. Packets with longer
    /// delays count only while losses at such delays count.
    fn acknowledge(&mut self, packets: f64, begins: bool, is_short: bool) {
        if is_short || self.share() <= self.unshown {
            self.packets.acked += packets;
            self.stretches += f64::from(u8::from(begins));
        }
    }

    /// Counts the loss of `lost` packets from a stretch that has lost `in_stretch` packets, these
    /// included. The share `short` of them met a short delay. The others count until `unshown` of
    /// all packets are lost.
    fn lose(&mut self, lost: f64, in_stretch: f64, short: f64) {
        let shown = lost * short;
        let unshown = (self.unshown * self.packets.total() - self.packets.lost).max(0.0);
        let counts = shown + (lost - shown).min(unshown);
        let in_stretch = in_stretch * counts / lost.max(1.0);
        self.packets.lost += counts;
        self.squares += counts * (2.0 * in_stretch - counts);
    }

    fn end_round(&mut self) {
        let kept = (self.most / self.packets.total().max(1.0)).min(1.0);
        self.packets.acked *= kept;
        self.packets.lost *= kept;
        self.stretches *= kept;
        self.squares *= kept;
    }

    /// Limits the share of random loss to `unshown`, since no packet has had a short delay for
    /// long.
    fn doubt(&mut self) {
        if self.share() > self.unshown {
            let (total, lost) = (self.packets.total(), self.packets.lost);
            self.packets.lost = total * self.unshown;
            self.packets.acked = total - self.packets.lost;
            self.squares *= self.packets.lost / lost;
        }
    }
}

/// The estimate of random loss.
#[derive(Clone, Debug)]
pub(super) struct Random {
    lately: Memory,
    past: Memory,
    stretches: Stretches,
    /// When a short delay was seen last.
    shown: Time,
}

impl Default for Random {
    fn default() -> Self {
        Random {
            lately: Memory::new(LATELY, UNSHOWN),
            past: Memory::new(PAST, UNSHOWN_IN_PAST),
            stretches: Stretches::default(),
            shown: Time::ZERO,
        }
    }
}

impl Random {
    /// Processes acknowledged packets. `is_clear` says whether they left while none of our packets
    /// was queued, `is_short` whether their delay was so short that the queue was empty.
    pub(super) fn on_acked(&mut self, event: &AckEvent, is_clear: bool, is_short: bool) {
        let acked = f64::from(event.acked_packets);
        let begins = self.stretches.acked(event, is_clear);
        if is_clear {
            self.lately.acknowledge(acked, begins, is_short);
            self.past.acknowledge(acked, begins, is_short);
        }
        if is_clear && is_short {
            self.stretches.last[0].short += acked;
            self.shown = event.now;
        }
        let shown_for = SHOWN_FOR.0.max(event.rtt.smoothed * SHOWN_FOR.1);
        if event.now.since(self.shown) > shown_for {
            self.lately.doubt();
            self.past.doubt();
        }
    }

    /// Processes losses.
    pub(super) fn on_lost(&mut self, event: &AckEvent) {
        let Some(stretch) = self.stretches.lost(event) else { return };
        // The delay of a lost packet is unknown. If a third of its stretch had a short delay, a
        // third of the loss counts as random.
        let short = stretch.short / stretch.packets.acked.max(1.0);
        let (lost, in_stretch) = (f64::from(event.lost_packets), stretch.packets.lost);
        self.lately.lose(lost, in_stretch, short);
        self.past.lose(lost, in_stretch, short);
    }

    pub(super) fn end_round(&mut self) {
        self.lately.end_round();
        self.past.end_round();
    }

    /// Starts again from the share `random`: losses depend on our sending rate, so at most this
    /// share of packets is lost at random.
    pub(super) fn restart(&mut self, random: f64) {
        let share = random.min(self.share().max(UNSHOWN));
        self.lately.restart(KNOWN, share);
        self.past.restart(KNOWN, share);
    }

    /// The shorter memory, from which the share of random loss is taken, and the longer one. Losses
    /// exceed chance if neither memory explains them.
    pub(super) fn memories(&self) -> [&Memory; 2] {
        [&self.lately, &self.past]
    }

    /// The share of packets that is lost at random.
    pub(super) fn share(&self) -> f64 {
        self.lately.share()
    }

    /// A lower estimate of [`share`](Self::share): below the mean if stretches differ by more than
    /// chance.
    pub(super) fn least(&self) -> f64 {
        let excess = (self.lately.bursts() - CHANGES).max(0.0);
        let deviation = (excess / self.lately.mean().max(1e-9)).sqrt();
        self.share() * (1.0 - DEVIATIONS * deviation).max(0.0)
    }

    /// Whether the share of random loss is known.
    pub(super) fn is_known(&self) -> bool {
        self.lately.packets.total() >= KNOWN
    }

    /// Whether the share is known so well that losses beyond it are due to congestion.
    pub(super) fn is_sure(&self) -> bool {
        self.lately.packets.total() >= SURE
    }
}
