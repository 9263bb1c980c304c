//! Tests that a side that only acknowledges measures the round-trip times of all its paths.

use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Pair, Sent};
use anabranch_policy::Axis;
use core::time::Duration;

/// One-way delay of each path, ms.
const DELAYS: [u64; 2] = [10, 60];

#[test]
fn a_receiver_measures_every_path() {
    let network = |sent: &Sent<'_>| {
        let delay = Duration::from_millis(DELAYS[sent.path as usize]);
        Some((sent.now + delay, sent.ecn))
    };
    // Both paths carry data all the time, so each packet that requests an acknowledgement is
    // followed by packets that only acknowledge.
    let mut profile = Profile::named("uncoded").unwrap();
    profile.set(Axis::Scheduler, "round-robin").unwrap();
    profile.set(Axis::Congestion, "reno:threshold=150").unwrap();
    let mut pair = Pair::new(&profile, 2, network);
    pair.ends[0].unwritten = 100_000_000;
    (0..3000).for_each(|_| pair.round(Duration::from_millis(1)));
    assert!(pair.ends[1].read > 1_000_000, "{} bytes", pair.ends[1].read);
    let stats = pair.ends[1].connection().expect("open").stats();
    for path in &stats.paths {
        let round_trip = Duration::from_millis(2 * DELAYS[path.id.index()]);
        let (samples, least) = (path.rtt.samples, path.rtt.min);
        assert!(samples >= 4, "{:?} has {samples} samples", path.id);
        let near = round_trip..round_trip * 3 / 2;
        assert!(near.contains(&least), "{:?} takes {least:?}", path.id);
    }
}
