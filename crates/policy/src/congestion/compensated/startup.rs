//! Decides when startup ends, and when it resumes because the delay that ended it was not caused by a queue.
//!
//! Startup doubles the rate every round trip until the delay rises, which shows a queue. Jitter raises the delay too:
//! the more packets a round trip has, the longer is the longest of their delays. What follows tells the two apart. The
//! packets in flight when startup ends were sent faster than the bottleneck takes them, so if there is a queue, the last
//! of them waits longer still, and no more is delivered than before.

use anabranch_types::Time;

use super::delay::Delay;
use super::random::Tally;
use crate::congestion::AckEvent;

/// Gain of pacing: doubles the rate every round trip.
pub(super) const GAIN: f64 = 2.77;
/// Gain, and window as a multiple of what the path holds at its longest delay, of a startup that probing has begun. The
/// path has a rate then, and what is beyond it until losses are known fills short buffers many times over.
const PROBE_GAIN: f64 = 1.8;
/// In a round trip, startup paces at most this many times what was in flight. The window grows by less, so that this
/// does not limit a flow that fills it.
const PROVEN: u64 = 4;
/// Growth of what is delivered in a round trip below which it counts as none, and how many such rounds end startup.
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Fewest packets that have to arrive in those rounds. Where much is lost, what arrives of a small window varies by more
/// than it grows.
const FULL_PACKETS: u32 = 32;
/// Growth of the delivery rate after the end that shows that the bottleneck was not full.
const GOES_ON: f64 = 1.5;
/// Most loss after the end for startup to go on. The delay of a full buffer does not grow either, but it drops more.
const FEW_LOST: f64 = 0.1;
/// How often startup goes on. Others' queues may pass for the road's own, and beside them it must not go on for ever.
const MOST_RESUMED: u32 = 4;
/// Window of a startup that has gone on, as a multiple of what the path holds at its longest delay. Most delays are
/// shorter then, so this doubles the rate each round trip too.
const RESUMED_WINDOW: f64 = 2.0;

/// How a delay ended startup.
#[derive(Clone, Copy, Debug)]
struct End {
    at: Time,
    /// The delay, s.
    level: f64,
    /// Delivery rate, bits per second.
    delivery: f64,
    /// Packets acknowledged or lost since.
    packets: Tally,
    /// Whether the last packets sent before it have been acknowledged.
    is_told: bool,
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Startup {
    /// Delivery rate when it last grew, bits per second; the rounds since then, and the packets acknowledged.
    full_rate: f64,
    full_rounds: u32,
    full_packets: u32,
    end: Option<End>,
    resumed: u32,
    /// Whether probing has begun it.
    is_probe: bool,
    /// Most bytes in flight in this round trip and in the last.
    in_flight: [u64; 2],
}

impl Startup {
    /// Startup begins, or goes on, while `delivery` bits per second are delivered. `is_probe` says that probing, which
    /// found more room, begins it.
    pub(super) fn begin(&mut self, delivery: f64, is_probe: bool) {
        self.grew_to(delivery);
        (self.end, self.is_probe) = (None, is_probe);
    }

    pub(super) fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// Pacing rate as a multiple of the rate.
    pub(super) fn gain(&self) -> f64 {
        if self.is_probe { PROBE_GAIN } else { GAIN }
    }

    /// Takes in a round trip in which this many bits per second were delivered. True if they grow no more.
    pub(super) fn is_full(&mut self, delivery: f64) -> bool {
        if delivery >= self.full_rate * GROWTH {
            self.grew_to(delivery);
            return false;
        }
        self.full_rounds += 1;
        self.full_rounds >= FULL_ROUNDS && self.full_packets >= FULL_PACKETS
    }

    fn grew_to(&mut self, delivery: f64) {
        (self.full_rate, self.full_rounds, self.full_packets) = (delivery, 0, 0);
    }

    /// The delay ends startup.
    pub(super) fn end_by_delay(&mut self, event: &AckEvent, delay: &Delay, delivery: f64) {
        let (at, level) = (event.now, delay.level());
        let (packets, is_told) = (Tally::default(), false);
        self.end = Some(End { at, level, delivery, packets, is_told });
    }

    /// The least delay, from which all others are counted, has risen by `rise`, s.
    pub(super) fn recount(&mut self, rise: f64) {
        if let Some(end) = &mut self.end {
            end.level -= rise;
        }
    }

    /// Bytes that startup may pace over a round trip: a multiple of the most that was in flight in this round trip or the
    /// last. Nothing shows that the path carries a larger window, which was never filled.
    pub(super) fn proven(&self) -> u64 {
        PROVEN.saturating_mul(self.in_flight[0].max(self.in_flight[1]))
    }

    pub(super) fn on_ack(&mut self, event: &AckEvent, round_over: bool) {
        if round_over {
            self.in_flight = [0, self.in_flight[0]];
        }
        self.in_flight[0] = self.in_flight[0].max(event.prior_in_flight);
        self.full_packets = self.full_packets.saturating_add(event.acked_packets);
        if let Some(end) = &mut self.end {
            end.packets.acked += f64::from(event.acked_packets);
            end.packets.lost += f64::from(event.lost_packets);
        }
    }

    /// Whether the last packets that left before the end waited no longer than those that caused it. Asked once.
    pub(super) fn waits_no_longer(&mut self, event: &AckEvent, delay: &Delay) -> bool {
        let Some(end) = &mut self.end else { return false };
        if end.is_told || event.acked_packets == 0 || event.largest_acked_sent < end.at {
            return false;
        }
        end.is_told = true;
        delay.level() <= end.level
    }

    /// Whether more is delivered than at the end, by so much that the bottleneck was not full.
    pub(super) fn delivers_more(&self, delivery: f64) -> bool {
        self.end.is_some_and(|end| delivery > GOES_ON * end.delivery)
    }

    /// Whether the delay at the end is one that the road has by itself.
    pub(super) fn is_explained(&self, delay: &Delay) -> bool {
        self.end.is_some_and(|end| delay.explains(end.level))
    }

    /// Startup ended too early and goes on, unless it has done so too often or much was lost; true if it does. The delay
    /// that ended it counts as the road's own.
    pub(super) fn resume(&mut self, delay: &mut Delay) -> bool {
        let Some(end) = self.end.take() else { return false };
        if self.resumed == MOST_RESUMED || end.packets.lost > FEW_LOST * end.packets.total() {
            return false;
        }
        self.resumed += 1;
        delay.admit(end.level);
        true
    }

    /// The window, as a multiple of what the path was measured to hold.
    pub(super) fn window(&self) -> f64 {
        if self.resumed > 0 && !self.is_probe { RESUMED_WINDOW } else { self.gain() }
    }
}
