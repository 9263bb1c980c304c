//! §II-D and §III-D: which path carries which block.

use anabranch_policy::scheduler::{Pull, Scheduler, Work, build};
use anabranch_policy::view::{
    BlockId, BlockView, Demand, FreshView, PathView, SchedulerView, SymbolId, TrafficClass,
};
use anabranch_types::{PathId, Time};

use super::provisioning::path;

/// Unrecovered blocks with these numbers of due symbols.
fn blocks(due: &[u16]) -> Vec<BlockView> {
    let block = |(index, due): (usize, &u16)| BlockView {
        id: BlockId(index as u64),
        first: SymbolId(index as u64 * 50),
        sources: 50,
        closed: true,
        due: *due,
        ..BlockView::default()
    };
    due.iter().enumerate().map(block).collect()
}

/// The block of which each path takes a symbol; `None` for new data.
fn mapping(paths: &[PathView], blocks: &[BlockView], fresh: u32) -> Vec<Option<u64>> {
    let mut rank = build(&"rank".parse().unwrap()).unwrap();
    let fresh = FreshView {
        symbols: fresh,
        beyond: 0,
        next: SymbolId(100),
        class: TrafficClass::Bulk,
        symbol_size: 700,
        blocked: None,
        credit: fresh,
        window: fresh,
        more: false,
    };
    let view = SchedulerView { now: Time::ZERO, paths, blocks, fresh, demand: Demand::default() };
    let mut one = |path: &PathView| match pull(&mut *rank, path.id, &view) {
        Work::Block(id) => Some(id.0),
        Work::Fresh => None,
        other => panic!("{other:?}"),
    };
    paths.iter().map(&mut one).collect()
}

fn pull(rank: &mut dyn Scheduler, path: PathId, view: &SchedulerView<'_>) -> Work {
    let mut picks = Vec::new();
    let pull = rank.pull(path, view, &mut picks);
    assert!(matches!(pull, Pull::Send(_)), "{pull:?}: an opportunity is wasted");
    assert!(picks.iter().all(|pick| pick.path == path));
    picks[0].work
}

#[test]
fn older_blocks_take_paths_above_the_median_of_window_times_delivery_over_round_trip() {
    let mut paths = [path(0, 10, 40), path(1, 30, 40), path(2, 12, 20)];
    // The ranks are 250, 750 and 600 packets per second, so only path 1 is above the median.
    let all_due = blocks(&[9, 9, 9, 9]);
    assert_eq!(mapping(&paths, &all_due, 0), [Some(2), Some(0), Some(2)]);
    // At 60 % loss its rank is 300, so path 2 is the good one.
    paths[1].loss.mean = 0.6;
    assert_eq!(mapping(&paths, &all_due, 0), [Some(2), Some(2), Some(0)]);
    // A longer round trip lowers the rank too.
    paths[2].rtt.smoothed *= 3;
    assert_eq!(mapping(&paths, &all_due, 0), [Some(2), Some(0), Some(2)]);
}

#[test]
fn earlier_blocks_come_before_later_ones_on_every_path() {
    let paths = [path(0, 30, 40), path(1, 10, 40)];
    assert_eq!(mapping(&paths, &blocks(&[2, 2, 2, 2]), 0), [Some(0), Some(2)]);
    assert_eq!(mapping(&paths, &blocks(&[0, 2, 0, 2]), 0), [Some(1), Some(3)]);
    // New data counts as one more block, the newest. With an odd number of blocks, the older half
    // is the larger.
    assert_eq!(mapping(&paths, &blocks(&[0, 0, 2, 2]), 9), [Some(2), Some(3)]);
    assert_eq!(mapping(&paths, &blocks(&[0, 2, 2]), 0), [Some(1), Some(2)]);
}

#[test]
fn no_opportunity_to_send_is_wasted() {
    let paths = [path(0, 30, 40), path(1, 10, 40)];
    // Without work in its own half, the good path takes newer blocks or new data, the bad one older blocks.
    assert_eq!(mapping(&paths, &blocks(&[0, 0, 0, 3]), 0), [Some(3), Some(3)]);
    assert_eq!(mapping(&paths, &blocks(&[0, 0, 0, 0]), 9), [None, None]);
    assert_eq!(mapping(&paths, &blocks(&[3, 0, 0, 0]), 0), [Some(0), Some(0)]);
}

#[test]
fn equal_paths_and_a_path_alone_are_good() {
    let all_due = blocks(&[1, 1, 1, 1]);
    assert_eq!(mapping(&[path(0, 10, 40)], &all_due, 0), [Some(0)]);
    let equal = [path(0, 10, 40), path(1, 20, 80), path(2, 5, 20)];
    assert_eq!(mapping(&equal, &all_due, 0), [Some(0), Some(0), Some(0)]);
    // With an even number of paths, the median is between the middle two.
    let even = [path(0, 10, 40), path(1, 20, 40), path(2, 30, 40), path(3, 40, 40)];
    assert_eq!(mapping(&even, &all_due, 0), [Some(2), Some(2), Some(0), Some(0)]);
}
