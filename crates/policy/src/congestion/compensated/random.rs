//! Estimates random loss from the packets that left while nothing of ours waited.
//!
//! Another flow's queue may drop such packets as well. If many flows take each other's drops for random loss, each sends
//! more and more. A delay near the least of the last minute shows that the queue is empty, so what is lost then is
//! random. Losses at longer delays count as random only up to a small share.

use anabranch_types::Time;
use core::time::Duration;

use crate::congestion::AckEvent;

/// Packets that the estimate of random loss remembers.
const LATELY: f64 = 1024.0;
/// Packets that are remembered besides, to tell how many losses chance explains. A link may lose ten packets in a row
/// once in a thousand; of all spans of a thousand packets, a third then have no loss.
const PAST: f64 = 4096.0;
/// Fewest packets that an estimate is made of.
const KNOWN: f64 = 32.0;
/// Number of packets that make the estimate reliable.
const SURE: f64 = 256.0;
/// Most random loss that losses at longer delays show, a share. Most paths lose less, and flows that each send so much
/// more still share a queue.
const UNSHOWN: f64 = 0.02;
/// The same share in the longer memory. If a queue that flows of ours share drops a few packets all the time, each flow
/// would otherwise take the others' drops for random loss until the longer memory has forgotten them.
const UNSHOWN_IN_PAST: f64 = 0.005;
/// How long a larger share is believed in after the last short delay: this time or so many round trips, whichever is
/// longer. Where a road's delay varies, short ones come now and then.
const SHOWN_FOR: (Duration, u32) = (Duration::from_secs(4), 64);
/// Loss is taken to change where its variance is more than so many times that of chance; its better times are then so
/// many of its standard deviations below the mean.
const CHANGES: f64 = 1.5;
const DEVIATIONS: f64 = 0.5;
/// How many stretches of departures are remembered, each of a round trip at most. A loss is declared later than that
/// only where packets overtake one another by several round trips.
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
/// A packet is declared lost some time after those that it left among were acknowledged, the longer the more
/// the path reorders. It met the queue that they met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretch {
    since: Time,
    until: Time,
    pub(super) packets: Tally,
    /// How many of the acknowledged ones had a short delay, where random loss is learnt.
    short: f64,
}

/// The last stretches, the newest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretches {
    last: [Stretch; STRETCHES],
    is_open: bool,
}

impl Stretches {
    /// Packets are acknowledged that met such a queue, or did not. True if a stretch begins with them.
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

    /// Packets are lost: the stretch that they left in, if they left in one.
    pub(super) fn lost(&mut self, event: &AckEvent) -> Option<Stretch> {
        let sent = event.largest_lost_sent;
        let stretch = self.last.iter_mut().find(|one| one.since <= sent && sent <= one.until)?;
        stretch.packets.lost += f64::from(event.lost_packets);
        Some(*stretch)
    }
}

/// What is remembered of packets that random loss is learnt from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// Most packets that are remembered.
    most: f64,
    /// Most random loss that losses at longer delays show, a share.
    unshown: f64,
    pub(super) packets: Tally,
    /// In how many stretches they left, and the sum of the squares of a stretch's losses.
    stretches: f64,
    squares: f64,
}

impl Memory {
    fn new(most: f64, unshown: f64) -> Self {
        Memory { most, unshown, packets: Tally::default(), stretches: 0.0, squares: 0.0 }
    }

    /// Starts anew with so many packets, of which this share is lost.
    fn restart(&mut self, total: f64, share: f64) {
        let packets = Tally { acked: total * (1.0 - share), lost: total * share };
        *self = Memory { packets, ..Memory::new(self.most, self.unshown) };
    }

    /// The share of packets that is lost at random.
    pub(super) fn share(&self) -> f64 {
        self.packets.lost / (self.packets.total() + 8.0)
    }

    /// How much losses come in bursts: the variance of their number in a stretch over its mean, at least 1.
    pub(super) fn bursts(&self) -> f64 {
        (self.squares / self.packets.lost.max(1.0) - self.mean()).max(1.0)
    }

    /// Losses of a stretch.
    fn mean(&self) -> f64 {
        self.packets.lost / self.stretches.max(1.0)
    }

    /// Takes in so many acknowledged packets, and the stretch that begins with them if one does. At longer delays they
    /// count as long as losses do.
    fn acknowledge(&mut self, packets: f64, begins: bool, is_short: bool) {
        if is_short || self.share() <= self.unshown {
            self.packets.acked += packets;
            self.stretches += f64::from(u8::from(begins));
        }
    }

    /// Takes in the loss of `lost` packets from a stretch that has lost `in_stretch` by now, these included. The share
    /// `short` of them met a short delay. The others count until `unshown` of all packets are lost.
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

    /// No short delay has shown random loss for long: takes its share for `unshown` at most.
    fn doubt(&mut self) {
        if self.share() > self.unshown {
            let (total, lost) = (self.packets.total(), self.packets.lost);
            self.packets.lost = total * self.unshown;
            self.packets.acked = total - self.packets.lost;
            self.squares *= self.packets.lost / lost;
        }
    }
}

/// See the module's documentation.
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
    /// Takes in acknowledged packets. `is_clear` says whether they left while nothing of ours waited, `is_short` whether
    /// their delay was so short that the queue was empty.
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

    /// Takes in losses.
    pub(super) fn on_lost(&mut self, event: &AckEvent) {
        let Some(stretch) = self.stretches.lost(event) else { return };
        // Nobody knows a lost packet's delay. If a third of its stretch had a short one, it counts as a third of a packet.
        let short = stretch.short / stretch.packets.acked.max(1.0);
        let (lost, in_stretch) = (f64::from(event.lost_packets), stretch.packets.lost);
        self.lately.lose(lost, in_stretch, short);
        self.past.lose(lost, in_stretch, short);
    }

    pub(super) fn end_round(&mut self) {
        self.lately.end_round();
        self.past.end_round();
    }

    /// Losses answer our sending, so at most the share `random` of packets is lost at random. Starts anew from that.
    pub(super) fn restart(&mut self, random: f64) {
        let share = random.min(self.share().max(UNSHOWN));
        self.lately.restart(KNOWN, share);
        self.past.restart(KNOWN, share);
    }

    /// The shorter memory, from which the share of random loss is taken, and the longer one. Losses are beyond chance if
    /// neither explains them.
    pub(super) fn memories(&self) -> [&Memory; 2] {
        [&self.lately, &self.past]
    }

    /// The share of packets that is lost at random.
    pub(super) fn share(&self) -> f64 {
        self.lately.share()
    }

    /// The same in its better times: less than the mean where stretches differ by more than chance.
    pub(super) fn least(&self) -> f64 {
        let excess = (self.lately.bursts() - CHANGES).max(0.0);
        let deviation = (excess / self.lately.mean().max(1e-9)).sqrt();
        self.share() * (1.0 - DEVIATIONS * deviation).max(0.0)
    }

    /// Whether it is known.
    pub(super) fn is_known(&self) -> bool {
        self.lately.packets.total() >= KNOWN
    }

    /// Whether it is known so well that a loss beyond it is congestion's.
    pub(super) fn is_sure(&self) -> bool {
        self.lately.packets.total() >= SURE
    }
}
