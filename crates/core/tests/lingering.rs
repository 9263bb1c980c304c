//! Tests that blocks of slowly written live data stay open for more data, but not for long.

use std::sync::{Arc, Mutex};

use anabranch_core::connection::TimeoutReason;
use anabranch_core::observe::{Observation, Observer};
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_policy::Axis;
use anabranch_policy::view::TrafficClass;
use anabranch_types::Time;
use core::time::Duration;

/// The times at which blocks were closed, and their numbers of symbols.
#[derive(Clone, Debug, Default)]
struct Closed(Arc<Mutex<Vec<(Time, u16)>>>);

impl Observer for Closed {
    fn observe(&mut self, at: Time, observation: &Observation) {
        if let Observation::BlockClosed { sources, .. } = observation {
            self.0.lock().unwrap().push((at, *sources));
        }
    }
}

fn network() -> impl Network {
    |sent: &Sent<'_>| Some((sent.now + Duration::from_millis(10), sent.ecn))
}

/// Writes 500 bytes `writes` times, with a pause of `pause` milliseconds in between, using the
/// given redundancy and code. Returns the closed blocks and the time of the last write.
fn closed(
    class: TrafficClass,
    (writes, pause): (u32, u64),
    choices: &[(Axis, &str)],
) -> (Vec<(Time, u16)>, Time) {
    let mut profile = Profile::named("anabranch").unwrap();
    choices.iter().for_each(|(axis, choice)| profile.set(*axis, choice).unwrap());
    let (mut pair, closed) = (Pair::new(&profile, 1, network()), Closed::default());
    (0..100).for_each(|_| pair.round(Duration::from_millis(1)));
    let connection = pair.ends[0].connection().unwrap();
    connection.set_observer(Some(Box::new(closed.clone())));
    let stream = connection.open_stream(class).unwrap();
    pair.ends[0].stream = Some(stream);
    let mut last = pair.now;
    for _ in 0..writes {
        pair.ends[0].unwritten += 500;
        last = pair.now;
        (0..pause).for_each(|_| pair.round(Duration::from_millis(1)));
    }
    for _ in 0..100 {
        pair.round(Duration::from_millis(1));
        let due = pair.ends[0].connection().unwrap().next_timeout();
        assert!(due.is_none_or(|(at, why)| why != TimeoutReason::Block || at > pair.now));
    }
    let closed = closed.0.lock().unwrap().clone();
    let sources: u32 = closed.iter().map(|(_, sources)| u32::from(*sources)).sum();
    assert_eq!(sources, writes, "a block is still open");
    (closed, last)
}

/// The round-trip time is 20 ms; a live block stays open for half of it.
#[test]
fn live_blocks_stay_open_for_what_comes_soon() {
    let half = [(Axis::Redundancy, "budget:linger=0.5,live=blocks")];
    let (live, last) = closed(TrafficClass::Live, (101, 2), &half);
    assert!((17..=26).contains(&live.len()), "{live:?}");
    let latest = live.last().unwrap().0;
    assert!(latest.since(last) <= Duration::from_millis(12), "{latest:?} after {last:?}");
}

#[test]
fn blocks_for_which_nothing_comes_soon_close_at_once() {
    let none: &[(Axis, &str)] = &[];
    for (class, pause, choices) in [
        (TrafficClass::Interactive, 2, none),
        (TrafficClass::Live, 40, none),
        (TrafficClass::Live, 2, &[(Axis::Redundancy, "budget:linger=0")]),
    ] {
        let (blocks, _) = closed(class, (50, pause), choices);
        assert_eq!(blocks.len(), 50, "{class:?} {pause} {choices:?}: {blocks:?}");
    }
}
