use super::*;

const PACKET: u64 = 1000;

/// Acknowledges a whole round trip of `packets` that were sent at `sent` milliseconds, 100 ms later.
fn round(bound: &mut MarkBound, sent: u64, packets: u64, marked: u32) -> bool {
    let event = AckEvent {
        now: Time::from_millis(sent + 100),
        largest_acked_sent: Time::from_millis(sent),
        acked_bytes: packets * PACKET,
        prior_in_flight: packets * PACKET,
        ce_packets: marked,
        ..AckEvent::default()
    };
    bound.on_ack(&event, PACKET)
}

fn packets(bound: &MarkBound) -> f64 {
    bound.bytes().map_or(f64::INFINITY, |bytes| bytes as f64 / PACKET as f64)
}

/// Runs round trips that fill the bound and meet no mark.
fn grow(bound: &mut MarkBound, rounds: core::ops::RangeInclusive<u64>) {
    for at in rounds {
        let flight = packets(bound) as u64 + 1;
        round(bound, 200 * at, flight, 0);
    }
}

#[test]
fn nothing_is_bound_before_the_first_mark() {
    let mut bound = MarkBound::default();
    assert!(!round(&mut bound, 0, 50, 0));
    assert_eq!(bound.bytes(), None);
    assert!(round(&mut bound, 200, 50, 1));
    assert_eq!(bound.bytes(), Some(40 * PACKET), "of what was in flight");
    assert_eq!(bound.rate(Duration::from_millis(100)), Some(Bitrate::from_bps(3_200_000)));
}

#[test]
fn a_flight_is_answered_once() {
    let mut bound = MarkBound::default();
    assert!(round(&mut bound, 0, 50, 1));
    assert!(!round(&mut bound, 50, 40, 3), "sent before the answer");
    assert!(round(&mut bound, 101, 40, 3));
    assert_eq!(packets(&bound), 32.0, "by however many marks");
}

#[test]
fn it_grows_by_a_third_of_a_packet_a_round_then_explores() {
    let mut bound = MarkBound::default();
    round(&mut bound, 0, 20, 1);
    grow(&mut bound, 1..=12);
    assert!((packets(&bound) - 20.0).abs() < 0.1, "{}", packets(&bound));
    grow(&mut bound, 13..=44);
    // 30 packets are 1.5 times as many as at the mark. From there on, the bound grows by an eighth
    // in each round.
    assert!((32.0..36.0).contains(&packets(&bound)), "{}", packets(&bound));
    grow(&mut bound, 45..=84);
    assert!(packets(&bound) > 2000.0, "{}", packets(&bound));
}

#[test]
fn a_large_one_is_back_in_a_bounded_number_of_rounds() {
    let mut bound = MarkBound::default();
    round(&mut bound, 0, 10_000, 1);
    grow(&mut bound, 1..=32);
    assert!((packets(&bound) - 10_000.0).abs() < 20.0, "{}", packets(&bound));
}

#[test]
fn flows_that_meet_the_same_marks_become_equal() {
    let mut flows = [MarkBound::default(); 3];
    for (flow, start) in flows.iter_mut().zip([30, 8, 2]) {
        round(flow, 0, start, 1);
    }
    for at in 1..2000 {
        let total: f64 = flows.iter().map(packets).sum();
        for flow in &mut flows {
            let flight = packets(flow) as u64 + 1;
            round(flow, 200 * at, flight, u32::from(total > 40.0));
        }
    }
    let [a, _, c] = flows.map(|flow| packets(&flow));
    assert!(a / c < 1.1, "{:?}", flows.map(|flow| packets(&flow)));
}

#[test]
fn what_limits_nothing_is_forgotten() {
    let mut bound = MarkBound::default();
    round(&mut bound, 0, 50, 1);
    bound.release_above(40 * PACKET);
    assert_eq!(bound.bytes(), Some(40 * PACKET));
    bound.release_above(40 * PACKET - 1);
    assert_eq!(bound.bytes(), None);
}
