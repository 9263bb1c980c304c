//! Which losses are congestion's, and the bound that those set: CUBIC's window, which rivals have too.
//!
//! Random loss is the same whether a queue is long or not; a full queue drops packets while it is longest.
//! So what is lost while nothing of ours waits is random, and what is lost beyond that share while the
//! delay is near its longest is congestion's.

use anabranch_types::Time;

use crate::congestion::cubic::Cubic;
use crate::congestion::{AckEvent, CongestionController};

/// Least range of delays, s, whose ends differ.
const LEAST_RANGE: f64 = 0.001;
/// Where the upper end of the range begins, and where the lower one ends.
const TOP: f64 = 0.7;
const BOTTOM: f64 = 0.3;
/// Packets that the estimate of random loss remembers.
const MEMORY: f64 = 1024.0;
/// Share of the window that must be in flight for it to be what limits us: pacing and acknowledgements that
/// come in clumps leave up to an eighth of it unused.
const FULL: (u64, u64) = (7, 8);

/// Packets whose fate is known.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    acked: f64,
    lost: f64,
}

impl Tally {
    fn total(&self) -> f64 {
        self.acked + self.lost
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Rival {
    /// Range of the forward delay lately, from the floor to the longest, s.
    low: f64,
    high: f64,
    /// Packets sent while nothing of ours waited, the squares of their losses by round trip, and those
    /// of this round trip.
    clear: Tally,
    squares: f64,
    clear_lost: f64,
    /// Packets of this round trip that met a delay near the longest.
    top: Tally,
    /// Most bytes in flight lately.
    peak: u64,
    window: Option<Window>,
}

/// The bound on bytes in flight.
#[derive(Clone, Debug)]
struct Window {
    cubic: Cubic,
    /// Whether a loss has set it, or only that somebody else's queue was seen.
    by_loss: bool,
}

impl Window {
    fn new(bytes: u64, packet: u64) -> Self {
        Window { cubic: Cubic::at(bytes, packet), by_loss: false }
    }
}

impl Rival {
    /// Takes in an acknowledgement: `floor` is the forward delay when nothing of ours waits, and packets
    /// sent since `clear` met no queue of ours. True if it shows that a full queue dropped packets.
    pub(super) fn on_ack(
        &mut self,
        event: &AckEvent,
        round_over: bool,
        floor: f64,
        clear: Option<Time>,
    ) -> bool {
        if round_over {
            self.end_round();
        }
        self.peak = self.peak.max(event.prior_in_flight);
        let delay = event.rtt.queue.as_secs_f64();
        (self.low, self.high) = (self.low.min(floor), self.high.max(delay));
        let place = self.place(delay);
        let (acked, lost) = (f64::from(event.acked_packets), f64::from(event.lost_packets));
        if let Some(clear) = clear.filter(|_| place < BOTTOM) {
            if event.largest_acked_sent >= clear {
                self.clear.acked += acked;
            }
            if lost > 0.0 && event.largest_lost_sent >= clear {
                self.clear.lost += lost;
                self.clear_lost += lost;
            }
        }
        if place > TOP {
            self.top.acked += acked;
            self.top.lost += lost;
        }
        let dropped = place > TOP && lost > 0.0 && self.is_excessive();
        self.grow(event);
        dropped
    }

    /// Where a forward delay lies within their range, 0 to 1; the middle if there is none.
    fn place(&self, delay: f64) -> f64 {
        let range = self.high - self.low;
        if delay < LEAST_RANGE {
            0.0
        } else if range > LEAST_RANGE {
            (delay - self.low) / range
        } else {
            0.5
        }
    }

    fn end_round(&mut self) {
        let range = (self.high - self.low).max(0.0);
        self.high -= range / 16.0;
        self.low += range / 32.0;
        self.squares += self.clear_lost * self.clear_lost;
        let kept = (MEMORY / self.clear.total().max(1.0)).min(1.0);
        self.clear = Tally { acked: self.clear.acked * kept, lost: self.clear.lost * kept };
        self.squares *= kept;
        self.peak -= self.peak / 8;
        (self.top, self.clear_lost) = Default::default();
    }

    /// Whether more was lost near the longest delay than random loss takes: more than three standard
    /// deviations, of a count whose variance is its mean, times how much losses come in bursts, and more for
    /// how few packets the estimate is of. Random losses look so in a twentieth of a queue's sawteeth at most.
    fn is_excessive(&self) -> bool {
        let known = self.clear.total() + 1.0;
        let bursts = if self.clear.lost < 1.0 { 1.0 } else { self.squares / self.clear.lost };
        let bursts = bursts.max(1.0);
        let expected = (self.clear.lost + 0.5) / known * self.top.total();
        let variance = expected * (1.0 + self.top.total() / known) * bursts;
        self.top.lost >= expected + 3.0 * variance.sqrt() + 0.6 * bursts
    }

    /// Random loss, a share.
    pub(super) fn random(&self) -> f64 {
        self.clear.lost / (self.clear.total() + 8.0)
    }

    /// Lets the window grow while it is what limits us.
    fn grow(&mut self, event: &AckEvent) {
        let Some(Window { cubic, .. }) = &mut self.window else { return };
        let limits = event.prior_in_flight * FULL.1 / FULL.0 > cubic.cwnd();
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
        let peak = self.peak;
        let window = self.window.get_or_insert_with(|| Window::new(peak, packet));
        let lost = AckEvent { ce_packets: 0, ..*event };
        window.cubic.on_ack(&lost, &[]);
        window.by_loss = true;
    }

    /// Begins to compete with `bytes`, unless losses have set a window.
    pub(super) fn start(&mut self, bytes: u64, packet: u64) {
        self.window.get_or_insert_with(|| Window::new(bytes, packet));
    }

    /// Nobody competes: a window that no loss has set says nothing.
    pub(super) fn stop(&mut self) {
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
