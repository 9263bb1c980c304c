use super::*;
use crate::recovery;
use crate::registry::PolicySpec;
use crate::view::{BlockId, Demand, FreshView, MAX_PATHS, SymbolId, TrafficClass};

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A scheduler that has nothing to send.
#[derive(Debug)]
struct Silent;

impl Scheduler for Silent {
    fn pull(&mut self, _: PathId, _: &SchedulerView<'_>, _: &mut Vec<Pick>) -> Pull {
        Pull::Idle("silent")
    }
}

/// A path with a smoothed round-trip time of `millis`, whose oldest unacknowledged packet left at
/// `oldest`.
fn path(id: u32, millis: u64, oldest: u64) -> PathView {
    let mut path = PathView::unknown(PathId(id));
    path.rtt.smoothed = Duration::from_millis(millis);
    path.oldest_unacked = Some(ms(oldest));
    path
}

/// A block with symbols in flight by path, whose first symbol left at `opened`.
fn block(id: u64, opened: u64, in_flight: u16, on: &[u16]) -> BlockView {
    let mut in_flight_on = [0; MAX_PATHS];
    in_flight_on[..on.len()].copy_from_slice(on);
    let sources = in_flight;
    BlockView {
        id: BlockId(id),
        opened: ms(opened),
        sources,
        in_flight,
        in_flight_on,
        ..Default::default()
    }
}

/// The block of which path 1 is given a copy at `now`, and when the scheduler then wants to be
/// woken.
fn asked(
    spec: &str,
    now: u64,
    paths: &[PathView],
    blocks: &[BlockView],
    blocked: Option<Blocked>,
) -> (Option<u64>, Option<Time>) {
    let fresh = FreshView {
        symbols: 0,
        beyond: 0,
        next: SymbolId(100),
        more: false,
        class: TrafficClass::Bulk,
        symbol_size: 1200,
        blocked,
        credit: 100,
        window: 100,
    };
    let view = SchedulerView { now: ms(now), paths, blocks, fresh, demand: Demand::default() };
    let spec: PolicySpec = spec.parse().unwrap();
    let mut scheduler = recovery::build(&spec).unwrap().around(Box::new(Silent));
    let mut picks = Vec::new();
    let answer = scheduler.pull(PathId(1), &view, &mut picks);
    assert_eq!(matches!(answer, Pull::Send(_)), !picks.is_empty());
    let copied = picks.first().map(|pick| match pick.work {
        Work::Copy(BlockId(id)) if pick.path == PathId(1) && pick.count == 1 => id,
        _ => panic!("{pick:?}"),
    });
    (copied, scheduler.wakeup())
}

#[test]
fn what_is_long_in_flight_elsewhere_is_copied() {
    // The least round-trip time is 100 ms, so copies are made 110 ms after 1,000.
    let paths = [path(0, 100, 1_000), path(1, 400, 1_500)];
    let blocks = [block(7, 1_000, 1, &[1]), block(8, 1_050, 1, &[1])];
    let credit = Some(Blocked::DecoderCredit);
    for (spec, now, copied, wakeup) in [
        ("xlink", 1_109, None, Some(ms(1_110))),
        ("xlink", 1_110, Some(7), None),
        ("xlink:factor=2", 1_199, None, Some(ms(1_200))),
        ("xlink:factor=2", 1_200, Some(7), None),
        ("xlink:most=50ms", 1_050, Some(7), None),
        ("xlink:factor=0,least=60ms", 1_059, None, Some(ms(1_060))),
        ("resend", 9_000, None, None),
    ] {
        assert_eq!(asked(spec, now, &paths, &blocks, credit), (copied, wakeup), "{spec} {now}");
    }
    // With round trips of a millisecond, copies are made after 20 ms; with round trips of ten
    // seconds, after half a second.
    let near = [path(0, 1, 1_000), path(1, 1, 1_000)];
    assert_eq!(asked("xlink", 1_005, &near, &blocks, credit).1, Some(ms(1_020)));
    let far = [path(0, 10_000, 1_000), path(1, 10_000, 1_000)];
    assert_eq!(asked("xlink", 1_005, &far, &blocks, credit).1, Some(ms(1_500)));
}

#[test]
fn each_symbol_is_copied_once() {
    let paths = [path(0, 100, 1_000), path(1, 400, 1_500), path(2, 400, 1_500)];
    let credit = Some(Blocked::DecoderCredit);
    for (on, in_flight, copied) in [
        (&[1, 0, 0][..], 1, Some(7)),
        // The symbol is on path 1 itself, or already on path 2 too.
        (&[0, 1, 0], 1, None),
        (&[1, 0, 1], 1, None),
        // Two symbols are on path 0; path 2 has one of them too, and then both.
        (&[2, 0, 1], 2, Some(7)),
        (&[2, 0, 2], 2, None),
    ] {
        let blocks = [block(7, 1_000, in_flight, on)];
        assert_eq!(asked("xlink", 5_000, &paths, &blocks, credit).0, copied, "{on:?}");
    }
}

#[test]
fn of_a_long_block_the_carriers_oldest_packet_tells_the_age() {
    // The block began at 1,000, but the oldest unacknowledged packet of path 0 left at 1,300.
    let paths = [path(0, 100, 1_300), path(1, 400, 1_500)];
    let blocks = [block(7, 1_000, 5, &[5])];
    let credit = Some(Blocked::DecoderCredit);
    assert_eq!(asked("xlink", 1_400, &paths, &blocks, credit), (None, Some(ms(1_410))));
    assert_eq!(asked("xlink", 1_410, &paths, &blocks, credit).0, Some(7));
}

#[test]
fn when_nothing_new_waits_age_does_not_matter() {
    let paths = [path(0, 100, 1_000), path(1, 400, 1_500)];
    let blocks = [block(7, 1_000, 1, &[1])];
    let at_once = |blocked| asked("xlink", 1_001, &paths, &blocks, blocked).0;
    assert_eq!(at_once(Some(Blocked::Application)), Some(7));
    assert_eq!(at_once(Some(Blocked::FlowControl)), None);
    assert_eq!(at_once(None), None);
    // A backup carries no copies while another path is usable.
    let backup = [paths[0], PathView { backup: true, ..paths[1] }];
    assert_eq!(asked("xlink", 9_000, &backup, &blocks, Some(Blocked::Application)).0, None);
}
