//! Finds losses that are due to congestion, and the bound that they set: a CUBIC window like that
//! of rival flows.
//!
//! Random loss does not depend on the queue, but a full queue drops packets while it is longest. So
//! losses beyond the share of random loss while the delay is near its longest are due to
//! congestion.

use super::delay::Delay;
use super::excess::Excess;
use super::random::Random;
use crate::congestion::cubic::Cubic;
use crate::congestion::{AckEvent, CongestionController};

/// Delays that differ by less than the smaller of these count as equal: a time, s, and the time
/// that this many packets take at the delivery rate.
const LEAST_RANGE: f64 = 0.001;
const LEAST_PACKETS: f64 = 2.0;
/// If the delay varies by at least this, its lower end is an empty queue: a share of the round-trip
/// time, which is what probing up adds to an empty queue, and at most a time, s. In a queue that
/// several flows keep full, the delay varies less.
const FULL_RANGE: (f64, f64) = (0.125, 0.006);
/// If probing up adds fewer packets than this, a short delay may still be a full queue: several flows with so few packets
/// each can keep a short queue full.
const MANY_PROBED: f64 = 8.0;
/// Where the upper part of the range begins, and where the lower part ends.
const TOP: f64 = 0.7;
const BOTTOM: f64 = 0.3;
/// A delay below this share of the longest one in `ROUNDS` round trips shows that the queue is
/// empty. A queue takes more round trips to empty, but the path's own delay varies within one.
const SHORT: f64 = 0.35;
const ROUNDS: usize = 3;
/// If this many packets in a row met a long queue, this is a sign that others keep it full.
const MANY: f64 = 64.0;
/// This share of the window at which losses responded to our sending already counts as too much.
const TOO_MUCH: (u64, u64) = (17, 20);
/// The window limits us if at least this share of it is in flight. Pacing and acknowledgements that
/// come in clumps leave up to an eighth unused.
const FULL: (u64, u64) = (7, 8);

/// Distinguishes losses due to congestion from random loss, and holds the bound that they set.
#[derive(Clone, Debug, Default)]
pub(super) struct Rival {
    /// Recent range of the forward delay, from the floor to the longest, s.
    low: f64,
    high: f64,
    /// Time that a packet takes at the delivery rate, s.
    packet: f64,
    /// The longest delays of this round trip and of those before it, s.
    longest: [f64; ROUNDS],
    random: Random,
    excess: Excess,
    /// Most bytes recently in flight.
    peak: u64,
    window: Option<Window>,
    /// Whether another flow is believed to fill the queue.
    competes: bool,
    /// Whether there has been an occasion to learn random loss.
    cautious: bool,
    /// Whether the delay is long and hardly varies, which shows that the queue is kept full.
    constant: bool,
}

/// The bound on bytes in flight.
#[derive(Clone, Debug)]
struct Window {
    cubic: Cubic,
    /// Whether a loss has set the bound. If not, another flow's queue has.
    by_loss: bool,
    /// Whether the loss that set the bound may have been random: random loss was not well known
    /// yet, and losses had not responded to our sending.
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
    /// Corrects the delays after the least delay, from which all others are counted, has risen by
    /// `rise`, s.
    pub(super) fn recount(&mut self, rise: f64) {
        (self.low, self.high) = (self.low - rise, self.high - rise);
        self.longest = self.longest.map(|delay| delay - rise);
    }

    /// Processes an acknowledgement. Returns true if it shows that a full queue dropped packets.
    ///
    /// `packet` is the time that a packet takes at the delivery rate, s.
    pub(super) fn on_ack(
        &mut self,
        event: &AckEvent,
        round_over: bool,
        delay: &Delay,
        packet: f64,
    ) -> bool {
        self.packet = packet;
        if round_over {
            self.end_round();
        }
        self.peak = self.peak.max(event.prior_in_flight);
        let queue = event.rtt.queue.as_secs_f64();
        (self.low, self.high) = (self.low.min(delay.floor()), self.high.max(queue));
        let place = if self.is_full() { 1.0 } else { self.place(queue, delay) };
        self.constant = queue >= self.least() && self.high - self.low <= self.full_range(delay);
        if event.acked_packets > 0 {
            let is_clear = place < BOTTOM && delay.is_clear(event.largest_acked_sent);
            self.longest[0] = self.longest[0].max(queue);
            let longest = self.longest.iter().copied().fold(0.0, f64::max);
            let is_short = queue < self.least().max(SHORT * longest);
            self.random.on_acked(event, is_clear, is_short);
            self.excess.on_acked(event, place > TOP, &self.random);
        }
        if self.random.is_sure() {
            self.window = self.window.take().filter(|window| !window.in_doubt);
        }
        self.grow(event);
        event.lost_packets > 0 && self.on_loss(event)
    }

    /// Processes losses, and returns whether a full queue dropped them.
    fn on_loss(&mut self, event: &AckEvent) -> bool {
        self.random.on_lost(event);
        // Two of these three signs show that others keep the queue full.
        let signs = u8::from(self.constant) + u8::from(self.cautious);
        let is_full = |packets| self.competes || signs + u8::from(packets >= MANY) >= 2;
        self.excess.on_lost(event, &self.random, is_full)
    }

    /// Where a forward delay lies between that of an empty queue, 0, and that of a full one, 1.
    fn place(&self, queue: f64, delay: &Delay) -> f64 {
        let range = self.high - self.low;
        if queue < self.least() {
            0.0
        } else if range > self.full_range(delay) {
            (queue - self.low) / range
        } else {
            1.0
        }
    }

    /// Delays that differ by less than this, s, count as equal.
    fn least(&self) -> f64 {
        LEAST_RANGE.min(LEAST_PACKETS * self.packet)
    }

    /// How much the delay must vary, s, for its shortest values to show an empty queue. The result
    /// is 0 if even the longest delay is shorter than what probing up adds to an empty queue: the
    /// path itself may cause such a delay.
    fn full_range(&self, delay: &Delay) -> f64 {
        let (share, most) = FULL_RANGE;
        let probed = share * delay.typical();
        if self.high < probed && probed > MANY_PROBED * self.packet {
            return 0.0;
        }
        self.least().max(probed.min(most))
    }

    /// Whether the window exceeds [`Window::full`].
    fn is_full(&self) -> bool {
        let full = |window: &Window| window.full.is_some_and(|full| window.cubic.cwnd() > full);
        self.window.as_ref().is_some_and(full)
    }

    fn end_round(&mut self) {
        let range = (self.high - self.low).max(0.0);
        self.high -= range / 16.0;
        self.low += range / 32.0;
        self.random.end_round();
        self.longest.rotate_right(1);
        self.longest[0] = 0.0;
        self.peak -= self.peak / 8;
    }

    /// The estimate of random loss.
    pub(super) fn random(&self) -> &Random {
        &self.random
    }

    /// Lets the window grow while it limits what we send.
    fn grow(&mut self, event: &AckEvent) {
        let Some(Window { cubic, .. }) = &mut self.window else { return };
        let limits = event.prior_in_flight.saturating_mul(FULL.1) / FULL.0 > cubic.cwnd();
        let quiet = AckEvent { lost_packets: 0, ce_packets: 0, app_limited: !limits, ..*event };
        cubic.on_ack(&quiet, &[]);
    }

    /// Makes the window that of the given share of one flow.
    pub(super) fn set_share(&mut self, share: f64) {
        if let Some(window) = &mut self.window {
            window.cubic.set_share(share);
        }
    }

    /// A full queue dropped packets: the window shrinks, or begins with most of what was in flight.
    pub(super) fn cut(&mut self, event: &AckEvent, packet: u64) {
        let (peak, in_doubt) = (self.peak, !self.random.is_sure());
        let window = self.window.get_or_insert_with(|| Window::new(peak, packet));
        let lost = AckEvent { ce_packets: 0, ..*event };
        window.cubic.on_ack(&lost, &[]);
        window.by_loss = true;
        window.in_doubt |= in_doubt && window.full.is_none();
    }

    /// Starts again after losses have responded to our sending: at most the share `random` of
    /// packets is lost at random, and the path carries `bytes`. Discards what was known of random
    /// loss, and starts the window below `bytes`.
    pub(super) fn restart(&mut self, event: &AckEvent, random: f64, bytes: u64, packet: u64) {
        self.random.restart(random);
        let mut window = self.window.take().unwrap_or_else(|| Window::new(bytes, packet));
        if window.cubic.cwnd() > bytes {
            window = Window::new(bytes, packet);
        }
        window.full = Some(bytes / TOO_MUCH.1 * TOO_MUCH.0);
        self.window = Some(window);
        self.cut(&AckEvent { lost_packets: 1, lost_bytes: packet, ..*event }, packet);
    }

    /// Starts to compete, with a window of `bytes` unless there is one.
    pub(super) fn start(&mut self, bytes: u64, packet: u64) {
        self.competes = true;
        self.window.get_or_insert_with(|| Window::new(bytes, packet));
    }

    /// Notes that our queue was drained: random loss could be measured, and no other flow competes.
    /// Drops a window that no loss has set.
    pub(super) fn stop(&mut self) {
        (self.competes, self.cautious) = (false, true);
        self.window = self.window.take().filter(|window| window.by_loss);
    }

    /// The bound, bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.window.as_ref().map(|window| window.cubic.cwnd())
    }

    /// Drops the bound when it has grown beyond `cwnd`, since losses then no longer limit the path.
    pub(super) fn release_above(&mut self, cwnd: u64) {
        self.window = self.window.take().filter(|window| window.cubic.cwnd() <= cwnd);
    }
}
