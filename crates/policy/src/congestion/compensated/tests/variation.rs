//! Tests of the measurement of how much the bottleneck's rate varies.

use anabranch_types::Time;
use core::time::Duration;

use super::super::variation::Variation;
use super::{ack, round};
use crate::congestion::{AckEvent, RateSample};

const PACKET: u64 = 1250;
/// Typical round trip, s; a slot has twice this length.
const TYPICAL: f64 = 0.04;

/// Delivers packets for `seconds`, of which `a_second(time)` arrive each second; `changed` may
/// change what is said about each. Returns the room that is left then.
fn deliver(
    seconds: u64,
    a_second: impl Fn(f64) -> f64,
    changed: impl Fn(AckEvent) -> AckEvent,
    starting: bool,
) -> f64 {
    let mut variation = Variation::default();
    let (mut delivered, mut due) = (0, 0.0);
    for step in 0..seconds * 10_000 {
        let now = Time::from_micros(1_000_000 + 100 * step);
        due += a_second(step as f64 / 1e4) / 1e4;
        while due >= 1.0 {
            due -= 1.0;
            delivered += PACKET;
            let event = AckEvent { now, total_delivered: delivered, ..round(1, 0) };
            variation.on_ack(&changed(event), TYPICAL, starting);
        }
    }
    variation.room()
}

/// The rate at `time`, packets per second: half of the mean for `span` seconds, then as much more.
fn jumping(time: f64, span: f64) -> f64 {
    if ((time / span) as u64).is_multiple_of(2) { 1000.0 } else { 3000.0 }
}

fn same(event: AckEvent) -> AckEvent {
    event
}

#[test]
fn a_constant_rate_leaves_no_room() {
    assert!((deliver(4, |_| 2000.0, same, false) - 1.0).abs() < 1e-9);
    assert!((Variation::default().room() - 1.0).abs() < 1e-9, "nothing is known");
}

#[test]
fn a_rate_that_jumps_leaves_room() {
    let room = deliver(4, |time| jumping(time, 0.4), same, false);
    assert!((1.4..=1.5).contains(&room), "{room}");
    // Jumps that are shorter than a slot do not show.
    assert!((deliver(4, |time| jumping(time, 0.01), same, false) - 1.0).abs() < 1e-9);
}

#[test]
fn what_we_send_less_or_while_starting_is_no_variation() {
    let jumps = |time| jumping(time, 0.4);
    assert!((deliver(4, jumps, same, true) - 1.0).abs() < 1e-9);
    let limited = |event: AckEvent| {
        let rate = event.rate.map(|sample| RateSample { app_limited: true, ..sample });
        AckEvent { rate, ..event }
    };
    assert!((deliver(4, jumps, limited, false) - 1.0).abs() < 1e-9);
}

#[test]
fn packets_held_up_for_a_round_trip_are_no_variation() {
    // Every 0.3 s, what arrives within 20 ms arrives at their end.
    let held = |time: f64| match time % 0.3 {
        at if at < 0.02 => 0.0,
        at if at < 0.021 => 2000.0 * 21.0,
        _ => 2000.0,
    };
    let room = deliver(4, held, same, false);
    assert!(room < 1.1, "{room}");
}

#[test]
fn an_acknowledgement_of_nothing_changes_nothing() {
    let mut variation = Variation::default();
    for step in 0..1000 {
        let now = Time::ZERO + Duration::from_millis(10 * step);
        variation.on_ack(&AckEvent { now, ..ack(0.0, 0.0) }, TYPICAL, false);
    }
    assert!((variation.room() - 1.0).abs() < 1e-9);
}
