//! Separates a path's delay into the road's own delay, which varies, and the queue that we add.
//!
//! The level of a round-trip time does not show a queue: a radio's delay jumps by more than any acceptable queue. The
//! delay that remains when we have just sent less than the path carries is the road's own or another flow's queue, and
//! does not depend on us. That is the *floor*; only what rises above it is ours.

use anabranch_types::{Time, math};

use crate::congestion::AckEvent;

/// Samples at the start that are taken for the floor until it is measured.
const FIRST_SAMPLES: u64 = 16;
/// Packets that a measurement of the floor needs.
const LEAST_PACKETS: f64 = 4.0;
/// Share of the floor's spread that is kept when a measurement shows less; or, if that is more, what a decay with
/// this time constant, s, leaves since the last measurement. The delay of a road with short round trips varies over
/// many of them.
const SPREAD_KEPT: f64 = 0.75;
const SPREAD_MEMORY: f64 = 2.0;
/// Least time constant, s, with which the rest of the round trip is smoothed.
const REST_MEMORY: f64 = 0.5;
/// Largest spread of the floor, in typical round-trip times: a larger one comes from a bottleneck whose rate varies.
const MOST_SPREAD: f64 = 2.5;
/// Least spread of the floor, in round-trip times, of a road whose delay varies. What probing up adds within two round
/// trips may then fill a buffer that would hold it if all round trips were the shortest one.
const VARIES: f64 = 0.125;
/// Behind a slow packet, delays fall evenly from the longest to the shortest. The distance of the shortest from their
/// mean is then this many times the mean distance below it, delays above it counting as 0.
const FASTEST: f64 = 4.0;
/// A forward delay of more than this many spreads of the floor does not come from the road's own variation.
const STEADY: f64 = 4.0;

/// The floor, what it is measured from, and the delay now. All delays are seconds; forward delays are
/// counted from the least ever, [`RttView::queue`](crate::view::RttView::queue).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delay {
    /// The floor: mean and longest forward delay when nothing of ours waited.
    mean: f64,
    high: f64,
    /// Round-trip time without the forward delay, smoothed: the way back and the acknowledgement's own delay
    /// vary too.
    rest: f64,
    /// Forward delay, smoothed over half a round trip.
    level: f64,
    /// How far delays are below the level, smoothed like it; delays above it count as 0.
    below: f64,
    /// The largest level in this round trip.
    top: f64,
    last: Time,
    /// The least forward transit, µs.
    least: i64,
    /// When the floor was measured last.
    measured: Time,
    measurement: Option<Measurement>,
}

/// Delays of packets that left while nothing of ours waited.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    since: Time,
    until: Time,
    packets: f64,
    sum: f64,
    high: f64,
}

impl Delay {
    /// Takes in an acknowledgement. Returns by how much the least delay, from which all others are counted, has risen, s.
    /// It rises when the least is forgotten, after a minute at most, and falls when a packet is faster.
    pub(super) fn on_ack(&mut self, event: &AckEvent) -> f64 {
        let rtt = &event.rtt;
        if rtt.samples == 0 || event.acked_packets == 0 {
            return 0.0;
        }
        let rise = self.recount(rtt.forward);
        let forward = rtt.queue.as_secs_f64();
        let rest = (rtt.latest.as_secs_f64() - forward).max(rtt.min.as_secs_f64());
        if self.last == Time::ZERO {
            (self.level, self.rest) = (forward, rest);
        }
        let passed = event.now.since(self.last).as_secs_f64();
        let weight = (2.0 * passed / rtt.smoothed.as_secs_f64().max(1e-6)).min(1.0);
        self.below += weight * ((self.level - forward).max(0.0) - self.below);
        self.level += weight * (forward - self.level);
        self.top = self.top.max(self.level);
        self.rest += (weight / 4.0).min(passed / REST_MEMORY) * (rest - self.rest);
        self.last = event.now;
        if rtt.samples <= FIRST_SAMPLES {
            self.mean += (forward - self.mean) / rtt.samples as f64;
            self.high = self.high.max(forward);
        }
        self.measure(event, forward);
        rise
    }

    /// Counts delays from the forward transit `least`, µs, from now on.
    fn recount(&mut self, least: i64) -> f64 {
        // The 32-bit clocks wrap.
        let rise = f64::from(least.wrapping_sub(self.least) as i32) / 1e6;
        self.least = least;
        if self.last == Time::ZERO || rise == 0.0 {
            return 0.0;
        }
        self.rest += rise;
        let delays = [&mut self.mean, &mut self.high, &mut self.level, &mut self.top];
        delays.into_iter().for_each(|delay| *delay -= rise);
        if let Some(measurement) = &mut self.measurement {
            measurement.sum -= measurement.packets * rise;
            measurement.high -= rise;
        }
        rise
    }

    /// A round trip ends. If the delay was below the floor all the time, by more than the floor varies, a queue was
    /// taken for the floor.
    pub(super) fn end_round(&mut self) {
        let spread = self.spread();
        if self.top < self.mean - spread {
            (self.mean, self.high) = (self.top, self.top + spread);
        }
        self.top = self.level;
    }

    /// Takes the delays of the packets that leave in the next one and a half round trips as the floor. A
    /// measurement under way goes on until then.
    pub(super) fn measure_floor(&mut self, event: &AckEvent) {
        let (since, until) = (event.now, event.now + event.rtt.smoothed.mul_f64(1.5));
        let new = Measurement { since, until, packets: 0.0, sum: 0.0, high: 0.0 };
        self.measurement.get_or_insert(new).until = until;
    }

    /// Discards the measurement under way, which does not show the floor.
    pub(super) fn forget_measurement(&mut self) {
        self.measurement = None;
    }

    fn measure(&mut self, event: &AckEvent, forward: f64) {
        let Some(measurement) = &mut self.measurement else { return };
        if event.largest_acked_sent < measurement.since {
            return;
        }
        if event.largest_acked_sent < measurement.until {
            measurement.packets += 1.0;
            measurement.sum += forward;
            measurement.high = measurement.high.max(forward);
            return;
        }
        let Measurement { packets, sum, high, .. } = *measurement;
        self.measurement = None;
        if packets >= LEAST_PACKETS {
            let mean = sum / packets;
            // Single measurements miss the longest delays.
            let elapsed = event.now.since(self.measured).as_secs_f64();
            let kept = math::exp(-elapsed / SPREAD_MEMORY).max(SPREAD_KEPT);
            let spread = (high - mean).max(kept * self.spread());
            self.measured = event.now;
            self.mean = mean;
            self.high = mean + spread.min(self.most_spread());
        }
    }

    /// Whether a packet acknowledged now left, at `sent`, while nothing of ours waited.
    pub(super) fn is_clear(&self, sent: Time) -> bool {
        self.measurement
            .is_some_and(|measurement| measurement.since <= sent && sent < measurement.until)
    }

    /// The delay was `level`, s, while nothing of ours waited: the road's own gets this long.
    pub(super) fn admit(&mut self, level: f64) {
        self.high = self.high.max(level.min(self.mean + self.most_spread()));
    }

    fn spread(&self) -> f64 {
        self.high - self.mean
    }

    fn most_spread(&self) -> f64 {
        MOST_SPREAD * self.typical()
    }

    /// Mean forward delay while nothing of ours waits.
    pub(super) fn floor(&self) -> f64 {
        self.mean
    }

    /// Forward delay of the last half round trip.
    pub(super) fn level(&self) -> f64 {
        self.level
    }

    /// The round-trip time while nothing of ours waits.
    pub(super) fn typical(&self) -> f64 {
        self.rest + self.mean
    }

    /// The longest round-trip time while nothing of ours waits.
    pub(super) fn longest(&self) -> f64 {
        self.rest + self.high
    }

    /// The queue that we keep: how far the delay of the last half round trip is above the floor, and above
    /// what the floor itself varies by.
    pub(super) fn own(&self) -> f64 {
        (self.level - self.mean - self.spread()).max(0.0)
    }

    /// How far the newest delay is beyond all that the floor showed.
    pub(super) fn beyond(&self, event: &AckEvent) -> f64 {
        (event.rtt.queue.as_secs_f64() - self.high).max(0.0)
    }

    /// How far the delay of the last half round trip is beyond all that the floor showed; negative if it is not.
    pub(super) fn level_beyond(&self) -> f64 {
        self.level - self.high
    }

    /// Whether the road's own variation explains such a forward delay, s.
    pub(super) fn explains(&self, level: f64) -> bool {
        level <= self.high
    }

    /// Whether the road's own delay varies by much of a round trip.
    pub(super) fn varies(&self) -> bool {
        self.spread() > VARIES * self.typical()
    }

    /// The longest round-trip time over the typical one, of a road whose delay varies; 1 of any other.
    pub(super) fn stretch(&self) -> f64 {
        if self.varies() { self.longest() / self.typical() } else { 1.0 }
    }

    /// Whether even the fastest packets of the last half round trip wait longer than the average packet does while nothing
    /// of ours waits. They do in a queue, but not behind single slow packets.
    pub(super) fn holds_up_all(&self) -> bool {
        self.level - FASTEST * self.below > self.mean
    }

    /// Whether the delay is long compared with the floor's spread.
    pub(super) fn is_steady(&self) -> bool {
        self.level > STEADY * self.spread()
    }

    /// Whether the delay is so long compared with the least round-trip time that it must come from a queue.
    pub(super) fn is_queue(&self, event: &AckEvent) -> bool {
        self.level > 2.0 * event.rtt.min.as_secs_f64()
    }
}
