//! Tests that a silent path is probed often and at little cost.

use std::sync::{Arc, Mutex};

use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_policy::Axis;
use anabranch_types::Time;
use core::time::Duration;

/// One-way delay, ms.
const DELAY: u64 = 10;
/// Start time of the loss.
const BEGINS: Time = Time::from_millis(1000);

/// Lost packets of the sender: send time and length of each.
type Lost = Arc<Mutex<Vec<(Time, usize)>>>;

/// From 1 s on, the sender's packets are lost while `lasts` returns true for the number lost so far and the time.
fn network(lost: &Lost, mut lasts: impl FnMut(usize, Time) -> bool) -> impl Network {
    let lost = Arc::clone(lost);
    move |sent: &Sent<'_>| {
        let mut lost = lost.lock().unwrap();
        if sent.side == 0 && sent.now >= BEGINS && lasts(lost.len(), sent.now) {
            lost.push((sent.now, sent.payload.len()));
            return None;
        }
        Some((sent.now + Duration::from_millis(DELAY), sent.ecn))
    }
}

/// Sends without end for `seconds`. Returns the lost packets, and when the receiver could read
/// again.
fn run(seconds: u64, lasts: impl FnMut(usize, Time) -> bool) -> (Vec<(Time, usize)>, Option<Time>) {
    let lost = Lost::default();
    let profile = Profile::named("anabranch").unwrap();
    let mut pair = Pair::new(&profile, 1, network(&lost, lasts));
    pair.ends[0].unwritten = u64::MAX;
    let (mut before, mut again) = (0, None);
    while pair.now < Time::from_secs(seconds) {
        pair.round(Duration::from_millis(1));
        let begun = pair.now.since(BEGINS) > Duration::from_millis(DELAY);
        if begun && pair.ends[1].read > before {
            again = again.or(Some(pair.now));
        }
        if !begun {
            before = pair.ends[1].read;
        }
    }
    (lost.lock().unwrap().clone(), again)
}

/// The loss ends after a number of packets, not after a time.
#[test]
fn a_burst_longer_than_the_window_is_over_soon() {
    let (mut last, mut later) = (Time::ZERO, 0);
    let (lost, again) = run(6, |_, now| {
        // The window is used up when nothing was sent for a round trip.
        later += u32::from(later > 0 || (last > Time::ZERO && now.since(last).as_millis() > 20));
        last = now;
        later <= 30
    });
    let again = again.expect("the burst ends").since(BEGINS);
    assert!(again < Duration::from_millis(1500), "{again:?}, {} packets lost", lost.len());
}

#[test]
fn an_outage_costs_few_bytes_and_its_end_is_noticed() {
    let (lost, again) = run(25, |_, now| now < Time::from_secs(21));
    let bytes = |from| {
        let after = BEGINS + Duration::from_secs(from);
        lost.iter().filter(|(at, _)| *at >= after).map(|(_, length)| length).sum::<usize>()
    };
    let again = again.expect("the outage ends").since(Time::from_secs(21));
    assert!(bytes(1) < 12_000 && bytes(5) < 4_000, "{} and {} bytes", bytes(1), bytes(5));
    assert!(again < Duration::from_millis(600), "{again:?}");
}

/// A packet is sent every 20 ms, which must not postpone the timeouts of its path.
#[test]
fn a_thin_stream_leaves_a_path_that_has_fallen_silent() {
    let mut profile = Profile::named("anabranch").unwrap();
    profile.set(Axis::Scheduler, "min-rtt").unwrap();
    let network = |sent: &Sent<'_>| {
        let dark = sent.path == 0 && sent.now >= BEGINS;
        let delay = Duration::from_millis(if sent.path == 0 { DELAY } else { 3 * DELAY });
        (!dark).then(|| (sent.now + delay, sent.ecn))
    };
    let mut pair = Pair::new(&profile, 2, network);
    let (mut read, mut last, mut longest) = (0, pair.now, Duration::ZERO);
    while pair.now < Time::from_secs(4) {
        if pair.now.as_micros() % 20_000 == 0 {
            pair.ends[0].unwritten += 200;
        }
        pair.round(Duration::from_millis(1));
        if pair.ends[1].read > read {
            if pair.now > BEGINS {
                longest = longest.max(pair.now.since(last));
            }
            (read, last) = (pair.ends[1].read, pair.now);
        }
    }
    assert!(pair.now.since(last) < Duration::from_millis(100), "nothing since {last:?}");
    assert!(longest < Duration::from_millis(250), "{longest:?}");
}
