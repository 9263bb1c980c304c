//! Separates a path's delay into its own delay, which varies, and the queue that we add.
//!
//! A long round-trip time alone does not show a queue, since a radio link's delay jumps by more
//! than any acceptable queue. The delay that remains after we have sent less than the path carries
//! is the path's own or another flow's queue, and does not depend on us. It is the *floor*; only
//! the delay above it is ours.

use anabranch_types::{Time, math};

use crate::congestion::AckEvent;

/// The first samples, which are taken for the floor until it is measured.
const FIRST_SAMPLES: u64 = 16;
/// Packets that a measurement of the floor needs.
const LEAST_PACKETS: f64 = 4.0;
/// When a measurement shows less spread of the floor, the old spread is kept by the larger of two
/// factors: `SPREAD_KEPT`, and a decay since the last measurement with the time constant
/// `SPREAD_MEMORY`, s. The delay of a path with short round trips varies over many of them.
const SPREAD_KEPT: f64 = 0.75;
const SPREAD_MEMORY: f64 = 2.0;
/// Least time constant, s, of the smoothing of the round trip without the forward delay.
const REST_MEMORY: f64 = 0.5;
/// A measurement of the floor is discarded if the delay grew by more than this share of the time in
/// which its packets left: more was sent than the path carried, so a queue of ours was measured.
const GROWS: f64 = 0.4;
/// Largest spread of the floor, in typical round-trip times. A larger spread comes from a
/// bottleneck whose rate varies.
const MOST_SPREAD: f64 = 2.5;
/// Most bytes in flight without a queue, in what the path holds in a typical round trip.
const MOST_ROOM: f64 = 1.5;
/// Least spread of the floor, in round-trip times, of a path whose delay counts as varying. What
/// probing up adds within two round trips may then overfill a buffer that would hold it if all
/// round trips were as short as the shortest.
const VARIES: f64 = 0.125;
/// Behind a slow packet, delays fall evenly from the longest to the shortest. The distance of the
/// shortest from the mean is then this many times the mean distance below the mean, where delays
/// above it count as 0.
const FASTEST: f64 = 4.0;
/// A forward delay of more than this many spreads of the floor does not come from the path's own
/// variation.
const STEADY: f64 = 4.0;

/// The floor, its current measurement, and the delay now. All delays are seconds; forward delays
/// are counted from the least ever, [`RttView::queue`](crate::view::RttView::queue).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delay {
    /// The floor: mean and longest forward delay while none of our packets was queued.
    mean: f64,
    high: f64,
    /// Round-trip time without the forward delay, smoothed, since the return path's delay and the
    /// acknowledgement's own delay vary too.
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

/// Delays of packets that left while none of our packets was queued.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    since: Time,
    until: Time,
    packets: f64,
    high: f64,
    /// Mean of the delays, and of the times of departure, counted from `since`.
    mean: f64,
    mean_time: f64,
    /// Sums around the means: of the squares of times, and of the products of times and delays.
    times: f64,
    both: f64,
}

impl Measurement {
    fn between(since: Time, until: Time) -> Self {
        let (packets, high, mean) = (0.0, 0.0, 0.0);
        let (mean_time, times, both) = (0.0, 0.0, 0.0);
        Measurement { since, until, packets, high, mean, mean_time, times, both }
    }

    /// Adds the delay of a packet that left at `sent`.
    fn add(&mut self, sent: Time, delay: f64) {
        self.packets += 1.0;
        self.high = self.high.max(delay);
        let time = sent.since(self.since).as_secs_f64();
        let from_mean = time - self.mean_time;
        self.mean_time += from_mean / self.packets;
        self.mean += (delay - self.mean) / self.packets;
        self.times += from_mean * (time - self.mean_time);
        self.both += from_mean * (delay - self.mean);
    }

    /// Whether the delay grew as in a queue, by the least-squares line through the delays.
    fn is_of_a_queue(&self) -> bool {
        self.both > GROWS * self.times
    }
}

impl Delay {
    /// Processes an acknowledgement. Returns by how much the least delay, from which all others are
    /// counted, has risen, s. The least delay rises when its sample expires, after a minute at
    /// most, and falls when a packet is faster.
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

    /// Counts delays relative to the forward transit `least`, µs, from now on. Returns by how much
    /// it is above the previous one, s.
    fn recount(&mut self, least: i64) -> f64 {
        // The subtraction wraps like the 32-bit clocks.
        let rise = f64::from(least.wrapping_sub(self.least) as i32) / 1e6;
        self.least = least;
        if self.last == Time::ZERO || rise == 0.0 {
            return 0.0;
        }
        self.rest += rise;
        let delays = [&mut self.mean, &mut self.high, &mut self.level, &mut self.top];
        delays.into_iter().for_each(|delay| *delay -= rise);
        if let Some(measurement) = &mut self.measurement {
            measurement.mean -= rise;
            measurement.high -= rise;
        }
        rise
    }

    /// Ends a round trip. If the delay was always below the floor, by more than the floor varies, a
    /// queue was taken for the floor, and the floor is lowered.
    pub(super) fn end_round(&mut self) {
        let spread = self.spread();
        if self.top < self.mean - spread {
            (self.mean, self.high) = (self.top, self.top + spread);
        }
        self.top = self.level;
    }

    /// Takes the delays of the packets that leave in the next one and a half round trips as the
    /// floor. A measurement that is already running is extended to that time.
    pub(super) fn measure_floor(&mut self, event: &AckEvent) {
        let (since, until) = (event.now, event.now + event.rtt.smoothed.mul_f64(1.5));
        self.measurement.get_or_insert(Measurement::between(since, until)).until = until;
    }

    /// Discards the current measurement, which does not show the floor.
    pub(super) fn forget_measurement(&mut self) {
        self.measurement = None;
    }

    fn measure(&mut self, event: &AckEvent, forward: f64) {
        let Some(measurement) = &mut self.measurement else { return };
        if event.largest_acked_sent < measurement.since {
            return;
        }
        if event.largest_acked_sent < measurement.until {
            return measurement.add(event.largest_acked_sent, forward);
        }
        let done = *measurement;
        self.measurement = None;
        if done.packets >= LEAST_PACKETS && !done.is_of_a_queue() {
            let Measurement { mean, high, .. } = done;
            // A single measurement misses the longest delays.
            let elapsed = event.now.since(self.measured).as_secs_f64();
            let kept = math::exp(-elapsed / SPREAD_MEMORY).max(SPREAD_KEPT);
            let spread = (high - mean).max(kept * self.spread());
            self.measured = event.now;
            self.mean = mean;
            self.high = mean + spread.min(self.most_spread());
        }
    }

    /// Whether a packet acknowledged now left, at `sent`, while none of our packets was queued.
    pub(super) fn is_clear(&self, sent: Time) -> bool {
        self.measurement
            .is_some_and(|measurement| measurement.since <= sent && sent < measurement.until)
    }

    /// Notes that the delay was `level`, s, while none of our packets was queued: the path's own
    /// delay can be this long.
    pub(super) fn admit(&mut self, level: f64) {
        self.high = self.high.max(level.min(self.mean + self.most_spread()));
    }

    fn spread(&self) -> f64 {
        self.high - self.mean
    }

    fn most_spread(&self) -> f64 {
        MOST_SPREAD * self.typical()
    }

    /// Mean forward delay while none of our packets is queued.
    pub(super) fn floor(&self) -> f64 {
        self.mean
    }

    /// Forward delay of the last half round trip.
    pub(super) fn level(&self) -> f64 {
        self.level
    }

    /// The typical round-trip time while none of our packets is queued.
    pub(super) fn typical(&self) -> f64 {
        self.rest + self.mean
    }

    /// The longest round-trip time while none of our packets is queued.
    pub(super) fn longest(&self) -> f64 {
        self.rest + self.high
    }

    /// The round-trip time for which bytes in flight are needed: the longest one, up to a limit,
    /// since the bottleneck would run idle while a slow packet holds up others.
    pub(super) fn needed(&self) -> f64 {
        self.longest().min(MOST_ROOM * self.typical())
    }

    /// Our own queue: how far the delay of the last half round trip exceeds the floor plus the
    /// floor's spread.
    pub(super) fn own(&self) -> f64 {
        (self.level - self.mean - self.spread()).max(0.0)
    }

    /// How far the newest delay exceeds the longest delay of the floor.
    pub(super) fn beyond(&self, event: &AckEvent) -> f64 {
        (event.rtt.queue.as_secs_f64() - self.high).max(0.0)
    }

    /// How far the delay of the last half round trip exceeds the longest delay of the floor;
    /// negative if it is shorter.
    pub(super) fn level_beyond(&self) -> f64 {
        self.level - self.high
    }

    /// Whether the path's own variation explains a forward delay of `level`, s.
    pub(super) fn explains(&self, level: f64) -> bool {
        level <= self.high
    }

    /// Whether the path's own delay varies by a large part of a round trip.
    pub(super) fn varies(&self) -> bool {
        self.spread() > VARIES * self.typical()
    }

    /// The longest round-trip time divided by the typical one if the path's own delay varies, else
    /// 1.
    pub(super) fn stretch(&self) -> f64 {
        if self.varies() { self.longest() / self.typical() } else { 1.0 }
    }

    /// Whether even the fastest packets of the last half round trip are delayed longer than the
    /// mean of the floor. This is so in a queue, but not behind single slow packets.
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
