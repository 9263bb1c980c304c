//! Tests of the estimate of the bottleneck's rate.

use core::time::Duration;

use super::super::rate::{RandomLoss, Rate};
use super::{RTT, round};
use crate::congestion::AckEvent;

/// A round trip ends where the share `random` of packets is lost at random.
fn pass(rate: &mut Rate, event: AckEvent, random: f64) {
    rate.on_ack(&event, RandomLoss { share: random, least: random }, RTT.as_secs_f64(), false);
}

#[test]
fn random_loss_does_not_lower_the_rate_and_a_full_queues_does() {
    let mut rate = Rate::default();
    for number in 0..20 {
        pass(&mut rate, round(number, 20), 0.5);
    }
    assert!((rate.bps() / 10e6 - 1.0).abs() < 0.01, "{}", rate.bps());
    // Twenty of forty are lost, and random loss explains none of them.
    let mut rate = Rate::default();
    for number in 0..20 {
        pass(&mut rate, round(number, 20), 0.0);
    }
    assert!((rate.bps() / 5e6 - 1.0).abs() < 0.01, "{}", rate.bps());
}

#[test]
fn the_rate_falls_only_when_asked_to() {
    let mut rate = Rate::default();
    for number in 0..10 {
        pass(&mut rate, round(number, 0), 0.0);
    }
    for number in 10..15 {
        pass(&mut rate, round(number, 20), 0.0);
    }
    assert!((rate.bps() / 10e6 - 1.0).abs() < 0.01, "{}", rate.bps());
    rate.fall();
    assert!((rate.bps() / 5e6 - 1.0).abs() < 0.01, "{}", rate.bps());
}

#[test]
fn a_rate_that_a_cycle_does_not_confirm_is_forgotten() {
    let mut rate = Rate::default();
    for number in 0..40 {
        pass(&mut rate, round(number, if number < 20 { 0 } else { 20 }), 0.0);
    }
    assert!((5.0e6..6.0e6).contains(&rate.bps()), "{}", rate.bps());
}

#[test]
fn long_round_trips_are_remembered_as_several() {
    // Six round trips through a queue of three times the path's own delay.
    let mut rate = Rate::default();
    for number in 0..15 {
        pass(&mut rate, round(number, 0), 0.0);
    }
    for number in 15..21 {
        let now = round(0, 0).now + Duration::from_millis(160 * (number - 14));
        pass(&mut rate, AckEvent { now, ..round(number, 20) }, 0.0);
    }
    assert!(rate.bps() < 6.0e6, "{}", rate.bps());
}

#[test]
fn the_rate_settles_where_all_round_trips_bring_the_same() {
    for (lost, settled) in [(2, true), (20, false)] {
        let mut rate = Rate::default();
        for number in 0..10 {
            pass(&mut rate, round(number, 0), 0.0);
        }
        rate.settle();
        assert!((rate.bps() / 10e6 - 1.0).abs() < 0.01, "{}", rate.bps());
        // Less arrives in every round trip, or in every other one.
        for number in 10..20 {
            let lost = if settled || number % 2 == 0 { lost } else { 0 };
            pass(&mut rate, round(number, lost), 0.0);
        }
        rate.settle();
        assert_eq!(rate.bps() < 9.7e6, settled, "{}", rate.bps());
    }
}
