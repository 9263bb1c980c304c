//! A congestion controller that keeps a queue on a link, to measure its rate, and lets the queue run empty every few
//! seconds, to measure its delay.

use std::time::Duration;

use anabranch::policy::CongestionController;
use anabranch::policy::congestion::{AckEvent, TimeoutEvent};
use anabranch::policy::registry::Entry;
use anabranch::policy::view::PathView;
use anabranch_types::{Bitrate, Time};

use super::record::Recorder;

/// Entry in the registry.
pub(in crate::doctor) const ENTRY: Entry = Entry {
    name: "saturate",
    summary: "keeps a queue of some milliseconds, to measure what a link carries",
    source: "",
    options: &[],
};

/// Time between two empty queues.
pub(super) const CYCLE: Duration = Duration::from_secs(5);
/// Queueing delay that is kept, as a share of the round-trip time of an empty queue, and its limits. Most buffers hold
/// more: a whole round trip.
const QUEUE: f64 = 0.5;
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(100);
/// With a shorter queueing delay the queue counts as empty.
const DRY: Duration = Duration::from_millis(2);
/// Where the buffer overflows, the queueing delay to keep is halved, down to this.
const LEAST: Duration = Duration::from_millis(5);
/// A round trip has overflowed a buffer or a policer if its loss is above twice the usual loss by this share, and if
/// this many packets were lost.
const OVERFLOW: f64 = 0.05;
const ENOUGH: u32 = 5;
/// The link has become slower if its rate falls below this share of the last round trip's.
const STEADY: f64 = 0.8;
/// Least share of the window that is left after one round trip, unless the link has become slower.
const SHRINK: f64 = 0.9;
/// Weight of a round trip's loss in the moving average, and the largest average that rates are corrected for.
const USUAL: f64 = 1.0 / 16.0;
const MOST_USUAL: f64 = 0.5;
/// Round trips after an overflow in which the window does not grow.
const HOLD: u32 = 8;
/// Growth of the window per round trip while the queue is below half of its goal, and below a quarter.
const GROWTH: f64 = 1.25;
const FAST_GROWTH: f64 = 1.5;
/// Pacing rate as a multiple of the rate of the last round trip, so that only the window limits.
const PACE: f64 = 2.0;
/// Longest duration of the start, in which the window doubles every round trip.
const START: Duration = Duration::from_secs(2);
/// Round-trip time of an empty queue before there is a sample.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Window while the queue runs empty, packets, and the largest window, bytes.
const FEW: u64 = 4;
const MOST: f64 = 1e9;
/// The queue is kept empty for this many round trips, and at least this long.
const LOOK: f64 = 2.5;
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    Full,
    /// The queue is running empty. The time is set once hardly anything is in flight; the phase
    /// ends then.
    Empty(Option<Time>),
}

/// The controller that the module's documentation describes.
#[derive(Debug)]
pub(in crate::doctor) struct Saturate {
    recorder: Recorder,
    phase: Phase,
    since: Option<Time>,
    packet: u64,
    /// Window, bytes.
    window: f64,
    /// Rate of the bottleneck, bytes per second. Packets that the usual loss takes count as passed.
    rate: f64,
    /// Round-trip time of an empty queue, and the queueing delay to keep.
    base: Duration,
    goal: Duration,
    hold: u32,
    /// Moving average of the loss in round trips without an overflow.
    usual: f64,
    /// Coming round trips that are not evaluated, because packets from before still count in them.
    skip: u32,
    round: Round,
}

/// A round trip: it is over when a packet that left after its start is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start: Time,
    delivered: u64,
    acked: u64,
    lost: u64,
    lost_packets: u32,
    /// The shortest round-trip time measured in this round trip.
    trip: Option<Duration>,
}

impl Saturate {
    pub(in crate::doctor) fn new(recorder: Recorder, packet: u64) -> Self {
        Saturate {
            recorder,
            phase: Phase::Start,
            since: None,
            packet,
            window: (10 * packet) as f64,
            rate: 0.0,
            base: UNKNOWN,
            goal: SHORTEST,
            hold: 0,
            usual: 0.0,
            skip: 0,
            round: Round::default(),
        }
    }

    /// The window at which the queueing delay is three quarters of its goal.
    fn target(&self) -> f64 {
        let time = self.base.as_secs_f64() + 0.75 * self.goal.as_secs_f64();
        self.rate * time
    }

    fn end_round(&mut self, event: &AckEvent, round: Round) {
        let time = event.now.since(round.start).as_secs_f64();
        let resolved = (round.acked + round.lost) as f64;
        let loss = round.lost as f64 / resolved.max(1.0);
        if self.skip > 0 || time <= 0.0 {
            self.skip = self.skip.saturating_sub(1);
            return;
        }
        let before = self.rate;
        self.rate = round.acked as f64 / time / (1.0 - self.usual.min(MOST_USUAL));
        let overflows = round.lost_packets >= ENOUGH && loss >= OVERFLOW + 2.0 * self.usual;
        if !overflows {
            self.usual += USUAL * (loss - self.usual);
        }
        let queue = round.trip.map_or(Duration::ZERO, |trip| trip.saturating_sub(self.base));
        if self.phase == Phase::Start {
            let long = self.since.is_some_and(|since| event.now.since(since) >= START);
            // With few packets, the acknowledgement may have been delayed.
            let is_known = round.acked >= 10 * self.packet;
            if is_known && queue > self.goal || overflows || long {
                self.empty(event);
            }
        } else {
            self.adjust(queue, overflows, self.rate < STEADY * before);
        }
    }

    /// Adjusts the window after a round trip, so that the queue stays near its goal.
    fn adjust(&mut self, queue: Duration, overflows: bool, slower: bool) {
        if overflows || queue > self.goal || self.hold > 0 {
            // If the window grew in this round trip, the measured rate is below the rate at its
            // end.
            let least = if slower { 0.0 } else { SHRINK * self.window };
            self.window = self.target().max(least);
            self.hold = self.hold.saturating_sub(1);
            if slower {
                // Losses of this round trip are still reported in the next one.
                self.skip = 1;
            } else if overflows {
                self.goal = (self.goal / 2).max(LEAST);
                self.hold = HOLD;
            }
        } else if queue < self.goal / 2 {
            self.window *= if queue < self.goal / 4 { FAST_GROWTH } else { GROWTH };
        }
    }

    /// Lets the queue run empty.
    fn empty(&mut self, event: &AckEvent) {
        self.phase = Phase::Empty(None);
        self.since = Some(event.now);
    }

    /// Fills the link again.
    fn fill(&mut self, event: &AckEvent, left: Time) {
        let mut record = self.recorder.lock();
        if let Some(trip) = self.round.trip {
            self.base = trip;
            record.empty(event.now, trip);
        }
        // Packets sent from now on are acknowledged a round trip later.
        record.blind(left, event.now + self.base.mul_f64(LOOK));
        drop(record);
        self.goal = match self.hold {
            0 => self.base.mul_f64(QUEUE).clamp(SHORTEST, LONGEST),
            _ => self.goal,
        };
        self.window = self.target();
        (self.phase, self.since, self.skip) = (Phase::Full, Some(event.now), 2);
    }
}

impl CongestionController for Saturate {
    fn on_ack(&mut self, event: &AckEvent, _: &[PathView]) {
        // If the queue is longer than wanted, a full buffer may have caused the losses.
        let crowded = event.rtt.latest > self.base + self.goal;
        let mut record = self.recorder.lock();
        record.acked(event, crowded);
        if self.phase == Phase::Full && event.rtt.latest < self.base + DRY {
            record.hungry(event.now);
        }
        drop(record);
        let since = *self.since.get_or_insert_with(|| {
            self.round.start = event.now;
            self.round.delivered = event.total_delivered;
            event.now
        });
        if event.acked_packets > 0 {
            let trip = event.rtt.latest;
            self.round.trip = Some(self.round.trip.map_or(trip, |least| least.min(trip)));
            if self.phase == Phase::Start {
                self.base = self.base.min(trip);
                self.window += event.acked_bytes as f64;
            }
        }
        self.round.acked += event.acked_bytes;
        self.round.lost += event.lost_bytes;
        self.round.lost_packets += event.lost_packets;
        match self.phase {
            Phase::Empty(None) => {
                if event.bytes_in_flight <= FEW * self.packet {
                    let look = self.base.mul_f64(LOOK).max(SHORTEST_LOOK);
                    self.phase = Phase::Empty(Some(event.now + look));
                    self.round.trip = None;
                }
                return;
            }
            Phase::Empty(Some(until)) if event.now < until => return,
            Phase::Empty(Some(_)) => self.fill(event, since),
            Phase::Full if event.now.since(since) >= CYCLE => return self.empty(event),
            Phase::Start | Phase::Full => {}
        }
        let over = match &event.rate {
            Some(rate) => rate.prior_delivered >= self.round.delivered,
            None => event.now.since(self.round.start) >= event.rtt.smoothed,
        };
        if over {
            let start =
                Round { start: event.now, delivered: event.total_delivered, ..Round::default() };
            let round = std::mem::replace(&mut self.round, start);
            self.end_round(event, round);
        }
    }

    /// The window stays: a timeout is an outage of the link and not congestion.
    fn on_timeout(&mut self, _: &TimeoutEvent) {}

    fn set_packet_size(&mut self, bytes: u64) {
        self.packet = bytes;
    }

    fn cwnd(&self) -> u64 {
        let few = FEW * self.packet;
        match self.phase {
            Phase::Empty(_) => few,
            Phase::Start | Phase::Full => (self.window.min(MOST) as u64).max(2 * few),
        }
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        (self.rate > 0.0).then(|| Bitrate::from_bps((8.0 * PACE * self.rate) as u64))
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Start => "start",
            Phase::Full => "full",
            Phase::Empty(_) => "empty",
        }
    }
}
