use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;
use proptest::prelude::*;

use super::*;
use crate::view::{BlockId, LossView, RttView};

fn detector(spec: &str) -> Box<dyn LossDetector> {
    build_detector(&spec.parse().unwrap()).unwrap()
}

fn estimator(spec: &str) -> Box<dyn LossEstimator> {
    build_estimator(&spec.parse().unwrap()).unwrap()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn rtt(millis: u64) -> RttView {
    let rtt = ms(millis);
    RttView {
        latest: rtt,
        smoothed: rtt,
        variation: rtt / 8,
        min: rtt,
        queue: Duration::ZERO,
        forward: 0,
        samples: 3,
    }
}

fn view(now: u64, largest_acked: u64, acked_above: u64) -> DetectionView {
    DetectionView { now: Time::from_millis(now), largest_acked, acked_above, rtt: rtt(80) }
}

const PACKET: InFlight =
    InFlight { number: 10, sent: Time::from_millis(1000), overtaken: Time::from_millis(1060) };

/// A packet that arrived `late` ms after one sent later, whose number is `gap` higher.
fn late(now: u64, late: u64, gap: u64) -> Late {
    Late { now: Time::from_millis(now), late: ms(late), gap, rtt: rtt(80) }
}

#[test]
fn packet_threshold_counts_numbers_and_time() {
    let detector = detector("packet-threshold");
    assert_eq!(detector.judge(&PACKET, &view(1080, 13, 1)), LossVerdict::Lost);
    // 9/8 of 80 ms.
    let due = LossVerdict::At(Time::from_millis(1090));
    assert_eq!(detector.judge(&PACKET, &view(1080, 12, 2)), due);
    assert_eq!(detector.judge(&PACKET, &view(1090, 12, 2)), LossVerdict::Lost);
    // 80 + 4·10 + 25 ms.
    assert_eq!(detector.timeout(&rtt(80)), ms(145));
    assert_eq!((detector.backoff_limit(), detector.timeout_loses_flight()), (10, false));
}

#[test]
fn packets_are_waited_for_as_long_as_others_came_late() {
    let mut detector = detector("packet-threshold");
    // The late packet was behind by less than the threshold, so the threshold still applies.
    detector.on_late(&late(1000, 40, 2));
    assert_eq!(detector.judge(&PACKET, &view(1070, 13, 3)), LossVerdict::Lost);
    assert_eq!(
        detector.judge(&PACKET, &view(1070, 12, 2)),
        LossVerdict::At(Time::from_millis(1100))
    );
    // The late packet was further behind, so only the time counts, from when a packet was
    // overtaken.
    detector.on_late(&late(1000, 50, 3));
    let due = LossVerdict::At(Time::from_millis(1110));
    assert_eq!(detector.judge(&PACKET, &view(1109, 1000, 900)), due);
    assert_eq!(detector.judge(&PACKET, &view(1110, 13, 3)), LossVerdict::Lost);
}

#[test]
fn the_reordering_window_is_bounded_by_the_spread_of_round_trips() {
    let mut detector = detector("packet-threshold");
    detector.on_late(&late(1000, 5000, 500));
    // The detector waits for at most sixteen deviations of 10 ms.
    let due = LossVerdict::At(Time::from_millis(1220));
    assert_eq!(detector.judge(&PACKET, &view(1080, 600, 100)), due);
    let steady = RttView { variation: ms(1), ..rtt(80) };
    let mut detector = self::detector("packet-threshold");
    detector.on_late(&Late { rtt: steady, ..late(1000, 5000, 500) });
    // It waits for at most a round trip.
    let due = LossVerdict::At(Time::from_millis(1140));
    assert_eq!(detector.judge(&PACKET, &view(1080, 600, 100)), due);
}

#[test]
fn reordering_is_forgotten_after_as_many_round_trips_as_asked_for() {
    let mut detector = detector("packet-threshold:memory=10");
    detector.on_late(&late(1000, 50, 100));
    detector.on_late(&late(1300, 10, 4));
    let at = |now: u64| {
        let (sent, overtaken) = (Time::from_millis(now - 20), Time::from_millis(now));
        InFlight { number: 10, sent, overtaken }
    };
    let due = |late: u64, now: u64| {
        (
            LossVerdict::At(Time::from_millis(now + late)),
            LossVerdict::At(Time::from_millis(now + 70)),
        )
    };
    // The halves last 400 ms. The first extent is the largest, and is dropped with its half.
    assert_eq!(detector.judge(&at(1350), &view(1350, 20, 9)), due(50, 1350).1);
    let overtaken = InFlight { sent: Time::from_millis(1200), ..at(1350) };
    assert_eq!(detector.judge(&overtaken, &view(1350, 20, 9)), due(50, 1350).0);
    detector.on_late(&late(1450, 10, 4));
    let overtaken = InFlight { sent: Time::from_millis(1300), ..at(1500) };
    assert_eq!(detector.judge(&overtaken, &view(1500, 20, 9)), due(50, 1500).0);
    detector.on_late(&late(1900, 10, 4));
    let overtaken = InFlight { sent: Time::from_millis(1750), ..at(1900) };
    assert_eq!(detector.judge(&overtaken, &view(1900, 20, 9)), due(10, 1900).0);
    // Once no packet has been late for both halves, the packet threshold applies again.
    assert_eq!(detector.judge(&at(2800), &view(2800, 20, 9)), LossVerdict::Lost);
}

#[test]
fn dupack_counts_acknowledgements_above_and_waits_for_the_timeout() {
    let tcp = detector("dupack");
    assert_eq!(tcp.judge(&PACKET, &view(1080, 13, 2)), LossVerdict::Waiting);
    assert_eq!(tcp.judge(&PACKET, &view(9000, 13, 2)), LossVerdict::Waiting);
    assert_eq!(tcp.judge(&PACKET, &view(1080, 13, 3)), LossVerdict::Lost);
    assert_eq!(tcp.timeout(&rtt(80)), ms(200));
    assert_eq!(tcp.timeout(&rtt(400)), ms(600));
    assert_eq!(tcp.timeout(&RttView { samples: 0, ..rtt(400) }), ms(1000));
    assert_eq!((tcp.backoff_limit(), tcp.timeout_loses_flight()), (6, true));
    assert_eq!(detector("dupack:backoff=0").backoff_limit(), 0);
}

fn resolved(path: u32, block: u64, acked: u32, lost: u32) -> Resolved {
    Resolved {
        now: Time::from_millis(block * 40),
        path: PathId(path),
        block: Some(BlockId(block)),
        acked,
        lost,
        queue: Duration::ZERO,
        srtt: ms(40),
    }
}

fn close(view: LossView, mean: f64, deviation: f64) {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(near(view.mean, mean) && near(view.deviation, deviation), "{view:?}");
}

#[test]
fn nothing_is_lost_before_anything_is_known() {
    for (entry, _) in ESTIMATORS {
        let estimator = estimator(entry.name);
        close(estimator.aggregate(), 0.0, 0.0);
        close(estimator.path(PathId(3)), 0.0, 0.0);
    }
}

#[test]
fn per_block_steps_once_per_block() {
    let mut estimator = estimator("per-block:variance=prior");
    estimator.on_resolved(&resolved(0, 0, 4, 1));
    // The counts seen so far give the estimate: 1 of 5, deviation sqrt(.2·.8/5).
    close(estimator.aggregate(), 0.2, 0.032_f64.sqrt());
    estimator.on_resolved(&resolved(0, 0, 4, 1));
    estimator.on_resolved(&resolved(1, 0, 4, 6));
    estimator.on_block_resolved(BlockId(0));
    close(estimator.aggregate(), 0.4, (0.24_f64 / 20.0).sqrt());
    close(estimator.path(PathId(0)), 0.2, (0.16_f64 / 10.0).sqrt());
    close(estimator.path(PathId(1)), 0.6, (0.24_f64 / 10.0).sqrt());
    // The next block loses 0.2 of 20: mean .3, variance (.012 + .04)/2.
    estimator.on_resolved(&resolved(0, 1, 16, 4));
    close(estimator.aggregate(), 0.4, (0.24_f64 / 20.0).sqrt());
    estimator.on_block_resolved(BlockId(1));
    close(estimator.aggregate(), 0.3, 0.026_f64.sqrt());
    close(estimator.path(PathId(1)), 0.6, (0.24_f64 / 10.0).sqrt());
    // Repairs that resolve later, and a second report, change nothing.
    estimator.on_resolved(&resolved(0, 1, 0, 9));
    estimator.on_block_resolved(BlockId(1));
    close(estimator.aggregate(), 0.3, 0.026_f64.sqrt());
}

#[test]
fn the_variance_is_taken_from_either_mean() {
    let mut estimator = estimator("per-block");
    for (block, lost) in [(0, 0), (1, 20)] {
        estimator.on_resolved(&resolved(0, block, 20 - lost, lost));
        estimator.on_block_resolved(BlockId(block));
    }
    // The mean is 0, then 1/2. The distance of 1 from the updated mean is 1/2; its square,
    // smoothed, is 1/8.
    close(estimator.aggregate(), 0.5, 0.125_f64.sqrt());
}

#[test]
fn per_ack_steps_on_the_resolved_ratio_and_literal_on_the_sent_one() {
    let mut per_ack = estimator("per-ack");
    let mut literal = estimator("literal");
    for estimator in [&mut per_ack, &mut literal] {
        estimator.on_sent(PathId(0), Some(BlockId(0)), 10);
        estimator.on_resolved(&resolved(0, 0, 1, 0));
        estimator.on_resolved(&resolved(0, 0, 1, 0));
    }
    assert_eq!(per_ack.aggregate().mean, 0.0);
    // First 9 and then 8 of 10 are not delivered: (.9 + .8)/2.
    assert!((literal.aggregate().mean - 0.85).abs() < 1e-12);
    for estimator in [&mut per_ack, &mut literal] {
        estimator.on_resolved(&resolved(0, 0, 0, 2));
    }
    assert!((per_ack.aggregate().mean - 0.25).abs() < 1e-12);
    assert!((literal.path(PathId(0)).mean - 0.825).abs() < 1e-12);
}

/// Runs `blocks` blocks of 50 packets with loss `p`, ten per acknowledgement. Returns the mean of
/// the estimates after each block.
fn average(estimator: &mut dyn LossEstimator, p: f64, blocks: u64) -> f64 {
    let mut rng = Rng::substream(3, "loss");
    let mut sum = 0.0;
    for block in 0..blocks {
        for _ in 0..5 {
            let lost = (0..10).filter(|_| rng.chance(p)).count() as u32;
            estimator.on_sent(PathId(0), Some(BlockId(block)), 10);
            estimator.on_resolved(&resolved(0, block, 10 - lost, lost));
        }
        estimator.on_block_resolved(BlockId(block));
        sum += estimator.aggregate().mean;
    }
    sum / blocks as f64
}

#[test]
fn estimators_over_resolved_packets_are_unbiased() {
    for spec in ["per-block", "windowed"] {
        for p in [0.02, 0.3, 0.5] {
            let mean = average(&mut *estimator(spec), p, 3000);
            assert!((mean - p).abs() < 0.01, "{spec} at {p}: {mean}");
        }
    }
}

#[test]
fn windowed_forgets_by_half_lives() {
    let mut estimator = estimator("windowed:prior=0");
    estimator.on_resolved(&resolved(0, 0, 50, 50));
    let at = |millis| Resolved { now: Time::from_millis(millis), ..resolved(0, 0, 50, 0) };
    estimator.on_resolved(&at(250));
    // Half of 50 lost of half of 100 plus 50.
    assert!((estimator.aggregate().mean - 0.25).abs() < 1e-9);
    assert!((estimator.path(PathId(0)).mean - 0.25).abs() < 1e-9);
}

#[test]
fn windowed_deviation_is_that_of_the_observations() {
    let mut rng = Rng::substream(9, "loss");
    let mut estimator = estimator("windowed:half-life=20s");
    for step in 0..2000_u64 {
        let lost = (0..100).filter(|_| rng.chance(0.2)).count() as u32;
        let now = Time::from_millis(step * 50);
        estimator.on_resolved(&Resolved { now, ..resolved(0, 0, 100 - lost, lost) });
    }
    // Each observation closes after a round trip, with two events of 100 packets: sqrt(.16/200).
    let deviation = estimator.aggregate().deviation;
    assert!((0.023..0.034).contains(&deviation), "{deviation}");
}

#[test]
fn windowed_is_blind_while_a_queue_stands() {
    let mut estimator = estimator("windowed");
    estimator.on_resolved(&Resolved { queue: ms(11), ..resolved(0, 0, 50, 50) });
    assert_eq!(estimator.aggregate().mean, 0.0);
    // On a path of 400 ms, a queue of 11 ms is below a quarter of the round trip.
    estimator.on_resolved(&Resolved { queue: ms(11), srtt: ms(400), ..resolved(0, 0, 50, 50) });
    assert!(estimator.aggregate().mean > 0.4);
}

proptest! {
    #[test]
    fn estimates_stay_probabilities(
        events in proptest::collection::vec((0..4_u32, 0..8_u64, any::<u32>(), any::<u32>(), any::<u64>()), 1..80)
    ) {
        for (entry, _) in ESTIMATORS {
            let mut estimator = estimator(entry.name);
            for &(path, block, acked, lost, nanos) in &events {
                let now = Time::from_nanos(nanos);
                estimator.on_sent(PathId(path), Some(BlockId(block)), acked / 2);
                estimator.on_resolved(&Resolved { now, ..resolved(path, block, acked, lost) });
                if nanos % 5 == 0 {
                    estimator.on_block_resolved(BlockId(block));
                }
                for view in [estimator.aggregate(), estimator.path(PathId(path))] {
                    prop_assert!((0.0..=1.0).contains(&view.mean), "{}: {view:?}", entry.name);
                    prop_assert!((0.0..=1.0).contains(&view.deviation), "{}: {view:?}", entry.name);
                }
            }
        }
    }
}

#[test]
fn losses_that_were_none_are_taken_back() {
    let mut fooled = estimator("windowed:prior=0");
    let mut sure = estimator("windowed:prior=0");
    fooled.on_resolved(&resolved(0, 1, 90, 10));
    fooled.on_spurious(&resolved(0, 1, 0, 8));
    sure.on_resolved(&resolved(0, 1, 98, 2));
    assert_eq!(fooled.path(PathId(0)), sure.path(PathId(0)));
    assert_eq!(fooled.aggregate(), sure.aggregate());
    // Taking back more losses than are remembered leaves none.
    fooled.on_spurious(&resolved(0, 1, 0, 8));
    assert_eq!(fooled.path(PathId(0)).mean, 0.0);
}
