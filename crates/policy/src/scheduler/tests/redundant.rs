//! Copies of every symbol, or of the symbols of one class.

use super::*;

const COPY: Option<Work> = Some(Work::Copy(BlockId(0)));

/// A block with symbols in flight, by path.
fn flying<const N: usize>(distinct: u16, on: [u16; N]) -> BlockView {
    let mut block = BlockView { in_flight: distinct, ..block(0, 0) };
    block.in_flight_on[..N].copy_from_slice(&on);
    block
}

/// The block with the class of messages.
fn interactive(block: BlockView) -> BlockView {
    BlockView { class: TrafficClass::Interactive, ..block }
}

#[test]
fn redundant_paths_copy_what_the_others_carry() {
    let paths = [path(0, 10, 80), path(1, 10, 20)];
    let ahead = flying(3, [3, 1]);
    let blocks = [ahead];
    assert_eq!(pulls("redundant", &view(&paths, &blocks, 9)), [FRESH, COPY]);
    assert_eq!(pulls("redundant", &view(&paths, &blocks, 0)), [None, COPY]);
    let due = [ahead, block(1, 1)];
    assert_eq!(pulls("redundant", &view(&paths, &due, 9)), [of(1), of(1)]);
}

#[test]
fn more_paths_than_there_are_is_all_of_them() {
    let paths = [path(0, 10, 80), path(1, 10, 20)];
    let blocks = [flying(3, [3, 1])];
    for spec in ["redundant:paths=2", "redundant:paths=3", "redundant:paths=16"] {
        assert_eq!(pulls(spec, &view(&paths, &blocks, 0)), [None, COPY], "{spec}");
    }
    // A single path has no other to copy from.
    assert_eq!(pulls("redundant:paths=2", &view(&paths[..1], &[], 9)), [FRESH]);
    assert_eq!(pulls("redundant:paths=2", &view(&paths[..1], &[flying(3, [3])], 0)), [None]);
}

#[test]
fn copies_go_on_the_paths_where_they_arrive_first() {
    let mut paths = [path(0, 10, 80), path(1, 10, 20), path(2, 10, 40)];
    assert_eq!(pulls("redundant:paths=2", &view(&paths, &[], 9)), [None, FRESH, FRESH]);
    assert_eq!(pulls("redundant:paths=1", &view(&paths, &[], 9)), [None, FRESH, None]);
    // Losses cause delay: 20 ms of transit and 40 · 3 ms for repeats.
    paths[2].loss.mean = 0.75;
    assert_eq!(pulls("redundant:paths=2", &view(&paths, &[], 9)), [FRESH, FRESH, None]);
    paths[2].loss.mean = 0.0;
    // A path that shares a bottleneck with a chosen one comes after those that do not.
    (paths[1].shares, paths[2].shares) = (1 << 2, 1 << 1);
    assert_eq!(pulls("redundant:paths=2", &view(&paths, &[], 9)), [FRESH, FRESH, None]);
    paths[0].state = PathState::Suspect;
    assert_eq!(pulls("redundant:paths=2", &view(&paths, &[], 9)), [None, FRESH, FRESH]);
}

#[test]
fn a_path_that_carries_copies_gives_way_only_to_one_that_is_much_quicker() {
    let mut paths = [path(0, 10, 100), path(1, 10, 110)];
    let mut scheduler = scheduler("redundant:paths=1");
    let mut carriers = |paths: &[PathView]| {
        let view = view(paths, &[], 9);
        [0, 1].map(|id| pull(&mut *scheduler, id, &view).is_some())
    };
    assert_eq!(carriers(&paths), [true, false]);
    for (rtt, expected) in [(85, [true, false]), (79, [false, true]), (110, [false, true])] {
        paths[1] = path(1, 10, rtt);
        assert_eq!(carriers(&paths), expected, "{rtt} ms");
    }
    paths[1].state = PathState::Closed;
    assert_eq!(carriers(&paths), [true, false]);
}

#[test]
fn copies_wait_for_at_most_the_jitter_and_originals_do_not() {
    let paths = [path(0, 100, 20), path(1, 100, 40)];
    let blocks = [flying(50, [50, 0])];
    let view = view(&paths, &blocks, 9);
    let mut scheduler = scheduler("redundant:jitter=8ms");
    let mut waits = Vec::new();
    for _ in 0..1000 {
        let mut picks = Vec::new();
        assert!(matches!(scheduler.pull(PathId(1), &view, &mut picks), Pull::Send(_)));
        let [pick] = picks[..] else { panic!("{picks:?}") };
        assert_eq!((pick.work, pick.count, pick.path), (Work::Copy(BlockId(0)), 1, PathId(1)));
        waits.push(pick.not_before.as_nanos() as f64 / 1e6);
    }
    let mean = waits.iter().sum::<f64>() / 1000.0;
    let most = waits.iter().copied().fold(0.0, f64::max);
    // The mean of 1000 uniform waits has a deviation of 8/√12/√1000 = 0.07 ms.
    assert!((mean - 4.0).abs() < 0.3 && (7.9..=8.0).contains(&most), "{mean} {most}");
    let mut picks = Vec::new();
    assert!(matches!(scheduler.pull(PathId(0), &view, &mut picks), Pull::Send(_)));
    assert_eq!((picks[0].work, picks[0].not_before), (Work::Fresh, Time::ZERO));
}

#[test]
fn with_jitter_the_quickest_path_with_room_begins() {
    let mut paths = [path(0, 10, 40), path(1, 10, 20)];
    let spec = "redundant:jitter=1ms";
    assert_eq!(pulls(spec, &view(&paths, &[], 9)), [None, FRESH]);
    assert_eq!(pulls(spec, &view(&paths, &[block(1, 1)], 9)), [None, of(1)]);
    paths[1].ready = false;
    assert_eq!(pulls(spec, &view(&paths, &[], 9))[0], FRESH);
}

#[test]
fn copies_that_wait_take_no_more_than_the_window() {
    let mut paths = [path(0, 10, 20), path(1, 10, 40)];
    let blocks = [flying(10, [10, 0])];
    let mut scheduler = scheduler("redundant:jitter=1s");
    paths[1].bytes_queued = paths[1].cwnd;
    assert_eq!(pull(&mut *scheduler, 1, &view(&paths, &blocks, 0)), None);
    paths[1].bytes_queued -= paths[1].packet_size;
    let mut picks = Vec::new();
    let answer = scheduler.pull(PathId(1), &view(&paths, &blocks, 0), &mut picks);
    assert!(matches!(answer, Pull::Send(_)), "{answer:?}");
}

#[test]
fn one_class_is_copied_and_the_rest_is_scheduled_as_ever() {
    let paths = [path(0, 10, 80), path(1, 10, 20)];
    let bulk = [flying(3, [3, 0])];
    let spec = "redundant:class=interactive";
    assert_eq!(pulls(spec, &view(&paths, &bulk, 9)), [FRESH, FRESH], "blind");
    let spec = "redundant:class=interactive,rest=min-rtt";
    assert_eq!(pulls(spec, &view(&paths, &bulk, 9)), [None, FRESH]);
    let urgent = [interactive(bulk[0]), block(1, 1)];
    assert_eq!(pulls(spec, &view(&paths, &urgent, 0)), [None, COPY], "the copy first");
    let mut new = view(&paths, &[], 9);
    new.fresh.class = TrafficClass::Interactive;
    assert_eq!(pulls(spec, &new), [FRESH, FRESH], "on both");
    // The scheduler of the rest is not shown new data of the copied class, not even for a path that
    // carries no copies.
    let spec = "redundant:class=interactive,rest=min-rtt,paths=1";
    assert_eq!(pulls(spec, &new), [None, FRESH]);
}

#[test]
fn what_comes_behind_a_message_does_not_wait_for_the_paths_that_carry_it() {
    let paths = [path(0, 10, 80), path(1, 10, 20)];
    let mut view = view(&paths, &[], 2);
    (view.fresh.class, view.fresh.beyond) = (TrafficClass::Interactive, 9);
    let mut scheduler = scheduler("redundant:class=interactive,rest=min-rtt,paths=1");
    let mut picks = Vec::new();
    assert!(matches!(scheduler.pull(PathId(0), &view, &mut picks), Pull::Send(_)));
    assert_eq!((picks[0].work, picks[0].count), (Work::Ahead, 2));
    assert_eq!(pull(&mut *scheduler, 1, &view), FRESH);
}

/// Holds every path until a second has passed.
#[derive(Debug)]
struct Holding;

impl Scheduler for Holding {
    fn pull(&mut self, _: PathId, _: &SchedulerView<'_>, _: &mut Vec<Pick>) -> Pull {
        Pull::Hold(Time::from_micros(1_000_000), "not yet")
    }
}

#[test]
fn a_path_that_the_rest_holds_still_carries_copies() {
    let paths = [path(0, 10, 80), path(1, 10, 20)];
    let mut rest = crate::scheduler::redundant::Rest::of(Box::new(Holding));
    let mut picks = Vec::new();
    let bulk = [block(0, 1)];
    let copied = TrafficClass::Interactive;
    let mut view = view(&paths, &bulk, 0);
    let mut ask = |view: &SchedulerView<'_>| {
        let answer = rest.pull(copied, PathId(0), view, &mut picks);
        (answer, rest.wakeup())
    };
    let second = Some(Time::from_micros(1_000_000));
    assert_eq!(ask(&view), (Pull::Idle("not yet"), second));
    assert_eq!(ask(&view), (Pull::Idle("held, but for copies"), second));
    view.now = Time::from_micros(1_000_000);
    let mut actions = Vec::new();
    rest.on_event(SchedulerEvent::Wakeup, &view, &mut actions);
    assert_eq!(rest.wakeup(), None);
}

#[test]
fn wrong_options_say_what_is_allowed() {
    let message = |spec: &str| build(&spec.parse().unwrap()).unwrap_err().to_string();
    for (spec, allowed) in [
        ("redundant:paths=0", "a whole number from 1 to 16"),
        ("redundant:paths=17", "a whole number from 1 to 16"),
        ("redundant:paths=two", "a whole number from 1 to 16"),
        ("redundant:jitter=2s", "from 0ns to 1s"),
        ("redundant:jitter=5", "a duration"),
        ("redundant:class=video", "all, interactive, live, bulk"),
        ("redundant:rest=redundant", "earliest, rank, min-rtt"),
        ("redundant:rest=best", "earliest, rank, min-rtt"),
        ("redundant:copies=2", "paths, jitter, class, rest"),
    ] {
        let message = message(spec);
        assert!(message.contains(allowed), "{spec}: {message}");
    }
}

proptest! {
    #[test]
    fn picks_are_sound_whatever_is_copied_and_where(
        mut paths in proptest::collection::vec(any_path(), 1..MAX_PATHS),
        mut blocks in proptest::collection::vec((any_block(), 0..3_usize), 0..8),
        shares in any::<[u16; MAX_PATHS]>(),
        symbols in 0..3_u32,
        most in 1..=MAX_PATHS,
        options in (
            prop_oneof![Just("0ms"), Just("3ms")],
            prop_oneof![Just("all"), Just("interactive"), Just("bulk")],
            prop_oneof![Just("earliest"), Just("daps"), Just("blest")],
        ),
    ) {
        for (id, path) in paths.iter_mut().enumerate() {
            (path.id, path.slot, path.shares) = (PathId(id as u32), id as u8, shares[id]);
        }
        let classes = [TrafficClass::Interactive, TrafficClass::Live, TrafficClass::Bulk];
        for (id, (block, class)) in blocks.iter_mut().enumerate() {
            (block.id, block.class) = (BlockId(id as u64), classes[*class]);
        }
        let blocks: Vec<BlockView> = blocks.into_iter().map(|(block, _)| block).collect();
        let view = view(&paths, &blocks, symbols);
        let (jitter, class, rest) = options;
        let spec = format!("redundant:paths={most},jitter={jitter},class={class},rest={rest}");
        let mut scheduler = scheduler(&spec);
        let mut carriers = std::collections::BTreeSet::new();
        for path in paths.iter().filter(|path| path.ready) {
            let mut picks = Vec::new();
            let answer = scheduler.pull(path.id, &view, &mut picks);
            prop_assert_eq!(!picks.is_empty(), matches!(answer, Pull::Send(_)));
            for pick in &picks {
                prop_assert!(sound(pick, &view), "{}: {:?}", spec, pick);
                let block = match pick.work {
                    Work::Copy(id) => view.block(id),
                    _ => None,
                };
                let copied = |class: TrafficClass| match options.1 {
                    "all" => true,
                    "bulk" => class == TrafficClass::Bulk,
                    _ => class == TrafficClass::Interactive,
                };
                // BLEST's opportunistic retransmissions come as actions, never as picks.
                prop_assert!(block.is_none_or(|block| copied(block.class)), "{spec}: {pick:?}");
                if block.is_some() {
                    carriers.insert(pick.path);
                }
            }
        }
        prop_assert!(carriers.len() <= most, "{spec}: copies on {carriers:?}");
    }
}
