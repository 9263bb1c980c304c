//! The time between events, smoothed.

use anabranch_types::Time;
use core::time::Duration;

/// The smoothed time from one event to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    newest: Option<Time>,
    smoothed: Option<Duration>,
}

impl Interval {
    /// Notes an event at `now`. `gain` is the weight of the time since the previous event, `[0,
    /// 1]`.
    pub(super) fn on_event(&mut self, now: Time, gain: f64) {
        if let Some(newest) = self.newest.replace(now) {
            let interval = now.since(newest);
            let smoothed = self.smoothed.unwrap_or(interval);
            self.smoothed = Some(smoothed.mul_f64(1.0 - gain) + interval.mul_f64(gain));
        }
    }

    /// The smoothed time between events; `None` before the second event.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }
}
