//! LATE's shares, compared with golden values of its forecast.

use anabranch_types::Bitrate;

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A fast path of 10 ms and a slow path of 40 ms without loss, with windows of 5 packets at the
/// threshold: within 20 ms, 5 and 6 packets arrive on the fast path.
pub(super) fn two() -> [PathView; 2] {
    [path(0, 5, 10), path(1, 5, 40)].map(|path| PathView {
        ssthresh: path.cwnd,
        rto: MS(200),
        ..path
    })
}

/// The path that is given symbols when a path asks, and how many.
pub(super) fn given(
    late: &mut dyn Scheduler,
    asks: u32,
    view: &SchedulerView<'_>,
) -> Option<(u32, u16)> {
    let mut picks = Vec::new();
    match late.pull(PathId(asks), view, &mut picks) {
        Pull::Send(_) => Some((picks[0].path.0, picks[0].count)),
        _ => None,
    }
}

pub(super) fn on_acked(
    late: &mut dyn Scheduler,
    path: u32,
    view: &SchedulerView<'_>,
) -> Vec<SchedulerAction> {
    let mut actions = Vec::new();
    late.on_event(SchedulerEvent::Acked(PathId(path)), view, &mut actions);
    actions
}

#[test]
fn the_slow_path_carries_what_comes_after_the_fast_ones_deliveries() {
    for asks in [0, 1] {
        let (mut late, mut paths) = (scheduler("late"), two());
        assert_eq!(given(&mut *late, asks, &view(&paths, &[], 30)), Some((0, 11)));
        paths[0].bytes_queued = 11 * paths[0].packet_size;
        let view = view(&paths, &[], 19);
        assert_eq!(given(&mut *late, 1, &view), Some((1, 1)), "beyond them");
        assert_eq!(given(&mut *late, 0, &view), Some((0, 1)), "more than was expected");
    }
    let mut strict = scheduler("late:spare=wait");
    let paths = two();
    given(&mut *strict, 0, &view(&paths, &[], 30));
    assert_eq!(given(&mut *strict, 0, &view(&paths, &[], 19)), None, "has sent its share");
}

#[test]
fn what_is_short_goes_on_the_fast_path_alone() {
    let (mut late, mut paths) = (scheduler("late"), two());
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 8)), Some((0, 8)));
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 0)), None);
    // Data written later fills the rest of the fast path's share, and only then goes to the slow path.
    paths[0].bytes_queued = 8 * paths[0].packet_size;
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 4)), Some((0, 3)));
    paths[0].bytes_queued = 11 * paths[0].packet_size;
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 1)), Some((1, 1)));
}

#[test]
fn several_fast_paths_have_their_shares_one_after_the_other() {
    let mut paths = [path(0, 5, 20), path(1, 5, 80), path(2, 5, 10)];
    for path in &mut paths {
        path.ssthresh = path.cwnd;
    }
    let mut late = scheduler("late");
    // Within 40 ms, 5, 6, 7 and 8 packets arrive on the path of 10 ms, and 5 and 6 on the path of
    // 20 ms.
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 99)), Some((2, 26)));
    paths[2].bytes_queued = 26 * paths[2].packet_size;
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 73)), Some((0, 11)));
    paths[0].bytes_queued = 11 * paths[0].packet_size;
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 62)), Some((1, 1)));
}

#[test]
fn losses_make_a_share_smaller() {
    let mut paths = two();
    for (loss, share) in [(0.0, 11), (0.01, 10), (0.1, 8), (0.5, 3)] {
        paths[0].loss.mean = loss;
        let mut late = scheduler("late");
        assert_eq!(given(&mut *late, 0, &view(&paths, &[], 99)), Some((0, share)), "{loss}");
    }
}

#[test]
fn acknowledgements_of_the_slow_path_make_the_next_plan() {
    let (mut late, mut paths) = (scheduler("late:spare=wait"), two());
    given(&mut *late, 0, &view(&paths, &[], 99));
    let size = paths[0].packet_size;
    // Queued packets are part of the share. The packets in flight make room for 6 packets in the
    // second round. Acknowledgements of the fast path change nothing.
    (paths[0].bytes_in_flight, paths[0].bytes_queued) = (5 * size, 2 * size);
    assert_eq!(on_acked(&mut *late, 0, &view(&paths, &[], 99)), []);
    assert_eq!(given(&mut *late, 0, &view(&paths, &[], 99)), None);
    assert_eq!(on_acked(&mut *late, 1, &view(&paths, &[], 99)), []);
    assert_eq!(given(&mut *late, 0, &view(&paths, &[], 99)), Some((0, 4)));
    // The window shrinks: two packets are in flight, each of which made room for 1.2 in the forecast.
    paths[0].cwnd = 2 * size;
    paths[0].ssthresh = 2 * size;
    (paths[0].bytes_in_flight, paths[0].bytes_queued) = (2 * size, 9 * size);
    let sooner = SchedulerView { now: Time::from_millis(19), ..view(&paths, &[], 99) };
    let keep = |keep| SchedulerAction::TakeBack { path: PathId(0), keep };
    assert_eq!(on_acked(&mut *late, 1, &sooner), [keep(2)], "it is forecast once in this time");
    let later = SchedulerView { now: Time::from_millis(20), ..view(&paths, &[], 99) };
    assert_eq!(on_acked(&mut *late, 1, &later), [keep(3)], "after the 20 ms, 3 of the next round");
    assert_eq!(given(&mut *late, 0, &later), None);
}

#[test]
fn a_timeout_takes_back_what_is_queued() {
    let (mut late, mut paths) = (scheduler("late"), two());
    given(&mut *late, 1, &view(&paths, &[], 99));
    paths[0].bytes_queued = 9 * paths[0].packet_size;
    let mut actions = Vec::new();
    late.on_event(SchedulerEvent::Timeout(PathId(0)), &view(&paths, &[], 99), &mut actions);
    assert_eq!(actions, [SchedulerAction::TakeBack { path: PathId(0), keep: 0 }]);
    paths[0].bytes_queued = 0;
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 99)), Some((1, 1)), "nothing is expected");
    let at = |millis| SchedulerView { now: Time::from_millis(millis), ..view(&paths, &[], 99) };
    assert_eq!(given(&mut *late, 1, &at(199)), Some((1, 1)));
    assert_eq!(given(&mut *late, 1, &at(200)), Some((0, 11)), "another timeout later");
    late.on_event(SchedulerEvent::Timeout(PathId(0)), &at(210), &mut Vec::new());
    on_acked(&mut *late, 0, &at(211));
    assert_eq!(given(&mut *late, 1, &at(211)), Some((0, 11)), "it answers");
}

/// A full path of 10 ms delivers nothing further within 5 ms, however old its packets in flight
/// are. Within 20 ms, it delivers 6 more packets after those in flight, and 7 more after these 6 if
/// half of those in flight are acknowledged soon.
#[test]
fn what_is_in_flight_makes_room_when_it_is_acknowledged() {
    let now = Time::from_millis(100);
    for (slow, age, window, expected) in [
        (10, 0, "clocked", (1, 1)),
        (10, 10, "clocked", (1, 1)),
        (10, 10, "at-once", (0, 3)),
        (40, 0, "clocked", (0, 6)),
        (40, 10, "clocked", (0, 9)),
        (40, 10, "at-once", (0, 9)),
    ] {
        let mut paths = two();
        paths[0].bytes_in_flight = paths[0].cwnd;
        paths[0].oldest_unacked = Some(Time::from_millis(100 - age));
        paths[1].rtt.smoothed = MS(slow);
        paths[1].rtt.min = MS(slow);
        let mut late = scheduler(&format!("late:window={window}"));
        let view = SchedulerView { now, ..view(&paths, &[], 99) };
        assert_eq!(given(&mut *late, 1, &view), Some(expected), "{slow} {age} {window}");
    }
}

/// The slow path's acknowledgements return on the fast path: its packets arrive 60 ms after the
/// fast path's. Until then, seven rounds of 5 to 11 packets arrive on the fast path.
#[test]
fn packets_arrive_when_the_way_forward_says() {
    for (arrival, share) in [("forward", 56), ("half", 11)] {
        let mut paths = two();
        for (path, forward) in paths.iter_mut().zip([0, 60_000]) {
            (path.rtt.samples, path.rtt.forward) = (9, forward);
        }
        let mut late = scheduler(&format!("late:arrival={arrival}"));
        assert_eq!(given(&mut *late, 1, &view(&paths, &[], 99)), Some((0, share)), "{arrival}");
    }
}

/// Half of the packets arrive in rounds of 3 and 4 packets.
#[test]
fn losses_do_not_halve_a_rate() {
    let mut paths = two();
    paths[0].pacing_rate = Bitrate::from_transfer(3 * paths[0].packet_size, MS(10));
    paths[0].loss.mean = 0.5;
    let mut late = scheduler("late");
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 99)), Some((0, 3)));
}

/// A packet sent on the slow path at 19 ms arrives at 39 ms; the fast path delivers its share once more until then.
#[test]
fn a_plan_is_reckoned_from_when_the_slow_path_sends() {
    let (mut late, mut paths) = (scheduler("late:window=clocked"), two());
    given(&mut *late, 1, &view(&paths, &[], 30));
    paths[0].bytes_in_flight = 4 * paths[0].packet_size;
    // The fast path needs no new plan before the last one has been carried out.
    for (millis, asks, expected) in [(19, 0, (0, 1)), (19, 1, (0, 7)), (39, 0, (0, 7))] {
        let view = SchedulerView { now: Time::from_millis(millis), ..view(&paths, &[], 30) };
        assert_eq!(given(&mut *late, asks, &view), Some(expected), "{asks} after {millis} ms");
    }
}

#[test]
fn the_receiver_bounds_the_window_that_is_forecast() {
    let (mut late, paths) = (scheduler("late"), two());
    let mut view = view(&paths, &[], 30);
    // The share is two rounds of 5 packets of 1200 bytes, since the window may not grow.
    view.fresh.window = 6;
    assert_eq!(given(&mut *late, 0, &view), Some((0, 10)));
}

#[test]
fn what_is_due_is_left_to_a_fast_path_whose_window_holds_it() {
    let (mut late, mut paths) = (scheduler("late"), two());
    paths[0].ready = false;
    // Of the fast path's share of 11 packets, the 5 that leave within a round trip are used.
    assert_eq!(given(&mut *late, 1, &view(&paths, &[block(0, 7)], 30)), Some((0, 5)));
    paths[0].bytes_queued = 5 * paths[0].packet_size;
    let blocks = [block(0, 2)];
    assert_eq!(pull(&mut *late, 1, &view(&paths, &blocks, 30)), of(0), "the rest at once");
    // Then new data follows, and finally the data beyond the share.
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 30)), Some((0, 6)));
    paths[0].bytes_queued = 11 * paths[0].packet_size;
    assert_eq!(given(&mut *late, 1, &view(&paths, &[], 24)), Some((1, 1)));
}

#[test]
fn what_is_due_waits_for_no_paced_path() {
    let (mut late, mut paths) = (scheduler("late"), two());
    paths[0].pacing_rate = Bitrate::from_transfer(paths[0].cwnd, MS(10));
    let blocks = [block(0, 1)];
    assert_eq!(pull(&mut *late, 0, &view(&paths, &blocks, 30)), of(0));
    assert_eq!(given(&mut *late, 1, &view(&paths, &blocks, 0)), None, "a faster path has room");
    paths[0].ready = false;
    assert_eq!(pull(&mut *late, 1, &view(&paths, &blocks, 30)), of(0));
}

#[test]
fn a_loss_comes_before_what_is_queued() {
    let (mut late, mut paths) = (scheduler("late"), two());
    given(&mut *late, 1, &view(&paths, &[], 30));
    paths[0].bytes_queued = 11 * paths[0].packet_size;
    let mut on_lost = |blocks: &[BlockView]| {
        let mut actions = Vec::new();
        late.on_event(SchedulerEvent::Lost(PathId(0)), &view(&paths, blocks, 19), &mut actions);
        actions
    };
    assert_eq!(on_lost(&[]), [], "the path has made it good itself");
    let all = SchedulerAction::TakeBack { path: PathId(0), keep: 0 };
    assert_eq!(on_lost(&[block(0, 2)]), [all]);
}
