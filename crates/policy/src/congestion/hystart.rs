//! HyStart as in Linux: ends slow start when delays show that the path is full, before a loss.

use anabranch_types::Time;
use core::time::Duration;

use crate::congestion::AckEvent;

/// Window, packets, below which HyStart does not end slow start (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements that follow one another within this time are one train
/// (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Number of a round's round-trip samples from which its least is taken (`HYSTART_MIN_SAMPLES`).
const SAMPLES: u32 = 8;
/// Slow start ends when the least round-trip time of a round exceeds the least of all rounds by
/// more than an eighth of the latter. The eighth is limited to these bounds
/// (`HYSTART_DELAY_THRESH`).
const LEAST_RISE: Duration = Duration::from_millis(4);
const MOST_RISE: Duration = Duration::from_millis(16);

/// Examines each round trip (Ha and Rhee 2011, §IV; Linux, `hystart_update`). A train ends slow
/// start when it lasts half of the least round-trip time, as in Linux for senders without pacing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// Least round-trip time of all.
    least: Option<Duration>,
    /// The round ends when this many bytes are delivered.
    round_end: u64,
    round_start: Time,
    /// The last acknowledgement of the train that began with the round.
    last_ack: Time,
    /// Least round-trip time of the round, and the number of its samples, at most [`SAMPLES`].
    current: Duration,
    samples: u32,
}

impl HyStart {
    /// Processes an acknowledgement in slow start, with a window of `cwnd` packets. Returns true if
    /// slow start has to end.
    pub(super) fn on_ack(&mut self, event: &AckEvent, cwnd: f64) -> bool {
        if event.acked_packets == 0 || event.rtt.samples == 0 {
            return false;
        }
        let delay = event.rtt.latest;
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        if event.total_delivered > self.round_end {
            self.round_end = event.total_delivered + event.bytes_in_flight;
            (self.round_start, self.last_ack) = (event.now, event.now);
            (self.current, self.samples) = (Duration::MAX, 0);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        let long_train = event.now.since(self.last_ack) <= TRAIN_GAP && {
            self.last_ack = event.now;
            event.now.since(self.round_start) > least / 2
        };
        self.current = self.current.min(delay);
        let enough = self.samples == SAMPLES;
        self.samples = (self.samples + 1).min(SAMPLES);
        let rise = (least / 8).clamp(LEAST_RISE, MOST_RISE);
        long_train || (enough && self.current > least + rise)
    }
}
