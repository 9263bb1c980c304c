//! DAPS's plans, and DPSAF's corrections.

use super::late::{given, on_acked, two};
use super::*;

/// A fast path of 10 ms and five packets, and a slow path of 40 ms and three packets: 5 ms are one
/// step of the plan, 20 ms are five.
fn one_and_five_steps() -> [PathView; 2] {
    [path(0, 5, 10), path(1, 3, 40)]
}

#[test]
fn windows_are_laid_out_as_they_arrive() {
    let paths = one_and_five_steps();
    for asks in [0, 1] {
        let mut daps = scheduler("daps");
        let mut next = || given(&mut *daps, asks, &view(&paths, &[], 99));
        for _ in 0..2 {
            let runs: Vec<_> = (0..6).map(|_| next()).collect();
            assert_eq!(runs[..5], [Some((0, 5)); 5], "asked by {asks}");
            assert_eq!(runs[5], Some((1, 3)), "asked by {asks}");
        }
    }
}

#[test]
fn a_run_is_interrupted_where_the_data_ends() {
    let (mut daps, paths) = (scheduler("daps"), one_and_five_steps());
    assert_eq!(given(&mut *daps, 0, &view(&paths, &[], 2)), Some((0, 2)));
    assert_eq!(given(&mut *daps, 0, &view(&paths, &[], 0)), None);
    assert_eq!(given(&mut *daps, 0, &view(&paths, &[], 9)), Some((0, 3)));
    assert_eq!(given(&mut *daps, 0, &view(&paths, &[], 9)), Some((0, 5)));
}

#[test]
fn a_run_waits_for_its_path_no_longer_than_a_window_is_queued_there() {
    let (mut daps, mut paths) = (scheduler("daps"), one_and_five_steps());
    for _ in 0..5 {
        given(&mut *daps, 0, &view(&paths, &[], 99));
    }
    paths[1].bytes_queued = paths[1].cwnd;
    assert_eq!(given(&mut *daps, 0, &view(&paths, &[], 99)), None);
    assert_eq!(given(&mut *daps, 1, &view(&paths, &[], 99)), Some((1, 3)));
    assert_eq!(given(&mut *daps, 0, &view(&paths, &[], 99)), Some((0, 5)));
}

#[test]
fn plans_end_although_delays_have_no_common_multiple() {
    let paths: Vec<PathView> = (0..8).map(|id| path(id, 10, 1 + 107 * u64::from(id))).collect();
    let mut daps = scheduler("daps");
    let mut counts = [0; 8];
    for _ in 0..2000 {
        let (path, count) = given(&mut *daps, 0, &view(&paths, &[], 99)).unwrap();
        counts[path as usize] += u32::from(count);
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn a_path_that_goes_down_ends_the_plan() {
    let (mut daps, mut paths) = (scheduler("daps"), one_and_five_steps());
    given(&mut *daps, 0, &view(&paths, &[], 99));
    paths[0].state = PathState::Suspect;
    let view = view(&paths, &[], 99);
    daps.on_event(SchedulerEvent::PathDown(PathId(0)), &view, &mut Vec::new());
    assert_eq!(given(&mut *daps, 1, &view), Some((1, 3)));
}

/// The second share of a fast path of 10 ms, next to a slow path of 40 ms. Each of the `events` has
/// a time in ms and a number: the slow path's packet is acknowledged (1) or lost (2), or all
/// packets before it are acknowledged (0).
fn second_share(events: [(u64, u32); 2]) -> Option<(u32, u16)> {
    let (mut dpsaf, mut paths) = (scheduler("dpsaf"), two());
    assert_eq!(given(&mut *dpsaf, 0, &view(&paths, &[], 30)), Some((0, 11)));
    paths[0].bytes_queued = 11 * paths[0].packet_size;
    assert_eq!(given(&mut *dpsaf, 1, &view(&paths, &[], 19)), Some((1, 1)));
    paths[0].bytes_queued = 0;
    paths[1].oldest_unacked = Some(Time::ZERO);
    let outstanding = [block(0, 0)];
    let mut blocks = &outstanding[..];
    for (millis, event) in events {
        let event = match event {
            0 => {
                blocks = &[];
                SchedulerEvent::Acked(PathId(0))
            }
            1 => {
                paths[1].oldest_unacked = None;
                SchedulerEvent::Acked(PathId(1))
            }
            _ => SchedulerEvent::Lost(PathId(1)),
        };
        let view = SchedulerView { now: Time::from_millis(millis), ..view(&paths, blocks, 30) };
        dpsaf.on_event(event, &view, &mut Vec::new());
    }
    let later = SchedulerView { now: Time::from_millis(100), ..view(&paths, &[], 30) };
    assert_eq!(on_acked(&mut *dpsaf, 1, &later), []);
    given(&mut *dpsaf, 0, &later)
}

#[test]
fn shares_are_corrected_by_when_the_slow_paths_data_came() {
    // The slow path's acknowledgement takes 15 ms longer than the fast path's, so the packets have
    // arrived together.
    assert_eq!(second_share([(25, 0), (40, 1)]), Some((0, 11)));
    // The slow path's packet arrived 20 ms too early. In this time the fast path delivers ten
    // packets; half of them count.
    assert_eq!(second_share([(40, 1), (45, 0)]), Some((0, 6)));
    assert_eq!(second_share([(25, 0), (60, 1)]), Some((0, 16)));
    // After a loss on the slow path, there is no correction.
    assert_eq!(second_share([(40, 2), (45, 0)]), Some((0, 11)));
}
