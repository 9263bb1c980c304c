//! Measures a pull of the scheduler that allocates by expected arrival, over eight paths that each
//! have pending blocks worth half a window.

use std::hint::black_box;

use anabranch_policy::redundancy::{self, RedundancyView};
use anabranch_policy::scheduler;
use anabranch_policy::view::{
    BlockId, BlockView, Demand, FreshView, LossView, MAX_PATHS, PathView, SchedulerView, SymbolId,
    TrafficClass,
};
use anabranch_types::{PathId, Time};
use core::time::Duration;
use criterion::Criterion;

const NOW: Time = Time::from_millis(10_000);
/// Source symbols of a block.
const SOURCES: u16 = 24;

/// Paths of rising round-trip times and losses; a packet has just been acknowledged on each.
fn paths(count: u32) -> Vec<PathView> {
    let path = |id: u32| {
        let mut path = PathView::unknown(PathId(id));
        let rtt = Duration::from_millis(20 + 20 * u64::from(id));
        path.packet_size = 1452;
        path.cwnd = 20 * path.packet_size;
        path.bytes_in_flight = 19 * path.packet_size;
        path.rtt.smoothed = rtt;
        path.rto = rtt + Duration::from_millis(100);
        path.loss.mean = 0.005 * f64::from(id + 1);
        path.oldest_unacked = Some(NOW - rtt);
        path
    };
    (0..count).map(path).collect()
}

/// Pending blocks whose symbols are all in flight, spread over the paths, and one more block that
/// is still filling.
fn blocks(count: u64, paths: u32) -> Vec<BlockView> {
    let block = |id: u64| {
        let mut block = BlockView {
            id: BlockId(id),
            first: SymbolId(id * u64::from(SOURCES)),
            sources: SOURCES,
            planned: SOURCES,
            closed: true,
            received: 12,
            repairs: 2,
            ..BlockView::default()
        };
        for symbol in 0..14 {
            block.in_flight_on[(symbol + id as usize) % paths as usize] += 1;
        }
        block.in_flight = 14;
        block
    };
    let mut blocks: Vec<BlockView> = (0..count).map(block).collect();
    blocks.push(BlockView {
        closed: false,
        sources: 10,
        received: 0,
        in_flight: 10,
        in_flight_on: core::array::from_fn(|slot| if slot == 0 { 10 } else { 0 }),
        ..block(count)
    });
    assert!(blocks.iter().all(|block| block.in_flight_on[MAX_PATHS - 1] == 0));
    blocks
}

/// Runs `run` with a view of this many paths and pending blocks.
fn with<R>(count: u32, pending: u64, run: impl FnOnce(&SchedulerView<'_>) -> R) -> R {
    let (paths, blocks) = (paths(count), blocks(pending, count));
    let class = TrafficClass::Bulk;
    let surroundings = RedundancyView {
        now: NOW,
        paths: &paths,
        loss: LossView::default(),
        max_symbols: 60_000,
        max_symbol_size: 1400,
        flushing: false,
        class,
        slides: false,
        sources_sent: 100_000,
        repairs_unneeded: 0,
    };
    let policy = redundancy::build(&"delta-complete".parse().expect("a name")).expect("built in");
    let fresh = FreshView {
        symbols: 5000,
        beyond: 0,
        next: SymbolId(1_000_000),
        more: true,
        class,
        symbol_size: 1400,
        blocked: None,
        credit: 5000,
        window: 6000,
    };
    let demand = Demand::of(policy.as_ref(), &surroundings);
    run(&SchedulerView { now: NOW, paths: &paths, blocks: &blocks, fresh, demand })
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (paths, pending) in [(2, 8), (8, 8), (8, 32), (8, 126)] {
        with(paths, pending, |view| {
            let mut scheduler =
                scheduler::build(&"expected-arrival".parse().expect("a name")).expect("built in");
            let mut picks = Vec::with_capacity(4);
            // Each path pulls as often as it asks in use: one window per round trip.
            let by_rate: Vec<u32> =
                (0..paths).flat_map(|path| (0..8 / (path + 1)).map(move |_| path)).collect();
            for (which, asking) in
                [("quickest", vec![0]), ("slowest", vec![paths - 1]), ("by rate", by_rate)]
            {
                let mut asking = asking.into_iter().cycle();
                let name = format!("pull/{paths} paths/{pending} blocks pending/{which}");
                criterion.bench_function(&name, |bencher| {
                    bencher.iter(|| {
                        picks.clear();
                        let path = PathId(asking.next().unwrap_or(0));
                        black_box(scheduler.pull(path, black_box(view), &mut picks))
                    });
                });
            }
        });
    }
    criterion.final_summary();
}
