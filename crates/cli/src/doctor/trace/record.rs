//! What a filled link showed over time, gathered while it is filled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch::policy::congestion::AckEvent;
use anabranch_types::Time;

/// A record that a controller writes and the examination reads.
#[derive(Clone, Debug, Default)]
pub(in crate::doctor) struct Recorder(Arc<Mutex<Record>>);

/// What was seen since the start, which is when the link was first full and its empty round trip known.
#[derive(Debug, Default)]
pub(super) struct Record {
    start: Option<Time>,
    /// Now, as of the last acknowledgement.
    latest: Time,
    /// What arrived in each interval of [`STEP`].
    steps: Vec<Step>,
    /// Round trips of an empty queue, by the time since the start.
    pub(super) trips: Vec<(Duration, Duration)>,
    /// Packets acknowledged and lost so far, those left out that may have met a full buffer.
    acked: u64,
    lost: u64,
    /// Both, by the time since the start.
    pub(super) fates: Vec<(Duration, u64, u64)>,
}

/// An interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes acknowledged, IP and UDP headers included.
    pub(super) bytes: u64,
    /// The link was not full all of the time, on purpose.
    pub(super) blind: bool,
    /// Its queue was empty at a moment without that being meant: it carries more than this.
    pub(super) hungry: bool,
}

/// The length of an interval: some dozens of packets at 10 Mb/s, and short beside what radios do in a second.
pub(super) const STEP: Duration = Duration::from_millis(100);

impl Recorder {
    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what has become of the packets so far, of which so many arrived after they were taken for lost.
    pub(in crate::doctor) fn note_fates(&self, spurious: u64) {
        let mut record = self.lock();
        let Some(start) = record.start else { return };
        let at = record.latest.since(start);
        if record.fates.last().is_none_or(|(last, ..)| at >= *last + STEP) {
            let fate = (at, record.acked, record.lost.saturating_sub(spurious));
            record.fates.push(fate);
        }
    }

    /// How much has been recorded.
    pub(in crate::doctor) fn length(&self) -> Duration {
        let record = self.lock();
        record.start.map_or(Duration::ZERO, |start| record.latest.since(start))
    }
}

impl Record {
    /// Packets were acknowledged and lost, `crowded` if the queue was longer than it should be.
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

    /// The queue was empty at `now`, though it should not have been.
    pub(super) fn hungry(&mut self, now: Time) {
        if let Some(index) = self.index(now) {
            self.step(index).hungry = true;
        }
    }

    /// The link had no queue of ours, and packets took `trip` there and back. The record begins with the first.
    pub(super) fn empty(&mut self, now: Time, trip: Duration) {
        let start = *self.start.get_or_insert(now);
        self.trips.push((now.since(start), trip));
    }

    /// The link is not full in `[from, to)`.
    pub(super) fn blind(&mut self, from: Time, to: Time) {
        let Some(last) = self.index(to) else { return };
        for index in self.index(from).unwrap_or(0)..=last {
            self.step(index).blind = true;
        }
    }

    /// The intervals that are over.
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
        // At 199 ms it was too soon for another, and the acknowledgement at 150 ms was crowded.
        let fates = [(20, 18, 1), (150, 18, 1), (420, 36, 3)];
        let fates = fates.map(|(at, acked, lost)| (Duration::from_millis(at), acked, lost));
        assert_eq!(recorder.lock().fates, fates);
    }
}
