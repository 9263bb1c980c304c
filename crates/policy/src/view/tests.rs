use super::*;

#[test]
fn losses_answered_by_one_cut_end_one_interval() {
    let ms = Time::from_millis;
    let mut bytes = InterLoss::default();
    bytes.on_acked(5000);
    assert_eq!((bytes.since, bytes.between, bytes.largest()), (5000, 0, 5000));
    bytes.on_lost(ms(100), ms(40));
    bytes.on_acked(700);
    // These packets were sent before the first loss was noticed, so they belong to the same
    // congestion.
    bytes.on_lost(ms(120), ms(90));
    assert_eq!((bytes.since, bytes.between, bytes.largest()), (700, 5000, 5000));
    bytes.on_acked(5300);
    bytes.on_lost(ms(250), ms(101));
    assert_eq!((bytes.since, bytes.between, bytes.largest()), (0, 6000, 6000));
}

#[test]
fn what_is_queued_is_not_missing() {
    let block = BlockView { sources: 10, received: 2, in_flight: 3, due: 1, ..Default::default() };
    assert_eq!(block.shortfall(), 4);
    assert_eq!(BlockView { queued: 3, ..block }.shortfall(), 1);
}

#[test]
fn a_copy_is_taken_once_by_each_path() {
    let path = PathView::unknown(PathId(2));
    let mut block = BlockView { in_flight: 4, carried_on: 0b101, ..Default::default() };
    assert_eq!(block.uncopied(&path), 4);
    block.in_flight_on[2] = 1;
    block.queued_on[2] = 2;
    assert_eq!(block.uncopied(&path), 1);
    assert!(block.carried_by(&path) && !block.carried_by(&PathView::unknown(PathId(1))));
    block.lost_on = 0b100;
    assert!(!block.lost_by(&path), "nothing of it is due");
    block.due = 1;
    assert!(block.lost_by(&path));
}

#[test]
fn blocks_are_found_by_identifier_although_some_are_left_out() {
    let blocks = [3, 4, 9].map(|id| BlockView { id: BlockId(id), ..Default::default() });
    let fresh = FreshView {
        symbols: 0,
        beyond: 0,
        next: SymbolId(0),
        more: false,
        class: TrafficClass::Bulk,
        symbol_size: 1000,
        blocked: Some(Blocked::Application),
        credit: 0,
        window: 0,
    };
    let demand = Demand::default();
    let view = SchedulerView { now: Time::ZERO, paths: &[], blocks: &blocks, fresh, demand };
    assert_eq!(view.block(BlockId(9)).map(|block| block.id), Some(BlockId(9)));
    assert!(view.block(BlockId(5)).is_none());
}

#[test]
fn a_path_that_its_pacer_limits_does_not_double() {
    let mut path = PathView::unknown(PathId(0));
    let limits = [0_u64, 7, 10, 20].map(|n| Bitrate::from_transfer(n * 1200, path.rtt.smoothed));
    let rounds = limits.map(|pacing_rate| {
        path.pacing_rate = pacing_rate;
        path.round()
    });
    let free = Round { packets: 10, ssthresh: u64::MAX, paced: false };
    let paced = Round { packets: 7, ssthresh: 7, paced: true };
    assert_eq!(rounds, [free, paced, free, free]);
    path.ssthresh = 5 * 1200;
    assert_eq!(path.round(), Round { ssthresh: 5, ..free });
}
