//! A loop in virtual time between the two ends of a stream over several paths, for tests.

use anabranch_types::Time;
use std::collections::BTreeMap;

use crate::segment::Segment;

/// An arrival: whether it is at the receiver (else at the sender), the path, and the segment.
pub(crate) type Arrived = (bool, usize, Segment);

/// Segments on their way, in the order in which they arrive.
#[derive(Debug, Default)]
pub(crate) struct Underway {
    pub(crate) events: BTreeMap<(Time, u64), Arrived>,
    order: u64,
    /// Steps in a row in which no time passed.
    standing: u32,
}

impl Underway {
    pub(crate) fn post(&mut self, at: Time, arrived: Arrived) {
        self.order += 1;
        self.events.insert((at, self.order), arrived);
    }

    /// Advances `now` to the next arrival or the next of `timers`. Returns what arrives then, if anything does;
    /// `None` if there is no further event.
    pub(crate) fn step(
        &mut self,
        now: &mut Time,
        timers: [Option<Time>; 2],
    ) -> Option<Option<Arrived>> {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        let next = timers.into_iter().flatten().chain(event).min()?;
        self.standing = if next > *now { 0 } else { self.standing + 1 };
        assert!(self.standing < 10_000, "time stands still at {now:?}");
        *now = next.max(*now);
        let first = self.events.first_entry().filter(|entry| entry.key().0 <= *now);
        Some(first.map(|entry| entry.remove()))
    }
}
