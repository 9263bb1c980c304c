//! Measurements of a link over time, collected while it is kept full.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch::policy::congestion::AckEvent;
use anabranch_types::Time;

/// A record that the controller writes and `doctor` reads.
#[derive(Clone, Debug, Default)]
pub(in crate::doctor) struct Recorder(Arc<Mutex<Record>>);

/// The measurements. They start with the first measured round-trip time of an empty queue.
#[derive(Debug, Default)]
pub(super) struct Record {
    start: Option<Time>,
    /// Time of the last acknowledgement.
    latest: Time,
    /// The intervals of [`STEP`] since the start.
    steps: Vec<Step>,
    /// Round-trip times of an empty queue: time since the start, and value.
    pub(super) trips: Vec<(Duration, Duration)>,
    /// Packets acknowledged and lost so far, without those that may have met a full buffer.
    acked: u64,
    lost: u64,
    /// Samples of these two counts: time since the start, packets acknowledged, packets lost.
    pub(super) fates: Vec<(Duration, u64, u64)>,
}

/// One interval of [`STEP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes acknowledged, IP and UDP headers included.
    pub(super) bytes: u64,
    /// The controller let the queue run empty in this interval, so `bytes` shows no rate.
    pub(super) blind: bool,
    /// The queue was empty at some moment although the controller filled it: the link carries more than `bytes`.
    pub(super) hungry: bool,
}

/// Length of an interval: dozens of packets at 10 Mb/s, and short enough to follow the rate of a radio.
pub(super) const STEP: Duration = Duration::from_millis(100);

impl Recorder {
    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample of the packets acknowledged and lost, at most one in each [`STEP`]. `spurious`
    /// is the connection's number of spurious losses, which do not count as lost.
    pub(in crate::doctor) fn note_fates(&self, spurious: u64) {
        let mut record = self.lock();
        let Some(start) = record.start else { return };
        let at = record.latest.since(start);
        if record.fates.last().is_none_or(|(last, ..)| at >= *last + STEP) {
            let fate = (at, record.acked, record.lost.saturating_sub(spurious));
            record.fates.push(fate);
        }
    }

    /// Time since the start.
    pub(in crate::doctor) fn length(&self) -> Duration {
        let record = self.lock();
        record.start.map_or(Duration::ZERO, |start| record.latest.since(start))
    }
}

impl Record {
    /// Counts an acknowledgement. Its packets do not count for the loss if the queue was `crowded`: longer than the
    /// controller wants it.
    pub(super) fn acked(&mut self, event: &AckEvent, crowded: bool) {
        self.latest = event.now;
        if !crowded {
            self.acked += u64::from(event.acked_packets);
            self.lost += u64::from(event.lost_packets);
        }
        if let Some(index) = self.index(event.now) {
            self.step(index).bytes += event.acked_bytes;
        }
    }

    /// Notes that the queue was empty at `now` although the controller filled it.
    pub(super) fn hungry(&mut self, now: Time) {
        if let Some(index) = self.index(now) {
            self.step(index).hungry = true;
        }
    }

    /// Notes the round-trip time of an empty queue. The record starts with the first.
    pub(super) fn empty(&mut self, now: Time, trip: Duration) {
        let start = *self.start.get_or_insert(now);
        self.trips.push((now.since(start), trip));
    }

    /// Notes that the controller lets the queue run empty from `from` to `to`.
    pub(super) fn blind(&mut self, from: Time, to: Time) {
        let Some(last) = self.index(to) else { return };
        for index in self.index(from).unwrap_or(0)..=last {
            self.step(index).blind = true;
        }
    }

    /// The intervals that have ended.
    pub(super) fn whole(&self) -> &[Step] {
        let over = self.index(self.latest).unwrap_or(0);
        self.steps.get(..over).unwrap_or(&self.steps)
    }

    fn index(&self, at: Time) -> Option<usize> {
        let start = self.start.filter(|start| *start <= at)?;
        let passed = at.since(start);
        usize::try_from(passed.as_nanos() / STEP.as_nanos()).ok()
    }

    fn step(&mut self, index: usize) -> &mut Step {
        if self.steps.len() <= index {
            self.steps.resize(index + 1, Step::default());
        }
        &mut self.steps[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_intervals_from_the_first_empty_queue() {
        let recorder = Recorder::default();
        let at = Time::from_millis;
        let acked = |millis: u64, acked_bytes: u64, crowded: bool| {
            let now = at(millis);
            let event = AckEvent {
                now,
                acked_bytes,
                acked_packets: 9,
                lost_packets: 1,
                ..AckEvent::default()
            };
            recorder.lock().acked(&event, crowded);
        };
        acked(900, 5, false);
        recorder.note_fates(0);
        recorder.lock().empty(at(1_000), Duration::from_millis(40));
        recorder.lock().blind(at(900), at(1_050));
        for (millis, bytes) in [(1_020, 1), (1_150, 10), (1_199, 100), (1_420, 1_000)] {
            acked(millis, bytes, millis == 1_150);
            recorder.note_fates(1);
        }
        let seen = Step { bytes: 110, ..Step::default() };
        let steps =
            [Step { bytes: 1, blind: true, hungry: false }, seen, Step::default(), Step::default()];
        assert_eq!(recorder.lock().whole(), steps);
        assert_eq!(recorder.length(), Duration::from_millis(420));
        // 199 ms is less than a step after 150 ms; the acknowledgement at 150 ms was crowded.
        let fates = [(20, 18, 1), (150, 18, 1), (420, 36, 3)];
        let fates = fates.map(|(at, acked, lost)| (Duration::from_millis(at), acked, lost));
        assert_eq!(recorder.lock().fates, fates);
    }
}
