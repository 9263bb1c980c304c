//! Decides when startup ends, and when it resumes because the delay that ended it was not caused by a queue.
//!
//! Startup doubles the rate every round trip until the delay rises, which shows a queue. Jitter
//! raises the delay too: the more packets a round trip has, the longer is the longest of their
//! delays. The packets in flight when startup ends distinguish the two cases. They were sent faster
//! than the bottleneck's rate, so if there is a queue, the last of them waits even longer, and no
//! more is delivered than before.

use anabranch_types::Time;

use super::delay::Delay;
use super::random::Tally;
use crate::congestion::AckEvent;

/// Pacing gain that doubles the rate every round trip.
pub(super) const GAIN: f64 = 2.77;
/// Gain of a startup that probing has begun, and its window as a multiple of what the path holds at
/// its longest delay. The path's rate is then known, and what is sent beyond it until losses are
/// known overfills short buffers many times.
const PROBE_GAIN: f64 = 1.8;
/// In a round trip, startup paces at most this many times the bytes in flight. The window grows
/// more slowly, so this does not limit a flow that fills its window.
const PROVEN: u64 = 4;
/// The delivery rate has grown if it has grown by this factor; and the number of rounds without
/// growth that end startup.
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Fewest packets that have to arrive in those rounds. If many packets are lost, the number that
/// arrives of a small window varies more than it grows.
const FULL_PACKETS: u32 = 32;
/// If the delivery rate grows by this factor after startup has ended, the bottleneck was not full.
const GOES_ON: f64 = 1.5;
/// Startup resumes only if at most this share has been lost since its end. The delay of a full
/// buffer does not grow either, but the buffer drops more.
const FEW_LOST: f64 = 0.1;
/// How often startup may resume. The delay of other flows' queues may look like the path's own;
/// startup must not resume without end because of such queues.
const MOST_RESUMED: u32 = 4;
/// Window of a startup that has resumed, as a multiple of what the path holds at its longest delay.
/// Most delays are shorter than that, so this window doubles the rate each round trip too.
const RESUMED_WINDOW: f64 = 2.0;

/// The end of startup because of the delay.
#[derive(Clone, Copy, Debug)]
struct End {
    at: Time,
    /// The delay, s.
    level: f64,
    /// Delivery rate, bits per second.
    delivery: f64,
    /// Packets acknowledged or lost since startup ended.
    packets: Tally,
    /// Whether the last packets sent before the end have been acknowledged.
    is_told: bool,
}

/// The state of startup.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Startup {
    /// Delivery rate when it last grew, bits per second; and the rounds and packets acknowledged
    /// since then.
    full_rate: f64,
    full_rounds: u32,
    full_packets: u32,
    end: Option<End>,
    resumed: u32,
    /// Whether probing has begun this startup.
    is_probe: bool,
    /// Most bytes in flight in this round trip and in the last.
    in_flight: [u64; 2],
}

impl Startup {
    /// Begins or resumes startup at a delivery rate of `delivery` bits per second. `is_probe` says
    /// that it begins because probing found more room.
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

    /// Processes a round trip with this delivery rate, bits per second. Returns true if the rate no
    /// longer grows.
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

    /// Ends startup because of the delay.
    pub(super) fn end_by_delay(&mut self, event: &AckEvent, delay: &Delay, delivery: f64) {
        let (at, level) = (event.now, delay.level());
        let (packets, is_told) = (Tally::default(), false);
        self.end = Some(End { at, level, delivery, packets, is_told });
    }

    /// Corrects the delay after the least delay, from which all others are counted, has risen by
    /// `rise`, s.
    pub(super) fn recount(&mut self, rise: f64) {
        if let Some(end) = &mut self.end {
            end.level -= rise;
        }
    }

    /// Bytes that startup may pace over a round trip: a multiple of the most that was in flight in
    /// this round trip or the last. A larger window was never filled, so nothing shows that the
    /// path carries it.
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

    /// Whether the last packets that left before the end waited no longer than those that caused
    /// it. Returns true once at most.
    pub(super) fn waits_no_longer(&mut self, event: &AckEvent, delay: &Delay) -> bool {
        let Some(end) = &mut self.end else { return false };
        if end.is_told || event.acked_packets == 0 || event.largest_acked_sent < end.at {
            return false;
        }
        end.is_told = true;
        delay.level() <= end.level
    }

    /// Whether so much more is delivered than at the end that the bottleneck was not full.
    pub(super) fn delivers_more(&self, delivery: f64) -> bool {
        self.end.is_some_and(|end| delivery > GOES_ON * end.delivery)
    }

    /// Whether the path's own variation explains the delay at the end.
    pub(super) fn is_explained(&self, delay: &Delay) -> bool {
        self.end.is_some_and(|end| delay.explains(end.level))
    }

    /// Resumes startup, which ended too early, unless it has resumed too often or much was lost. If
    /// it resumes, returns true, and the delay that ended it counts as the path's own.
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
