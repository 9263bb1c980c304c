mod daps;
mod expected_arrival;
mod late;
mod linux;
mod mptcp;
mod redundant;
mod unblock;

use anabranch_types::PathId;
use core::time::Duration;
use proptest::prelude::*;

use super::*;
use crate::view::{
    BlockView, Blocked, Demand, FreshView, MAX_PATHS, PathState, PathView, SymbolId, TrafficClass,
};

fn scheduler(spec: &str) -> Box<dyn Scheduler> {
    build(&spec.parse().unwrap()).unwrap()
}

/// A path with a window of `packets` and a round-trip time in milliseconds.
fn path(id: u32, packets: u64, rtt: u64) -> PathView {
    let mut path = PathView::unknown(PathId(id));
    path.cwnd = packets * path.packet_size;
    path.rtt.smoothed = Duration::from_millis(rtt);
    path.rtt.min = path.rtt.smoothed;
    path
}

fn block(id: u64, due: u16) -> BlockView {
    BlockView {
        id: BlockId(id),
        first: SymbolId(id * 10),
        sources: 10,
        closed: true,
        due,
        ..BlockView::default()
    }
}

fn fresh(symbols: u32) -> FreshView {
    FreshView {
        symbols,
        beyond: 0,
        next: SymbolId(1000),
        more: false,
        class: TrafficClass::Bulk,
        symbol_size: 1000,
        blocked: (symbols == 0).then_some(Blocked::Application),
        credit: symbols,
        window: symbols,
    }
}

fn view<'a>(paths: &'a [PathView], blocks: &'a [BlockView], symbols: u32) -> SchedulerView<'a> {
    let demand = Demand::default();
    SchedulerView { now: Time::ZERO, paths, blocks, fresh: fresh(symbols), demand }
}

/// Work that the path is told to send, if any.
fn pull(scheduler: &mut dyn Scheduler, path: u32, view: &SchedulerView<'_>) -> Option<Work> {
    let mut picks = Vec::new();
    match scheduler.pull(PathId(path), view, &mut picks) {
        Pull::Send(_) => {
            assert_eq!(picks.len(), 1);
            assert_eq!(picks[0].path, PathId(path));
            Some(picks[0].work)
        }
        Pull::Hold(..) | Pull::Idle(_) => {
            assert!(picks.is_empty());
            None
        }
    }
}

/// Work that each path is told to send when the paths ask one after the other.
fn pulls(spec: &str, view: &SchedulerView<'_>) -> Vec<Option<Work>> {
    let mut scheduler = scheduler(spec);
    view.paths.iter().map(|path| pull(&mut *scheduler, path.id.0, view)).collect()
}

const fn of(id: u64) -> Option<Work> {
    Some(Work::Block(BlockId(id)))
}

const FRESH: Option<Work> = Some(Work::Fresh);

#[test]
fn blind_takes_the_oldest_due_work_then_new_data() {
    let paths = [path(0, 10, 40), path(1, 10, 400)];
    let mut blocks = [block(0, 0), block(1, 2), block(2, 5)];
    assert_eq!(pulls("blind", &view(&paths, &blocks, 9)), [of(1), of(1)]);
    blocks[1].due = 0;
    blocks[2].due = 0;
    assert_eq!(pulls("blind", &view(&paths, &blocks, 9)), [FRESH, FRESH]);
    assert_eq!(pulls("blind", &view(&paths, &blocks, 0)), [None, None]);
    // Planned repairs can be sent only once the block is closed.
    blocks[0].proactive_left = 3;
    assert_eq!(pulls("blind", &view(&paths, &blocks, 9)), [of(0), of(0)]);
    blocks[0].closed = false;
    assert_eq!(pulls("blind", &view(&paths, &blocks, 9)), [FRESH, FRESH]);
}

#[test]
fn backups_wait_until_nothing_else_is_usable() {
    let mut paths = [path(0, 10, 40), path(1, 10, 10)];
    paths[1].backup = true;
    let specs =
        ["blind", "min-rtt", "hsr", "lws", "lts", "blest", "ecf", "round-robin", "redundant"];
    let specs = specs.into_iter().chain(["rank", "rank:fill=full"]);
    for spec in specs.clone() {
        assert_eq!(pulls(spec, &view(&paths, &[], 9)), [FRESH, None], "{spec}");
    }
    paths[0].state = PathState::Suspect;
    for spec in specs {
        assert_eq!(pulls(spec, &view(&paths, &[], 9)), [None, FRESH], "{spec}");
    }
}

#[test]
fn min_rtt_fills_the_fastest_path_with_room() {
    let mut paths = [path(0, 10, 80), path(1, 10, 20), path(2, 10, 20)];
    let blocks = [block(0, 1)];
    assert_eq!(pulls("min-rtt", &view(&paths, &blocks, 9)), [None, of(0), None]);
    paths[1].ready = false;
    paths[2].ready = false;
    assert_eq!(pulls("min-rtt", &view(&paths, &blocks, 9))[0], of(0));
}

#[test]
fn min_rtt_sends_a_loss_on_another_path() {
    let mut paths = [path(0, 10, 80), path(1, 10, 20)];
    let mut blocks = [BlockView { lost_on: 0b10, ..block(0, 1) }];
    // The slow path takes the repair, the fast one goes on with new data.
    assert_eq!(pulls("min-rtt", &view(&paths, &blocks, 9)), [of(0), FRESH]);
    paths[0].ready = false;
    assert_eq!(pulls("min-rtt", &view(&paths, &blocks, 9))[1], of(0));
    paths[0].ready = true;
    blocks[0].lost_on = 0b11;
    assert_eq!(pulls("min-rtt", &view(&paths, &blocks, 9)), [None, of(0)]);
}

#[test]
fn round_robin_takes_turns_and_passes_over_full_paths() {
    let mut paths = [path(0, 10, 80), path(1, 10, 20), path(2, 10, 20)];
    let mut scheduler = scheduler("round-robin:quota=2");
    let turns = |scheduler: &mut dyn Scheduler, paths: &[PathView]| -> Vec<u32> {
        let view = view(paths, &[], 9);
        let ready = || paths.iter().filter(|path| path.ready);
        (0..6)
            .filter_map(|_| {
                ready().find(|path| pull(scheduler, path.id.0, &view).is_some()).map(|p| p.id.0)
            })
            .collect()
    };
    assert_eq!(turns(&mut *scheduler, &paths), [0, 0, 1, 1, 2, 2]);
    paths[1].ready = false;
    assert_eq!(turns(&mut *scheduler, &paths), [0, 0, 2, 2, 0, 0]);
}

/// Ranks 250, 500 and 125 packets per second; only path 1 is above the median.
fn three() -> [PathView; 3] {
    [path(0, 10, 40), path(1, 20, 40), path(2, 5, 40)]
}

#[test]
fn rank_sends_older_blocks_on_good_paths() {
    let blocks = [block(0, 1), block(1, 1), block(2, 1), block(3, 1)];
    assert_eq!(pulls("rank", &view(&three(), &blocks, 0)), [of(2), of(0), of(2)]);
    // Loss lowers the rank: 500·(1 − .6) falls below 250.
    let mut lossy = three();
    lossy[1].loss.mean = 0.6;
    assert_eq!(pulls("rank", &view(&lossy, &blocks, 0)), [of(0), of(2), of(2)]);
}

#[test]
fn an_odd_number_of_blocks_gives_the_middle_one_to_good_paths() {
    let blocks = [block(0, 0), block(1, 1), block(2, 1)];
    assert_eq!(pulls("rank", &view(&three(), &blocks, 0)), [of(2), of(1), of(2)]);
}

#[test]
fn an_even_number_of_paths_splits_between_the_middle_ranks() {
    let blocks = [block(0, 1), block(1, 1)];
    let paths = [path(0, 10, 40), path(1, 12, 40), path(2, 14, 40), path(3, 100, 40)];
    assert_eq!(pulls("rank", &view(&paths, &blocks, 0)), [of(1), of(1), of(0), of(0)]);
}

#[test]
fn equal_ranks_are_all_good() {
    let blocks = [block(0, 1), block(1, 1)];
    assert_eq!(pulls("rank", &view(&[path(0, 9, 9), path(1, 9, 9)], &blocks, 0)), [of(0), of(0)]);
    assert_eq!(pulls("rank", &view(&[path(4, 9, 9)], &blocks, 0)), [of(0)]);
}

#[test]
fn new_data_counts_with_the_newest_block() {
    // New data opens a second block, which belongs to the newer half.
    let closed = [block(0, 1)];
    assert_eq!(pulls("rank", &view(&three(), &closed, 9)), [FRESH, of(0), FRESH]);
    // New data joins the only block.
    let open = [BlockView { closed: false, ..block(0, 0) }];
    assert_eq!(pulls("rank", &view(&three(), &open, 9)), [FRESH, FRESH, FRESH]);
}

#[test]
fn no_opportunity_is_wasted() {
    let old = [block(0, 1), block(1, 0)];
    assert_eq!(pulls("rank", &view(&three(), &old, 0)), [of(0), of(0), of(0)]);
    let new = [block(0, 0), block(1, 0), block(2, 1)];
    assert_eq!(pulls("rank", &view(&three(), &new, 0)), [of(2), of(2), of(2)]);
    // Good paths take the newer half's repairs before new data.
    assert_eq!(pulls("rank", &view(&three(), &new, 9)), [of(2), of(2), of(2)]);
    let nothing = [block(0, 0), block(1, 0)];
    assert_eq!(pulls("rank", &view(&three(), &nothing, 9)), [FRESH, FRESH, FRESH]);
}

#[test]
fn full_rank_filling_gives_each_path_its_own_blocks() {
    let blocks = [block(0, 1), block(1, 1), block(2, 1)];
    assert_eq!(pulls("rank:fill=full", &view(&three(), &blocks, 0)), [of(1), of(0), of(2)]);
    let two = [block(0, 1), block(1, 1)];
    assert_eq!(pulls("rank:fill=full", &view(&three(), &two, 0)), [of(0), of(0), of(1)]);
}

fn any_path() -> impl Strategy<Value = PathView> {
    let states = prop_oneof![
        4 => Just(PathState::Active),
        1 => Just(PathState::Probation),
        1 => Just(PathState::Suspect),
        1 => Just(PathState::Validating),
    ];
    (states, any::<bool>(), any::<bool>(), 0..50_u64, 0..500_u64, 0.0..=1.0_f64).prop_map(
        |(state, backup, ready, packets, rtt, loss)| {
            let mut path = path(0, packets, rtt);
            path.loss.mean = loss;
            PathView { state, backup, ready, ..path }
        },
    )
}

fn any_block() -> impl Strategy<Value = BlockView> {
    (0..3_u16, 0..3_u16, any::<bool>(), 0..4_u16, any::<u16>(), any::<[bool; MAX_PATHS]>())
        .prop_map(|(due, proactive_left, closed, in_flight, lost_on, on)| BlockView {
            proactive_left,
            closed,
            in_flight,
            lost_on,
            in_flight_on: on.map(|on| if on { in_flight } else { 0 }),
            ..block(0, due)
        })
}

/// Whether the pick names a path that may carry data, and work that exists.
fn sound(pick: &Pick, view: &SchedulerView<'_>) -> bool {
    let Some(path) = view.path(pick.path) else { return false };
    let ordinary = view.paths.iter().any(|path| path.usable() && !path.backup);
    let of = |id| view.blocks.iter().find(|block| block.id == id);
    let work = match pick.work {
        Work::Fresh => view.fresh.symbols >= u32::from(pick.count),
        Work::Block(id) => of(id).is_some_and(|block| {
            let planned = if block.closed { block.proactive_left } else { 0 };
            block.due + planned >= pick.count
        }),
        Work::Ahead => view.fresh.symbols >= u32::from(pick.count),
        Work::Repair(id) => of(id).is_some_and(|block| view.demand.by_repairs() && block.closed),
        Work::Copy(id) => {
            of(id).is_some_and(|block| block.in_flight_on[usize::from(path.slot)] < block.in_flight)
        }
    };
    let copy = matches!(pick.work, Work::Copy(_));
    work && pick.count > 0 && (copy || (path.usable() && (!path.backup || !ordinary)))
}

proptest! {
    #[test]
    fn picks_are_sound_and_no_work_is_left_when_a_path_has_room(
        mut paths in proptest::collection::vec(any_path(), 1..MAX_PATHS),
        mut blocks in proptest::collection::vec(any_block(), 0..8),
        symbols in 0..3_u32,
        rounds in 1..4,
    ) {
        for (id, path) in paths.iter_mut().enumerate() {
            (path.id, path.slot) = (PathId(id as u32), id as u8);
        }
        for (id, block) in blocks.iter_mut().enumerate() {
            block.id = BlockId(id as u64);
        }
        let view = view(&paths, &blocks, symbols);
        let ordinary = paths.iter().any(|path| path.usable() && !path.backup);
        let room = |path: &&PathView| path.ready && path.usable() && (!path.backup || !ordinary);
        let waiting = symbols > 0 || blocks.iter().any(|block| block.has_work());
        for (entry, _) in TABLE {
            let mut scheduler = scheduler(entry.name);
            for _ in 0..rounds {
                let mut sent = 0;
                for path in paths.iter().filter(|path| path.ready) {
                    let mut picks = Vec::new();
                    let answer = scheduler.pull(path.id, &view, &mut picks);
                    prop_assert_eq!(!picks.is_empty(), matches!(answer, Pull::Send(_)));
                    for pick in &picks {
                        prop_assert!(sound(pick, &view), "{}: {:?}", entry.name, pick);
                    }
                    sent += picks.len();
                }
                let keeps_busy =
                    ["rank", "min-rtt", "hsr", "lws", "lts", "otias", "round-robin", "redundant", "blind"];
                if keeps_busy.contains(&entry.name) && waiting && paths.iter().any(|p| room(&p)) {
                    prop_assert!(sent > 0, "{} leaves work and room", entry.name);
                }
            }
        }
    }
}

#[test]
fn a_fast_path_that_is_alone_takes_several_at_once() {
    let count = |mbps: f64, paths: usize, free: u64, symbols: u32| {
        let mut paths: Vec<PathView> = (0..paths).map(|id| path(id as u32, 100, 1)).collect();
        paths[0].rate = anabranch_types::Bitrate::from_mbps(mbps);
        paths[0].bytes_in_flight = (100 - free) * paths[0].packet_size;
        let mut picks = Vec::new();
        let view = view(&paths, &[], symbols);
        assert!(matches!(scheduler("earliest").pull(PathId(0), &view, &mut picks), Pull::Send(_)));
        picks[0].count
    };
    // 20 µs at 4.8 Gb/s are ten packets of 1200 bytes.
    assert_eq!(count(4800.0, 1, 100, 1000), 10);
    assert_eq!(count(100_000.0, 1, 100, 1000), 16, "never more");
    assert_eq!(count(4800.0, 1, 3, 1000), 3, "no more than the window admits");
    assert_eq!(count(4800.0, 1, 100, 2), 2, "no more than there are");
    assert_eq!(count(100.0, 1, 100, 1000), 1, "a slow path decides each time");
    assert_eq!(count(4800.0, 2, 100, 1000), 1, "as does one with company");
}

#[test]
fn a_slow_path_is_spared_for_the_rest_only() {
    let mut paths = [path(0, 100, 10), path(1, 100, 400)];
    for path in &mut paths {
        path.rate = anabranch_types::Bitrate::from_mbps(100.0);
        path.rtt.min = path.rtt.smoothed;
        path.rtt.samples = 1;
    }
    // The fast path moves 2.4 MB while a packet crosses the slow one.
    let mut view = view(&paths, &[], 1000);
    view.fresh.credit = 100_000;
    assert_eq!(pulls("earliest", &view), [FRESH, None], "1 MB is done before");
    view.fresh.more = true;
    assert_eq!(pulls("earliest", &view), [FRESH, FRESH], "but there will be more");
}

#[test]
fn a_path_that_leaves_a_message_to_a_quicker_one_goes_on_with_bulk() {
    let mut paths = [path(0, 100, 10), path(1, 100, 400)];
    for path in &mut paths {
        path.rate = anabranch_types::Bitrate::from_mbps(1.0);
        path.rtt.samples = 1;
    }
    let mut view = view(&paths, &[], 1);
    (view.fresh.class, view.fresh.beyond) = (TrafficClass::Interactive, 1000);
    assert_eq!(pulls("earliest", &view), [FRESH, Some(Work::Ahead)]);
    view.fresh.beyond = 0;
    assert_eq!(pulls("earliest", &view), [FRESH, None], "nothing comes after it");
}
