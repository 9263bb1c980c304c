//! Measures how the queue changes while we send less.
//!
//! A packet waits behind all packets sent before it. So the first packets that leave while we send
//! less wait longest, behind all that was sent too fast, and while they arrive the queue seems to
//! grow. Delays are therefore compared by the time of departure, not by the time of arrival. The
//! slope of a straight line through them shows how fast the queue shrinks; the standard error of
//! the slope shows how much of it may be jitter.

use anabranch_types::Time;
use core::time::Duration;

use crate::congestion::AckEvent;

/// Fewest samples from which a slope is computed.
const FEWEST: u32 = 4;
/// The departures of these samples span at least this many round-trip times.
const LEAST_SPAN: f64 = 0.5;
/// Least share of the rate that must be withheld for the queue to change measurably.
const LEAST_WITHHELD: f64 = 0.001;

/// A least-squares line through the delays over the times of departure, both s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answer {
    since: Time,
    last: Time,
    /// How much less was sent from `since` to `last` than at the rate, in seconds of sending at the
    /// rate.
    withheld: f64,
    samples: u32,
    /// How often the delay rose. A slow packet holds up those behind it, and their delays then fall
    /// one after the other; so only rises count as independent samples.
    rises: u32,
    latest: f64,
    /// Time of the latest departure, counted from `since`.
    span: f64,
    /// Means of the times and the delays, and sums around the means: of the squares of times, of
    /// the products of both, and of the squares of delays.
    mean_time: f64,
    mean_delay: f64,
    times: f64,
    both: f64,
    delays: f64,
}

/// By how much the queue has shrunk, as a share of what we did not send: 0 if there is no queue, 1
/// if all of it is ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// One standard error below the measured share, and one above it.
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Answer {
    /// A measurement of the packets that leave from `now` on.
    pub(super) fn since(now: Time) -> Self {
        Answer { since: now, last: now, ..Answer::default() }
    }

    /// Starts a new measurement with the packets that left after those already measured.
    pub(super) fn go_on(&mut self) {
        let known = self.span / self.elapsed();
        let since = self.since + Duration::from_secs_f64(self.span);
        let withheld = self.withheld * (1.0 - known);
        *self =
            Answer { since, last: self.last, withheld, latest: self.latest, ..Answer::default() };
    }

    /// Corrects the delays after the least delay, from which all others are counted, has risen by
    /// `rise`, s.
    pub(super) fn recount(&mut self, rise: f64) {
        self.latest -= rise;
        self.mean_delay -= rise;
    }

    fn elapsed(&self) -> f64 {
        self.last.since(self.since).as_secs_f64().max(1e-6)
    }

    /// Processes an acknowledgement. Since the previous one, we sent at `gain` times the rate.
    pub(super) fn on_ack(&mut self, event: &AckEvent, gain: f64) {
        self.withheld += event.now.since(self.last).as_secs_f64() * (1.0 - gain).max(0.0);
        self.last = event.now;
        if event.acked_packets > 0 && event.largest_acked_sent >= self.since {
            let time = event.largest_acked_sent.since(self.since).as_secs_f64();
            self.add(time, event.rtt.queue.as_secs_f64());
        }
    }

    fn add(&mut self, time: f64, delay: f64) {
        self.rises += u32::from(delay > self.latest);
        self.latest = delay;
        self.span = self.span.max(time);
        self.samples += 1;
        let (from_time, from_delay) = (time - self.mean_time, delay - self.mean_delay);
        self.mean_time += from_time / f64::from(self.samples);
        self.mean_delay += from_delay / f64::from(self.samples);
        self.times += from_time * (time - self.mean_time);
        self.both += from_time * (delay - self.mean_delay);
        self.delays += from_delay * (delay - self.mean_delay);
    }

    /// The share, once packets that left over half a round trip of `round` seconds have been
    /// acknowledged.
    pub(super) fn share(&self, round: f64) -> Option<Share> {
        let withheld = self.withheld / self.elapsed();
        let is_known = self.samples >= FEWEST && self.span >= LEAST_SPAN * round;
        if !is_known || self.times <= 0.0 || withheld < LEAST_WITHHELD {
            return None;
        }
        let slope = self.both / self.times;
        let unexplained = (self.delays - slope * self.both).max(0.0);
        let error = (unexplained / self.times / f64::from(self.rises.max(1))).sqrt();
        Some(Share { least: (-slope - error) / withheld, most: (-slope + error) / withheld })
    }
}

#[cfg(test)]
mod tests;
