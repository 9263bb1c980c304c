//! §III-A: the loss estimates of paths and of the aggregate, and the bandwidth.

use anabranch_policy::loss::{LossEstimator, Resolved, build_estimator};
use anabranch_policy::redundancy::build;
use anabranch_policy::view::{BlockId, PathView};
use anabranch_types::{PathId, Time};
use core::time::Duration;

use super::provisioning::{path, view};

fn estimator(spec: &str) -> Box<dyn LossEstimator> {
    build_estimator(&spec.parse().unwrap()).unwrap()
}

/// Reports a block of which the paths carried and lost this many packets.
fn block(estimator: &mut dyn LossEstimator, id: u64, paths: &[(u32, u32)]) {
    for (index, (sent, lost)) in paths.iter().enumerate() {
        let path = PathId(index as u32);
        estimator.on_sent(path, Some(BlockId(id)), *sent);
        estimator.on_resolved(&Resolved {
            now: Time::from_millis(id),
            path,
            block: Some(BlockId(id)),
            acked: sent - lost,
            lost: *lost,
            queue: Duration::ZERO,
            srtt: Duration::from_millis(40),
        });
    }
    estimator.on_block_resolved(BlockId(id));
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

#[test]
fn the_loss_of_a_block_is_one_minus_received_over_sent_summed_over_paths() {
    let mut estimator = estimator("per-block");
    // Eq. 2: paths are weighted by what they carried. 1 − (9 + 20)/(10 + 30) = .275.
    block(&mut *estimator, 0, &[(10, 1), (30, 10)]);
    assert_close(estimator.path(PathId(0)).mean, 0.1);
    assert_close(estimator.path(PathId(1)).mean, 1.0 / 3.0);
    assert_close(estimator.aggregate().mean, 0.275);
}

#[test]
fn means_and_variances_are_smoothed_by_one_half() {
    for (spec, distance) in [("per-block", 0.1), ("per-block:variance=prior", 0.2)] {
        let mut estimator = estimator(spec);
        block(&mut *estimator, 0, &[(40, 4)]);
        let first = estimator.aggregate();
        assert_close(first.mean, 0.1);
        // p_inst = .3, so the mean becomes (.1 + .3)/2. Eq. 3 uses this mean or the previous one.
        block(&mut *estimator, 1, &[(40, 12)]);
        let second = estimator.aggregate();
        assert_close(second.mean, 0.2);
        let variance = (first.deviation * first.deviation + distance * distance) / 2.0;
        assert_close(second.deviation * second.deviation, variance);
        assert_close(estimator.path(PathId(0)).mean, 0.2);
    }
}

#[test]
fn packets_in_flight_are_losses_to_the_letter_only() {
    let half_way = |spec: &str| {
        let mut estimator = estimator(spec);
        estimator.on_sent(PathId(0), Some(BlockId(0)), 50);
        estimator.on_resolved(&Resolved {
            now: Time::ZERO,
            path: PathId(0),
            block: Some(BlockId(0)),
            acked: 9,
            lost: 1,
            queue: Duration::ZERO,
            srtt: Duration::from_millis(40),
        });
        estimator.aggregate().mean
    };
    assert_close(half_way("literal"), 0.82);
    assert_close(half_way("per-ack"), 0.1);
    // Nothing is smoothed before the block is resolved, so the estimate is the share seen so far.
    assert_close(half_way("per-block"), 0.1);
}

#[test]
fn the_bandwidth_is_the_sum_of_windows_over_round_trips() {
    let paths = [path(0, 11, 30), path(1, 40, 60), path(2, 31, 120)];
    // Without loss, a path's rank is w/RTT, and a block has as many packets as the bandwidth of eq.
    // 4 carries in a median RTT.
    let bandwidth: f64 = paths.iter().map(PathView::loss_free_bandwidth).sum();
    assert_close(bandwidth, 11.0 / 0.03 + 40.0 / 0.06 + 31.0 / 0.12);
    let mut redundancy = build(&"mean-sigma".parse().unwrap()).unwrap();
    let shape = redundancy.next_block(&view(&paths, 0.0, 0.0));
    assert_eq!(f64::from(shape.sources), (bandwidth * 0.06).floor());
}
