//! Opportunistic retransmission and penalisation when the receiver's or the sender's buffer is full.

use super::*;

/// A fast path of 10 ms, and other paths with these windows and round-trip times, which carry the
/// oldest symbol.
fn carried_by(others: &[(u64, u64)]) -> (Vec<PathView>, BlockView) {
    let mut paths = vec![path(0, 10, 10)];
    let mut oldest = BlockView { in_flight: 1, ..block(1, 0) };
    for (id, (packets, rtt)) in (1_u32..).zip(others) {
        paths.push(path(id, *packets, *rtt));
        oldest.carried_on |= 1 << id;
        oldest.in_flight_on[id as usize] = 1;
    }
    (paths, oldest)
}

fn actions(
    scheduler: &mut dyn Scheduler,
    paths: &[PathView],
    oldest: BlockView,
    millis: u64,
) -> Vec<SchedulerAction> {
    told(scheduler, SchedulerEvent::ReceiverLimited, paths, oldest, millis)
}

fn told(
    scheduler: &mut dyn Scheduler,
    event: SchedulerEvent,
    paths: &[PathView],
    oldest: BlockView,
    millis: u64,
) -> Vec<SchedulerAction> {
    let blocks = [oldest, BlockView { in_flight: 1, ..block(2, 0) }];
    let mut view = view(paths, &blocks, 0);
    view.now = Time::from_millis(millis);
    let mut actions = Vec::new();
    scheduler.on_event(event, &view, &mut actions);
    actions
}

fn held_back(path: u32) -> SchedulerAction {
    SchedulerAction::Penalise(PathId(path))
}

fn copied() -> SchedulerAction {
    let (work, not_before) = (Work::Copy(BlockId(1)), Time::ZERO);
    SchedulerAction::Assign(Pick { work, count: 1, path: PathId(0), not_before })
}

#[test]
fn the_oldest_symbol_goes_again_on_a_path_that_is_much_faster() {
    // Windows in packets and RTT in ms of the paths that carry the symbol; the actions expected.
    let cases = [
        ([(10, 100)].as_slice(), vec![held_back(1), copied()]),
        // Four times the round trip is not slow enough, unless the window is small.
        (&[(10, 40)], vec![held_back(1)]),
        (&[(4, 40)], vec![held_back(1), copied()]),
        // A path that is not slower is not held back.
        (&[(10, 10)], vec![]),
        // The first path that is not slow enough prevents the copy, unless a path with a small
        // window comes before it.
        (&[(10, 100), (10, 20)], vec![held_back(1), held_back(2)]),
        (&[(3, 100), (10, 20)], vec![held_back(1), held_back(2), copied()]),
    ];
    for spec in ["min-rtt", "hsr", "lws", "lts", "blest", "ecf", "otias", "late", "dpsaf", "daps"] {
        for (others, expected) in &cases {
            let (paths, oldest) = carried_by(others);
            let done = actions(&mut *scheduler(spec), &paths, oldest, 0);
            assert_eq!(done, *expected, "{spec}, {others:?}");
        }
    }
}

#[test]
fn a_send_buffer_with_room_in_it_holds_nobody_back() {
    // Windows and RTT as above; the actions expected for a full send buffer, and for one with some room.
    let cases = [
        ([(10, 100)].as_slice(), vec![held_back(1), copied()], vec![copied()]),
        (&[(10, 40)], vec![held_back(1)], vec![]),
        (&[(4, 40)], vec![held_back(1), copied()], vec![copied()]),
        (&[(10, 10)], vec![], vec![]),
        (&[(10, 100), (10, 20)], vec![held_back(1), held_back(2)], vec![]),
    ];
    for (others, full, roomy) in cases {
        let (paths, oldest) = carried_by(others);
        for (event, expected) in [
            (SchedulerEvent::SenderLimited { full: true }, full),
            (SchedulerEvent::SenderLimited { full: false }, roomy),
        ] {
            let done = told(&mut *scheduler("min-rtt"), event, &paths, oldest, 0);
            assert_eq!(done, expected, "{event:?}, {others:?}");
            let done = told(&mut *scheduler("min-rtt:full=wait"), event, &paths, oldest, 0);
            assert_eq!(done, [], "{event:?}, {others:?}");
        }
    }
    // An event with a buffer that was not full does not count as holding others back.
    let (paths, oldest) = carried_by(&[(10, 100)]);
    let scheduler = &mut *scheduler("min-rtt");
    for (full, expected) in [(false, vec![copied()]), (true, vec![held_back(1), copied()])] {
        let event = SchedulerEvent::SenderLimited { full };
        assert_eq!(told(scheduler, event, &paths, oldest, 0), expected);
    }
}

#[test]
fn paths_are_held_back_once_in_a_round_trip_of_the_fast_one() {
    let mut scheduler = scheduler("min-rtt");
    let (paths, oldest) = carried_by(&[(10, 100)]);
    for (millis, expected) in
        [(0, vec![held_back(1), copied()]), (9, vec![copied()]), (10, vec![held_back(1), copied()])]
    {
        assert_eq!(actions(&mut *scheduler, &paths, oldest, millis), expected, "{millis} ms");
    }
}

#[test]
fn nothing_is_copied_without_need() {
    let (mut paths, oldest) = carried_by(&[(10, 100)]);
    let done =
        |spec: &str, paths: &[PathView], oldest| actions(&mut *scheduler(spec), paths, oldest, 0);
    assert_eq!(done("min-rtt:full=wait", &paths, oldest), []);
    // The fast path already carries the symbol, or the symbol is due and goes there anyway.
    let mut on_both = oldest;
    on_both.in_flight_on[0] = 1;
    assert_eq!(done("min-rtt", &paths, on_both), [held_back(1)]);
    assert_eq!(done("min-rtt", &paths, BlockView { due: 1, ..oldest }), []);
    // No path but the slow one has room.
    paths[0].ready = false;
    assert_eq!(done("min-rtt", &paths, oldest), []);
    paths[1].ready = false;
    assert_eq!(done("min-rtt", &paths, oldest), []);
}
