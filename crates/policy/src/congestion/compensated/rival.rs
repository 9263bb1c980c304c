//! Finds losses by congestion, and the bound that they set: a CUBIC window like that of rival flows.
//!
//! Random loss does not depend on the queue; a full queue drops packets while it is longest. So losses while none of
//! our packets wait are random, and losses beyond that share while the delay is near its longest are congestion's.

use anabranch_types::Time;
use core::time::Duration;

use super::delay::Delay;
use crate::congestion::cubic::Cubic;
use crate::congestion::{AckEvent, CongestionController};

/// Delays that differ by less than both are the same: a time, s, and what this many packets take at the rate of
/// delivery.
const LEAST_RANGE: f64 = 0.001;
const LEAST_PACKETS: f64 = 2.0;
/// Least range of delays whose lower end is an empty queue, in round-trip times and at most s: what probing up makes
/// of an empty one. Where several fill a queue and it stays full, the delay varies less.
const FULL_RANGE: (f64, f64) = (0.125, 0.006);
/// Where the upper end of the range begins, and where the lower one ends.
const TOP: f64 = 0.7;
const BOTTOM: f64 = 0.3;
/// Packets that the estimate of random loss remembers.
const MEMORY: f64 = 1024.0;
/// Fewest packets that an estimate of random loss is made of.
const KNOWN: f64 = 32.0;
/// Number of packets that make the estimate reliable. A cut that was made with fewer is undone then.
const SURE: f64 = 256.0;
/// Random loss that is believed in without an estimate, a share, and how many packets that belief is worth.
const BELIEVED: (f64, f64) = (0.1, 8.0);
/// Number of packets in a row that met a long queue at which that belief holds in startup too.
const MANY: f64 = 64.0;
/// Loss is taken to change where its variance is more than so many times that of chance; its better times are then so
/// many of its standard deviations below the mean.
const CHANGES: f64 = 1.5;
const DEVIATIONS: f64 = 0.5;
/// Share of the bytes in flight at which losses answered our sending that already counts as too much.
const TOO_MUCH: (u64, u64) = (17, 20);
/// How many stretches of departures are remembered, each of a round trip at most. A loss is declared later than that
/// only where packets overtake one another by several round trips.
const STRETCHES: usize = 4;
/// Share of the window that must be in flight for it to be what limits us: pacing and acknowledgements that
/// come in clumps leave up to an eighth of it unused.
const FULL: (u64, u64) = (7, 8);

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

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Rival {
    /// Range of the forward delay lately, from the floor to the longest, s.
    low: f64,
    high: f64,
    /// Delays that differ by less, s, are the same.
    least: f64,
    /// Packets sent while nothing of ours waited, in how many stretches, and the squares of their losses.
    clear: Tally,
    count: f64,
    squares: f64,
    clear_stretches: Stretches,
    /// Packets that met a delay near the longest.
    top_stretches: Stretches,
    /// Most bytes in flight lately.
    peak: u64,
    window: Option<Window>,
    /// Whether somebody else is believed to fill the queue.
    competes: bool,
    /// Whether there has been an occasion to learn random loss.
    cautious: bool,
    /// Whether the delay is long and hardly varies: whoever fills the queue keeps it full.
    constant: bool,
}

/// Packets that left one after the other and met a queue of one kind.
///
/// A packet is declared lost some time after those that it left among were acknowledged, the longer the more
/// the path reorders. It met the queue that they met.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    since: Time,
    until: Time,
    packets: Tally,
}

/// The last stretches, the newest first.
#[derive(Clone, Copy, Debug, Default)]
struct Stretches {
    last: [Stretch; STRETCHES],
    is_open: bool,
}

impl Stretches {
    /// Packets are acknowledged that left at `sent`, and met such a queue or not. True if a stretch begins.
    fn acked(&mut self, sent: Time, packets: f64, met: bool, longest: Duration) -> bool {
        let goes_on = self.is_open && sent.since(self.last[0].since) <= longest;
        self.is_open = met;
        if !met {
            return false;
        }
        if !goes_on {
            self.last.rotate_right(1);
            self.last[0] = Stretch { since: sent, until: sent, packets: Tally::default() };
        }
        self.last[0].until = sent.max(self.last[0].until);
        self.last[0].packets.acked += packets;
        !goes_on
    }

    /// Packets are lost that left at `sent`: the packets of their stretch, if they left in one.
    fn lost(&mut self, sent: Time, packets: f64) -> Option<&Tally> {
        let stretch = self.last.iter_mut().find(|one| one.since <= sent && sent <= one.until)?;
        stretch.packets.lost += packets;
        Some(&stretch.packets)
    }
}

/// The bound on bytes in flight.
#[derive(Clone, Debug)]
struct Window {
    cubic: Cubic,
    /// Whether a loss has set it, or only that somebody else's queue was seen.
    by_loss: bool,
    /// Whether that loss may have been random: random loss was not known well yet, and losses had not answered our sending.
    in_doubt: bool,
    /// Window in bytes above which losses responded to our sending.
    full: Option<u64>,
}

impl Window {
    fn new(bytes: u64, packet: u64) -> Self {
        Window { cubic: Cubic::at(bytes, packet), by_loss: false, in_doubt: false, full: None }
    }
}

impl Rival {
    /// Takes in an acknowledgement. True if it shows that a full queue dropped packets.
    ///
    /// `packet` is the time that a packet takes at the rate of delivery, s.
    pub(super) fn on_ack(
        &mut self,
        event: &AckEvent,
        round_over: bool,
        delay: &Delay,
        packet: f64,
    ) -> bool {
        self.least = LEAST_RANGE.min(LEAST_PACKETS * packet);
        if round_over {
            self.end_round();
        }
        self.peak = self.peak.max(event.prior_in_flight);
        let queue = event.rtt.queue.as_secs_f64();
        (self.low, self.high) = (self.low.min(delay.floor()), self.high.max(queue));
        let place = if self.is_full() { 1.0 } else { self.place(queue, delay) };
        self.constant = queue >= self.least && self.high - self.low <= self.probed(delay);
        let (acked, lost) = (f64::from(event.acked_packets), f64::from(event.lost_packets));
        let (sent, longest) = (event.largest_acked_sent, event.rtt.smoothed);
        if acked > 0.0 {
            let is_clear = place < BOTTOM && delay.is_clear(sent);
            self.clear.acked += if is_clear { acked } else { 0.0 };
            let begins = self.clear_stretches.acked(sent, acked, is_clear, longest);
            self.count += f64::from(u8::from(begins));
            self.top_stretches.acked(sent, acked, place > TOP, longest);
        }
        if self.is_sure() {
            self.window = self.window.take().filter(|window| !window.in_doubt);
        }
        self.grow(event);
        lost > 0.0 && self.on_loss(event.largest_lost_sent, lost)
    }

    /// Takes in that `lost` packets are lost that left at `sent`, and says whether a full queue dropped them.
    fn on_loss(&mut self, sent: Time, lost: f64) -> bool {
        if let Some(packets) = self.clear_stretches.lost(sent, lost) {
            self.clear.lost += lost;
            self.squares += lost * (2.0 * packets.lost - lost);
        }
        let top = self.top_stretches.lost(sent, lost).copied();
        top.is_some_and(|top| self.is_excessive(&top))
    }

    /// Where a forward delay lies between that of an empty queue, 0, and that of a full one, 1.
    fn place(&self, queue: f64, delay: &Delay) -> f64 {
        let range = self.high - self.low;
        if queue < self.least {
            0.0
        } else if range > self.probed(delay) {
            (queue - self.low) / range
        } else {
            1.0
        }
    }

    /// What probing up makes of an empty queue, s.
    fn probed(&self, delay: &Delay) -> f64 {
        let (share, most) = FULL_RANGE;
        self.least.max((share * delay.typical()).min(most))
    }

    /// Whether the window lets as much out as was too much.
    fn is_full(&self) -> bool {
        let full = |window: &Window| window.full.is_some_and(|full| window.cubic.cwnd() > full);
        self.window.as_ref().is_some_and(full)
    }

    fn end_round(&mut self) {
        let range = (self.high - self.low).max(0.0);
        self.high -= range / 16.0;
        self.low += range / 32.0;
        let kept = (MEMORY / self.clear.total().max(1.0)).min(1.0);
        self.clear = Tally { acked: self.clear.acked * kept, lost: self.clear.lost * kept };
        self.squares *= kept;
        self.count *= kept;
        self.peak -= self.peak / 8;
    }

    /// Whether more was lost near the longest delay than random loss takes: more than three standard
    /// deviations, of a count whose variance is its mean, times how much losses come in bursts, and more for
    /// how few packets the estimate is of. Random losses look so in a twentieth of a queue's sawteeth at most.
    ///
    /// Anyone who never sees the queue empty never gets an estimate, and would send the others' drops in addition:
    /// after startup, or where many packets tell, little random loss is believed in until then.
    fn is_excessive(&self, top: &Tally) -> bool {
        if !self.is_known() && (self.competes || self.stays_full(top)) {
            let (share, packets) = BELIEVED;
            let believed = (self.clear.lost + share * packets) / (self.clear.total() + packets);
            return top.lost > believed * top.total() + 1.0;
        }
        let known = self.clear.total() + 1.0;
        let bursts = self.bursts();
        let expected = (self.clear.lost + 0.5) / known * top.total();
        let variance = expected * (1.0 + top.total() / known) * bursts;
        top.lost >= expected + 3.0 * variance.sqrt() + 0.6 * bursts
    }

    /// Whether the queue is one that others keep full, as far as we can know.
    fn stays_full(&self, top: &Tally) -> bool {
        self.constant && (self.cautious || top.total() >= MANY)
    }

    /// How much random losses come in bursts: the variance of their number in a stretch over its mean, at least 1.
    fn bursts(&self) -> f64 {
        let mean = self.clear.lost / self.count.max(1.0);
        (self.squares / self.clear.lost.max(1.0) - mean).max(1.0)
    }

    /// Random loss in its better times, a share: less than the mean where stretches differ by more than chance.
    pub(super) fn least_random(&self) -> f64 {
        let mean = self.clear.lost / self.count.max(1.0);
        let deviation = ((self.bursts() - CHANGES).max(0.0) / mean.max(1e-9)).sqrt();
        self.random() * (1.0 - DEVIATIONS * deviation).max(0.0)
    }

    /// Whether random loss is known.
    fn is_known(&self) -> bool {
        self.clear.total() >= KNOWN
    }

    /// Whether it is known so well that a loss beyond it is congestion's.
    fn is_sure(&self) -> bool {
        self.clear.total() >= SURE
    }

    /// Random loss, a share.
    pub(super) fn random(&self) -> f64 {
        self.clear.lost / (self.clear.total() + 8.0)
    }

    /// Lets the window grow while it is what limits us.
    fn grow(&mut self, event: &AckEvent) {
        let Some(Window { cubic, .. }) = &mut self.window else { return };
        let limits = event.prior_in_flight.saturating_mul(FULL.1) / FULL.0 > cubic.cwnd();
        let quiet = AckEvent { lost_packets: 0, ce_packets: 0, app_limited: !limits, ..*event };
        cubic.on_ack(&quiet, &[]);
    }

    /// The window is for this share of one flow.
    pub(super) fn set_share(&mut self, share: f64) {
        if let Some(window) = &mut self.window {
            window.cubic.set_share(share);
        }
    }

    /// A full queue dropped packets: the window shrinks, or begins with most of what was in flight.
    pub(super) fn cut(&mut self, event: &AckEvent, packet: u64) {
        let (peak, in_doubt) = (self.peak, !self.is_sure());
        let window = self.window.get_or_insert_with(|| Window::new(peak, packet));
        let lost = AckEvent { ce_packets: 0, ..*event };
        window.cubic.on_ack(&lost, &[]);
        window.by_loss = true;
        window.in_doubt |= in_doubt && window.full.is_none();
    }

    /// Losses answer our sending, and at most the share `random` is random. Forgets what was known of random loss, and
    /// begins the window below `bytes`, which pass.
    pub(super) fn restart(&mut self, event: &AckEvent, random: f64, bytes: u64, packet: u64) {
        self.clear = Tally { acked: KNOWN * (1.0 - random), lost: KNOWN * random };
        (self.count, self.squares) = (0.0, 0.0);
        let mut window = self.window.take().unwrap_or_else(|| Window::new(bytes, packet));
        if window.cubic.cwnd() > bytes {
            window = Window::new(bytes, packet);
        }
        window.full = Some(bytes / TOO_MUCH.1 * TOO_MUCH.0);
        self.window = Some(window);
        self.cut(&AckEvent { lost_packets: 1, lost_bytes: packet, ..*event }, packet);
    }

    /// Begins to compete with `bytes`, unless losses have set a window.
    pub(super) fn start(&mut self, bytes: u64, packet: u64) {
        self.competes = true;
        self.window.get_or_insert_with(|| Window::new(bytes, packet));
    }

    /// Our queue was drained: there has been an occasion to learn random loss, and nobody competes. A window that no
    /// loss has set says nothing then.
    pub(super) fn stop(&mut self) {
        (self.competes, self.cautious) = (false, true);
        self.window = self.window.take().filter(|window| window.by_loss);
    }

    /// The bound, bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.window.as_ref().map(|window| window.cubic.cwnd())
    }

    /// Forgets the bound when it has outgrown `cwnd`: losses are not what limits the path any more.
    pub(super) fn release_above(&mut self, cwnd: u64) {
        self.window = self.window.take().filter(|window| window.cubic.cwnd() <= cwnd);
    }
}
