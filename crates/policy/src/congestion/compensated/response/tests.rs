//! Probing cycles over networks that lose packets in different ways.

use anabranch_types::{Rng, Time};

use super::Response;
use crate::congestion::AckEvent;

/// Packets per second at the rate itself; gain and duration, s, of probing up and of sending less;
/// and how long packets are sent at the rate, s.
const RATE: f64 = 5000.0;
const UP: (f64, f64) = (1.25, 0.08);
const DOWN: (f64, f64) = (0.75, 0.04);
const CRUISE: f64 = 0.4;

/// Runs this many cycles. `lost` returns the share that is lost at a time, s, and a sending rate,
/// as a multiple of the rate. Returns the cycles after which loss was found to respond, each with
/// the largest share that can be random.
fn run(cycles: usize, mut lost: impl FnMut(f64, f64) -> f64) -> Vec<(usize, f64)> {
    let (mut response, mut rng) = (Response::default(), Rng::new(7));
    let (mut now, mut concluded) = (1.0, Vec::new());
    for cycle in 0..cycles {
        let at = |now: f64| Time::from_micros((now * 1e6) as u64);
        response.end(at(now));
        if let Some(random) = response.conclude() {
            concluded.push((cycle, random));
        }
        response.send_more(at(now));
        for (gain, length) in [UP, DOWN, (1.0, CRUISE)] {
            let end = now + length;
            while now < end {
                now += 1.0 / (RATE * gain);
                let mut event = AckEvent::default();
                if rng.chance(lost(now, gain)) {
                    (event.lost_packets, event.largest_lost_sent) = (1, at(now));
                } else {
                    (event.acked_packets, event.largest_acked_sent) = (1, at(now));
                }
                response.on_ack(&event);
            }
            response.end(at(now));
            if gain > 1.0 {
                response.send_less(at(now));
            } else if gain < 1.0 {
                response.send_at_rate(at(now));
            }
        }
    }
    concluded
}

#[test]
fn random_loss_does_not_answer() {
    for loss in [0.0, 0.02, 0.3, 0.6] {
        let concluded = run(300, |_, _| loss);
        assert!(concluded.len() <= 1, "{loss}: {concluded:?}");
    }
}

#[test]
fn loss_that_changes_by_itself_does_not_answer() {
    for (least, most, seconds) in [(0.05, 0.35, 0.25), (0.25, 0.75, 0.25), (0.0, 0.3, 1.0)] {
        let mut rng = Rng::new(3);
        let (mut state, mut until) = (least, 0.0);
        let concluded = run(300, |now, _| {
            while until < now {
                state = if state == least { most } else { least };
                until += rng.exponential(seconds);
            }
            state
        });
        assert!(concluded.len() <= 3, "{least} to {most}: {concluded:?}");
    }
}

#[test]
fn a_policer_answers_however_much_is_too_much() {
    // Share of the rate that passes, and share of that which is lost at random.
    for (passes, random) in [(0.2, 0.0), (0.2, 0.3), (0.6, 0.0), (0.9, 0.0), (0.9, 0.2)] {
        let loss = |_, gain: f64| 1.0 - f64::min(passes / gain, 1.0) * (1.0 - random);
        let concluded = run(40, loss);
        let Some(&(cycle, most)) = concluded.first() else { panic!("{passes}, {random}: nothing") };
        assert!(cycle <= 9, "{passes}, {random}: {concluded:?}");
        // If we send too much even while we send less, nothing is known of random loss.
        assert!(most == 0.0 || most > random / 2.0, "{passes}, {random}: {concluded:?}");
        assert!(most < random + 0.2, "{passes}, {random}: {concluded:?}");
    }
}

#[test]
fn only_what_leaves_while_probing_was_probed() {
    let at = Time::from_micros;
    let mut response = Response::default();
    response.send_less(at(1));
    response.end(at(2));
    response.send_at_rate(at(2));
    assert!(!response.probed(at(3)), "more than before, though not more than the rate");
    response.end(at(4));
    response.send_more(at(4));
    assert!(response.probed(at(5)));
    response.end(at(6));
    response.send_less(at(6));
    response.end(at(8));
    response.send_at_rate(at(8));
    assert!(response.probed(at(5)) && !response.probed(at(6)) && !response.probed(at(9)));
}
