mod delta_complete;

use anabranch_types::{PathId, Time};
use core::time::Duration;
use proptest::prelude::*;

use super::*;
use crate::view::{BlockView, LossView, MAX_PATHS, PathState, PathView, TrafficClass};

fn policy(spec: &str) -> Box<dyn RedundancyPolicy> {
    build(&spec.parse().unwrap()).unwrap()
}

/// A path with a window of `packets` full packets of 1300 bytes.
fn path(id: u32, packets: u64, rtt: u64) -> PathView {
    let mut path = PathView::unknown(PathId(id));
    path.packet_size = 1300;
    path.cwnd = packets * 1300;
    path.rtt.smoothed = Duration::from_millis(rtt);
    path
}

fn view(paths: &[PathView], mean: f64, deviation: f64) -> RedundancyView<'_> {
    RedundancyView {
        now: Time::ZERO,
        paths,
        loss: LossView { mean, deviation },
        max_symbols: 255,
        max_symbol_size: 1250,
        flushing: false,
        class: TrafficClass::Bulk,
        slides: false,
        sources_sent: 0,
        repairs_unneeded: 0,
    }
}

fn closed(sources: u16) -> BlockView {
    BlockView { sources, closed: true, ..BlockView::default() }
}

const NOWHERE: [u16; MAX_PATHS] = [0; MAX_PATHS];

#[test]
fn blocks_span_a_median_round_trip() {
    let mut mplot = policy("mean-sigma");
    // 20 + 40·60/60 + 30·60/120 = 75 packets, none of them repairs without loss.
    let paths = [path(0, 10, 30), path(1, 40, 60), path(2, 30, 120)];
    let shape = mplot.next_block(&view(&paths, 0.0, 0.0));
    assert_eq!(shape, BlockShape { sources: 75, symbol_size: 1250 });
    assert_eq!(mplot.proactive(&closed(75), &view(&paths, 0.0, 0.0)), 0);
    // q = .1 + .15 = .25: 75·.75 = 56 sources, and a third as many repairs.
    let shape = mplot.next_block(&view(&paths, 0.1, 0.15));
    assert_eq!(shape, BlockShape { sources: 56, symbol_size: 1250 });
    assert_eq!(mplot.proactive(&closed(56), &view(&paths, 0.1, 0.15)), 19);
    // With an even number of paths, the median is 45 ms.
    let shape = mplot.next_block(&view(&paths[..2], 0.0, 0.0));
    assert_eq!(shape.sources, 45);
}

#[test]
fn idle_paths_do_not_lengthen_blocks() {
    let mut paths = [path(0, 20, 40), path(1, 20, 40), path(2, 20, 40)];
    paths[1].backup = true;
    paths[2].state = PathState::Suspect;
    assert_eq!(policy("mean-sigma").next_block(&view(&paths, 0.0, 0.0)).sources, 20);
    paths[0].state = PathState::Suspect;
    assert_eq!(policy("mean-sigma").next_block(&view(&paths, 0.0, 0.0)).sources, 60);
}

#[test]
fn sources_leave_room_in_the_codeword() {
    let paths = [path(0, 4000, 40)];
    for (q, sources) in [(0.05, 230), (0.1, 214), (0.25, 169), (0.5, 103), (0.75, 43)] {
        let shape = policy("mean-sigma").next_block(&view(&paths, q, 0.0));
        assert_eq!(shape.sources, sources, "{q}");
    }
    // Beyond a loss of .95 nothing changes.
    let at = |mean, deviation| policy("mean-sigma").next_block(&view(&paths, mean, deviation));
    assert_eq!(at(0.9, 0.5), at(0.95, 0.0));
}

#[test]
fn proactive_repairs_follow_the_rule_chosen() {
    let paths = [path(0, 200, 40)];
    let proactive = |spec: &str, q: f64| policy(spec).proactive(&closed(90), &view(&paths, q, 0.0));
    assert_eq!(proactive("mean-sigma", 0.5), 90);
    assert_eq!(proactive("mean-sigma:kmin=exact", 0.5), 89);
    assert_eq!(proactive("mean-sigma:kmin=exact,epsilon=0.01", 0.5), 123);
    assert_eq!(proactive("mean-sigma:kmin=eq6,epsilon=0.1", 0.5), 109);
    for spec in ["mean-sigma", "mean-sigma:kmin=exact", "mean-sigma:kmin=eq6"] {
        assert_eq!(proactive(spec, 0.0), 0, "{spec}");
        assert!(proactive(spec, 1e-4) >= 1, "{spec}");
    }
}

#[test]
fn symbols_shrink_to_keep_five_packets_in_a_block() {
    let shape = |spec: &str, packets| {
        let paths = [path(0, packets, 40)];
        let shape = policy(spec).next_block(&view(&paths, 0.0, 0.0));
        (shape.symbol_size, shape.sources)
    };
    assert_eq!(shape("mean-sigma", 5), (1250, 5));
    // 2600 bytes in five packets, with 50 bytes of overhead for each symbol.
    assert_eq!(shape("mean-sigma", 2), (470, 5));
    assert_eq!(shape("mean-sigma:sizes=paper", 10), (700, 17));
    assert_eq!(shape("mean-sigma:sizes=paper", 2), (200, 10));
    assert_eq!(shape("mean-sigma:sizes=paper", 1), (200, 5));
    assert_eq!(shape("none", 1), (1250, 64));
}

#[test]
fn losses_are_made_good_with_reserve_once() {
    let paths = [path(0, 200, 40)];
    let mplot = policy("mean-sigma");
    let view = view(&paths, 0.5, 0.2);
    let mut block = BlockView { received: 80, in_flight: 6, ..closed(90) };
    // Four symbols are missing, ⌈4/(1 − .5)⌉ = 8. Once these are due or in flight, no more are
    // needed.
    assert_eq!(mplot.still_needed(&block, &NOWHERE, &view), 8);
    block.due = 8;
    assert_eq!(mplot.still_needed(&block, &NOWHERE, &view), 0);
    block.due = 0;
    block.in_flight += 8;
    assert_eq!(mplot.still_needed(&block, &NOWHERE, &view), 0);
    // Six of the fourteen in flight are lost, so two are missing again.
    block.in_flight -= 6;
    assert_eq!(mplot.still_needed(&block, &NOWHERE, &view), 4);
    let mut handed = NOWHERE;
    handed[3] = 1;
    assert_eq!(mplot.still_needed(&block, &handed, &view), 2);
}

#[test]
fn the_literal_rule_waits_for_the_round() {
    let paths = [path(0, 200, 40)];
    let literal = policy("mean-sigma:round=lit");
    let view = view(&paths, 0.5, 0.0);
    let mut block = BlockView { received: 80, in_flight: 1, ..closed(90) };
    assert_eq!(literal.still_needed(&block, &NOWHERE, &view), 0);
    block.in_flight = 0;
    assert_eq!(literal.still_needed(&block, &NOWHERE, &view), 20);
}

#[test]
fn open_blocks_cannot_be_repaired_yet() {
    let block = BlockView { received: 3, closed: false, ..closed(9) };
    let needed = |spec: &str| policy(spec).still_needed(&block, &NOWHERE, &view(&[], 0.1, 0.0));
    assert_eq!(needed("mean-sigma"), 0);
    assert_eq!(needed("none"), 6);
}

proptest! {
    #[test]
    fn blocks_stay_within_the_code(
        paths in proptest::collection::vec((0..5000_u64, 0..2000_u64, any::<bool>()), 0..MAX_PATHS),
        mean in prop_oneof![3 => 0.0..=1.0, 1 => Just(f64::NAN)],
        deviation in 0.0..=1.0,
        max_symbols in 1..=1000_u16,
        max_symbol_size in 1..=9000_u16,
        sources in 0..=255_u16,
        state in (any::<u16>(), any::<u16>(), any::<u16>()),
    ) {
        let paths: Vec<PathView> = paths
            .iter()
            .enumerate()
            .map(|(id, (packets, rtt, backup))| {
                PathView { backup: *backup, ..path(id as u32, *packets, *rtt) }
            })
            .collect();
        let view = RedundancyView { max_symbols, max_symbol_size, ..view(&paths, mean, deviation) };
        for spec in ["mean-sigma", "mean-sigma:kmin=exact,epsilon=0.01", "mean-sigma:kmin=eq6",
            "mean-sigma:sizes=paper,codeword=60000", "none", "delta-complete",
            "delta-complete:append=3,symbol=300,together=4,block=500"]
        {
            let mut policy = policy(spec);
            let shape = policy.next_block(&view);
            prop_assert!(shape.sources >= 1, "{spec}");
            let planned = policy.proactive(&closed(shape.sources), &view);
            prop_assert!(shape.sources + planned <= max_symbols, "{spec}: {shape:?}, {planned}");
            prop_assert!((1..=max_symbol_size).contains(&shape.symbol_size), "{spec}: {shape:?}");
            let sources = sources.min(max_symbols);
            let mut block = closed(sources);
            let repairs = policy.proactive(&block, &view);
            prop_assert!(sources + repairs <= max_symbols, "{spec}: {repairs}");
            (block.received, block.in_flight, block.due) = state;
            let needed = policy.still_needed(&block, &NOWHERE, &view);
            prop_assert!(needed <= max_symbols, "{spec}: {needed}");
            prop_assert!(needed > 0 || block.shortfall() == 0 || spec.contains("lit"), "{spec}");
        }
    }
}

#[test]
fn a_fixed_share_is_the_same_at_any_loss() {
    let paths = [path(0, 40, 40)];
    let mut fixed = policy("fixed:share=0.05,sources=100");
    for mean in [0.0, 0.3] {
        let shape = fixed.next_block(&view(&paths, mean, 0.1));
        assert_eq!(shape, BlockShape { sources: 100, symbol_size: 1250 });
        assert_eq!(fixed.proactive(&closed(100), &view(&paths, mean, 0.1)), 5);
        assert_eq!(fixed.proactive(&closed(3), &view(&paths, mean, 0.1)), 1, "rounded up");
    }
    // The codeword has room for all repairs of the share.
    let mut many = policy("fixed:share=4,sources=255");
    let shape = many.next_block(&view(&paths, 0.0, 0.0));
    let repairs = many.proactive(&closed(shape.sources), &view(&paths, 0.0, 0.0));
    assert_eq!((shape.sources, repairs), (51, 204));
    // Losses beyond the share are repaired when the receiver reports a deficit.
    let block = BlockView { received: 90, in_flight: 4, ..closed(100) };
    assert_eq!(fixed.still_needed(&block, &NOWHERE, &view(&paths, 0.1, 0.0)), 6);
}

#[test]
fn budget_blocks_fill_up_within_the_longest_round_trips() {
    let mut budget = policy("budget");
    let mut paths = [path(0, 100, 50), path(1, 100, 100)];
    paths[0].rate = anabranch_types::Bitrate::from_mbps(2.0);
    paths[1].rate = anabranch_types::Bitrate::from_mbps(1.0);
    paths[1].loss.mean = 0.5;
    // 2 Mb/s and half of 1 Mb/s deliver 31,250 bytes in 100 ms; one and a half times this is 37.5
    // symbols.
    let sources = |view: &RedundancyView<'_>, budget: &mut dyn RedundancyPolicy| {
        budget.next_block(view).sources
    };
    assert_eq!(sources(&view(&paths, 0.2, 0.0), &mut *budget), 37);
    for path in &mut paths {
        path.rate = anabranch_types::Bitrate::from_bps(1000);
    }
    assert_eq!(sources(&view(&paths, 0.2, 0.0), &mut *budget), 3, "not a code of one symbol");
    for path in &mut paths {
        path.rate = anabranch_types::Bitrate::from_mbps(1000.0);
    }
    assert_eq!(sources(&view(&paths, 0.2, 0.0), &mut *budget), 128);
}

/// A view after so many symbols that the budget for wasted repairs is not exhausted.
fn underway(paths: &[PathView], mean: f64, deviation: f64) -> RedundancyView<'_> {
    RedundancyView { sources_sent: 10_000, ..view(paths, mean, deviation) }
}

#[test]
fn budget_repairs_until_the_next_one_wastes_too_much() {
    let mut budget = policy("budget");
    let paths = [path(0, 100, 50)];
    let mut repairs = |sources, loss, deviation| {
        budget.proactive(&closed(sources), &underway(&paths, loss, deviation))
    };
    // At a loss of 1/4, six symbols need 0, 1, 2, 3, 4, … repairs with a chance of .178, .267,
    // .234, .156, .088, …: the third repair wastes .678/.156 = 4.3 for each round spared, the
    // fourth .834/.088 = 9.5.
    assert_eq!(repairs(6, 0.25, 0.0), 3);
    assert_eq!([0.0, 0.01, 0.1, 0.5].map(|loss| repairs(6, loss, 0.0)), [0, 0, 1, 6]);
    // The mean is 42.7. The larger the deviation, the less likely it is that one more repair spares
    // a round.
    assert_eq!([0.0, 0.05, 0.1].map(|deviation| repairs(128, 0.25, deviation)), [37, 34, 29]);
}

#[test]
fn budget_repairs_follow_the_paths_that_carry_the_block() {
    let mut budget = policy("budget");
    let mut paths = [path(0, 100, 50), path(1, 100, 50)];
    paths[1].loss.mean = 0.5;
    let mut repairs = |on: [u16; 2]| {
        let mut block = BlockView { in_flight: on[0] + on[1], ..closed(on[0] + on[1]) };
        block.in_flight_on[..2].copy_from_slice(&on);
        budget.proactive(&block, &underway(&paths, 0.25, 0.0))
    };
    let by_share = [[20, 0], [10, 10], [0, 20]].map(&mut repairs);
    assert_eq!(by_share, [0, 7, 13]);
}

#[test]
fn budget_reserves_more_once_a_block_is_late_and_only_at_losses() {
    let budget = policy("budget");
    let paths = [path(0, 100, 50)];
    let needed = |in_flight: u16, age: u64, flushing: bool| {
        let block = BlockView { in_flight, received: 4, ..closed(10) };
        let now = Time::ZERO + Duration::from_millis(age);
        let view = RedundancyView { now, flushing, ..underway(&paths, 0.25, 0.0) };
        budget.still_needed(&block, &NOWHERE, &view)
    };
    // Two are lost and four in flight, so up to six are lost, as above.
    assert_eq!(needed(4, 49, false), 2 + 3);
    assert_eq!(needed(4, 51, false), 2 + 4);
    assert_eq!(needed(4, 0, true), 2 + 4);
    // All six are in flight, and the reserve was sent with them.
    assert_eq!(needed(6, 51, false), 0);
    assert_eq!(needed(6, 51, true), 4, "at the end nothing comes after that could tell");
}

#[test]
fn budget_wastes_no_more_than_its_share() {
    let mut budget = policy("budget:overhead=0.1");
    let paths = [path(0, 100, 50)];
    let mut repairs = |repairs_unneeded| {
        let view = RedundancyView { repairs_unneeded, sources_sent: 936, ..view(&paths, 0.5, 0.0) };
        budget.proactive(&closed(30), &view)
    };
    assert_eq!([0, 76, 90, 100, 200].map(&mut repairs), [24, 24, 10, 0, 0]);
}

/// Repairs for each of 2,000 symbols that follow one another at an interval (µs), at the automatic rate.
fn automatic_share(view: &mut RedundancyView<'_>, interval: u64) -> f64 {
    let mut sliding = policy("sliding:every=auto,reach=64,sources=64");
    let (mut repairs, symbols) = (0, 2000_u32);
    for symbol in 0..symbols {
        view.now = Time::from_micros(u64::from(symbol) * interval);
        if symbol % 64 == 0 {
            sliding.next_block(view);
        }
        repairs += u32::from(sliding.after_source(&BlockView::default(), view));
    }
    f64::from(repairs) / f64::from(symbols)
}

#[test]
fn the_automatic_rate_follows_the_loss() {
    let paths = [path(0, 100, 40)];
    for (loss, least, most) in
        [(0.0, 0.0, 0.0), (0.01, 0.02, 0.05), (0.05, 0.06, 0.13), (0.3, 0.45, 0.65)]
    {
        let share = automatic_share(&mut view(&paths, loss, 0.0), 500);
        assert!((least..=most).contains(&share), "{share} at {loss}");
    }
    // Bulk data fills all paths. Other data takes the quickest path, which may be the one that
    // loses most, so the aggregate loss is too low.
    let mut lossy = path(1, 100, 40);
    lossy.loss.mean = 0.3;
    let paths = [lossy];
    let mut view = view(&paths, 0.01, 0.0);
    assert!(automatic_share(&mut view, 500) < 0.05);
    view.class = TrafficClass::Live;
    assert!(automatic_share(&mut view, 500) > 0.45);
}

#[test]
fn the_automatic_rate_is_higher_for_few_symbols_in_a_round_trip_and_for_urgent_ones() {
    let paths = [path(0, 100, 40)];
    let mut view = view(&paths, 0.05, 0.0);
    let bulk = automatic_share(&mut view, 500);
    view.class = TrafficClass::Live;
    let (many, few) = (automatic_share(&mut view, 500), automatic_share(&mut view, 5000));
    let alone = automatic_share(&mut view, 50_000);
    assert!(bulk < many && many < few && few < alone, "{bulk} {many} {few} {alone}");
    // A single symbol gets one repair: both are lost with a chance of .05², which is below .005.
    assert!((0.95..=1.0).contains(&alone), "{alone}");
}

#[test]
fn live_blocks_wait_for_what_is_expected_in_time() {
    let paths = [path(0, 100, 40), path(1, 100, 90)];
    let mut view = view(&paths, 0.05, 0.0);
    let mut budget = policy("budget:linger=0.5");
    let mut open_until = |class, opened: u64, now: u64| {
        view.now = Time::from_millis(now);
        let opened = Time::from_millis(opened);
        let block = BlockView { class, opened, sources: 1, ..BlockView::default() };
        budget.open_until(&block, &view).since(Time::ZERO).as_millis() as u64
    };
    let live = TrafficClass::Live;
    assert_eq!(open_until(live, 0, 0), 0, "nothing is known of what follows");
    // A symbol comes every 5 ms. The block stays open for half of the shorter round trip, 20 ms, as long as another
    // symbol is likely by then.
    assert_eq!(open_until(live, 5, 5), 25);
    assert_eq!(open_until(live, 5, 10), 25);
    assert_eq!(open_until(live, 5, 15), 25);
    assert_eq!(open_until(live, 5, 23), 23, "the next comes later");
    assert_eq!(open_until(TrafficClass::Interactive, 28, 28), 28);
    assert_eq!(open_until(TrafficClass::Bulk, 28, 28), 28);
}
