//! The MPTCP schedulers, each with a table of cases computed by hand.

use anabranch_types::Bitrate;

use super::*;

/// The paths that take new data if all ready paths ask.
fn takers(spec: &str, paths: &[PathView], symbols: u32) -> Vec<u32> {
    let view = view(paths, &[], symbols);
    let mut scheduler = scheduler(spec);
    let ready = paths.iter().filter(|path| path.ready);
    ready.filter(|p| pull(&mut *scheduler, p.id.0, &view).is_some()).map(|p| p.id.0).collect()
}

#[test]
fn the_best_path_with_room_by_each_measure() {
    // The paths have rates of 125, 400 and 100 packets per second, and window space for 10, 5 and
    // 40 packets.
    let mut paths = [path(0, 10, 80), path(1, 8, 20), path(2, 50, 500)];
    paths[1].bytes_in_flight = 3 * paths[1].packet_size;
    paths[2].bytes_in_flight = 10 * paths[2].packet_size;
    for (spec, best, next) in [("min-rtt", 1, 0), ("hsr", 1, 0), ("lws", 2, 0), ("lts", 1, 0)] {
        paths.iter_mut().for_each(|path| path.ready = true);
        assert_eq!(takers(spec, &paths, 9), [best], "{spec}");
        paths[best as usize].ready = false;
        assert_eq!(takers(spec, &paths, 9), [next], "{spec}, the best is full");
    }
}

#[test]
fn measures_disagree_where_their_formulas_do() {
    // The rates are 100 and 200 packets per second, and RTT per space is 10 and 5 ms. Then the
    // second path has only two packets of space.
    let mut paths = [path(0, 1, 10), path(1, 8, 40)];
    for (spec, best) in [("min-rtt", 0), ("hsr", 1), ("lws", 1), ("lts", 1)] {
        assert_eq!(takers(spec, &paths, 9), [best], "{spec}");
    }
    paths[1].bytes_in_flight = 6 * paths[1].packet_size;
    for (spec, best) in [("min-rtt", 0), ("hsr", 1), ("lws", 1), ("lts", 0)] {
        assert_eq!(takers(spec, &paths, 9), [best], "{spec}, half full");
    }
}

/// A full fast path of `rtt` ms and a slow path of 20 ms with room; both have windows of 5 packets,
/// beyond slow start.
fn full_and_slow(rtt: u64) -> [PathView; 2] {
    let mut paths = [path(0, 5, rtt), path(1, 5, 20)];
    paths[0].ready = false;
    paths[0].bytes_in_flight = paths[0].cwnd;
    for path in &mut paths {
        path.ssthresh = path.cwnd;
        path.rtt.variation = Duration::ZERO;
    }
    paths
}

/// Whether the slow path is used if the receiver grants this many symbols of 1000 bytes.
fn used(scheduler: &mut dyn Scheduler, paths: &[PathView], credit: u32, now: u64) -> bool {
    let mut view = view(paths, &[], 9);
    let in_flight: u64 = paths.iter().map(|path| path.bytes_in_flight).sum();
    (view.fresh.credit, view.now) = (credit, Time::from_millis(now));
    view.fresh.window = credit + (in_flight / 1000) as u32;
    pull(scheduler, 1, &view).is_some()
}

/// The least credit at which the slow path is used.
fn threshold(spec: &str, paths: &[PathView]) -> u32 {
    (9..1000).find(|credit| used(&mut *scheduler(spec), paths, *credit, 0)).unwrap()
}

#[test]
fn blest_leaves_the_buffer_to_the_fast_path() {
    let lambda = |lambda| format!("blest:lambda={lambda}");
    // 20 ms are three rounds of 10 ms: (6 + 1) · 3 = 21 packets of 1200 bytes. The receive window
    // is the credit plus the 6000 bytes in flight; the slow path takes 1000 bytes of it.
    assert_eq!(threshold(&lambda(1.0), &full_and_slow(10)), (21 * 1200_u32 - 5000).div_ceil(1000));
    assert_eq!(threshold(&lambda(1.2), &full_and_slow(10)), (21 * 1440_u32 - 5000).div_ceil(1000));
    // In two rounds of 15 ms, the fast path sends (6 + ½) · 2 = 13 packets.
    assert_eq!(threshold(&lambda(1.0), &full_and_slow(15)), (13 * 1200_u32 - 5000).div_ceil(1000));
    // In the first slow start, it sends 5 · (2³ − 1) = 35 packets.
    let mut paths = full_and_slow(10);
    paths[0].ssthresh = u64::MAX;
    assert_eq!(threshold(&lambda(1.0), &paths), (35 * 1200_u32 - 5000).div_ceil(1000));
    // Paced at 4 packets per round trip, it has no threshold either, but does not double: (4 + 1 +
    // 1) · 3 = 18 packets.
    paths[0].pacing_rate = Bitrate::from_transfer(4 * 1200, Duration::from_millis(10));
    assert_eq!(threshold(&lambda(1.0), &paths), (18 * 1200_u32 - 5000).div_ceil(1000));
    // Bytes in flight on the slow path are part of the receive window and use it, so they cancel
    // out.
    let mut paths = full_and_slow(10);
    paths[1].bytes_in_flight = 2 * paths[1].packet_size;
    assert_eq!(threshold(&lambda(1.0), &paths), (21 * 1200_u32 - 5000).div_ceil(1000));
    // The fast path itself never waits.
    assert_eq!(takers("blest", &[path(0, 5, 10), path(1, 5, 20)], 9), [0]);
}

#[test]
fn blest_counts_the_time_that_a_symbol_waits_on_a_path_whose_delay_varies() {
    let mut scheduler = scheduler("blest:lambda=1.0");
    let mut paths = full_and_slow(10);
    // The slow path's RTT has been 60 ms. An empty window counts with a fifth of the difference of
    // 40 ms: 28 ms, three rounds.
    paths[1].rtt.smoothed = Duration::from_millis(60);
    used(&mut *scheduler, &paths, 9, 0);
    paths[1].rtt.smoothed = Duration::from_millis(20);
    assert!(used(&mut *scheduler, &paths, 21, 1));
    // A window with two packets in flight counts with three fifths of the difference: 44 ms, five
    // rounds, (6 + 2) · 5 = 40 packets.
    paths[1].bytes_in_flight = 2 * paths[1].packet_size;
    // The receive window is in whole symbols.
    assert!(!used(&mut *scheduler, &paths, 43, 1));
    assert!(used(&mut *scheduler, &paths, 44, 1));
}

#[test]
fn blest_becomes_careful_when_the_buffer_was_full() {
    let mut scheduler = scheduler("blest:lambda=1.2");
    let paths = full_and_slow(10);
    let factor = |scheduler: &mut dyn Scheduler, now: u64| {
        let mut credit = 9;
        while !used(scheduler, &paths, credit, now) {
            credit += 1;
        }
        f64::from(credit * 1000 + 5000) / (21.0 * 1200.0)
    };
    // The factor changes once in 20 ms: it falls to 1.0 while the buffer is not full, and rises to
    // 1.3 once it has been full.
    for (now, expected) in [(0, 1.2), (19, 1.2), (20, 1.19), (25, 1.19), (40, 1.18), (60, 1.17)] {
        assert!((factor(&mut *scheduler, now) - expected).abs() < 0.04, "{now} ms: {expected}");
    }
    for round in 4..60 {
        factor(&mut *scheduler, 20 * round);
    }
    assert!((factor(&mut *scheduler, 1200) - 1.0).abs() < 0.04);
    for round in 61..80 {
        let view = view(&paths, &[], 9);
        scheduler.on_event(SchedulerEvent::ReceiverLimited, &view, &mut Vec::new());
        factor(&mut *scheduler, 20 * round);
    }
    assert!((factor(&mut *scheduler, 1600 - 1) - 1.3).abs() < 0.04);
}

#[test]
fn ecf_waits_for_the_fast_path_if_that_ends_sooner() {
    let mut paths = [path(0, 10, 10), path(1, 10, 100)];
    paths[0].ready = false;
    paths.iter_mut().for_each(|path| path.rtt.variation = Duration::ZERO);
    // (1 + k/12) · 10 ms < 100 ms up to 107 symbols of 1000 bytes, with windows of 12,000 bytes.
    for (symbols, expected) in [(1, 0), (12, 0), (107, 0), (108, 1), (1000, 1)] {
        assert_eq!(takers("ecf", &paths, symbols).len(), expected, "{symbols} symbols");
    }
    // Data after a message counts as waiting too.
    let mut message = view(&paths, &[], 1);
    (message.fresh.class, message.fresh.beyond) = (TrafficClass::Interactive, 106);
    assert_eq!(pulls("ecf", &message)[1], None);
    message.fresh.beyond = 107;
    assert_eq!(pulls("ecf", &message)[1], FRESH);
    // Variation of either path's delay makes a longer wait worthwhile: (1 + k/12) · 10 < 110.
    paths[0].rtt.variation = Duration::from_millis(10);
    assert_eq!(takers("ecf", &paths, 119).len(), 0);
    assert_eq!(takers("ecf", &paths, 120).len(), 1);
    // A path that is hardly slower is used: 15 ms < 2 · 10 ms.
    paths[1].rtt.smoothed = Duration::from_millis(25);
    paths[0].rtt.variation = Duration::ZERO;
    assert_eq!(takers("ecf", &paths, 1).len(), 0);
    paths[1].rtt.smoothed = Duration::from_millis(19);
    assert_eq!(takers("ecf", &paths, 1).len(), 1);
}

#[test]
fn ecf_goes_on_waiting_a_little_longer() {
    let mut paths = [path(0, 10, 10), path(1, 10, 100)];
    paths[0].ready = false;
    paths.iter_mut().for_each(|path| path.rtt.variation = Duration::ZERO);
    let mut scheduler = scheduler("ecf:beta=0.25");
    let mut takes = |symbols| pull(&mut *scheduler, 1, &view(&paths, &[], symbols)).is_some();
    assert!(takes(120), "not waiting yet: (1 + 10) · 10 ms");
    assert!(!takes(100), "waits");
    assert!(!takes(120), "and goes on up to 125 ms");
    assert!(takes(138));
    assert!(takes(120), "no longer waiting");
}

#[test]
fn otias_queues_where_it_arrives_first() {
    let mut paths = [path(0, 4, 10), path(1, 4, 100)];
    let size = paths[0].packet_size;
    let chosen = |paths: &[PathView], asks: u32| {
        let mut picks = Vec::new();
        scheduler("otias").pull(PathId(asks), &view(paths, &[], 9), &mut picks);
        picks[0].path.0
    };
    assert_eq!(chosen(&paths, 1), 0, "5 ms against 50");
    // The window is full, and eight packets wait: two whole rounds, 25 ms. With twenty waiting
    // packets, it is five rounds, 55 ms.
    paths[0].bytes_in_flight = 4 * size;
    paths[0].bytes_queued = 8 * size;
    assert_eq!(chosen(&paths, 1), 0);
    paths[0].bytes_queued = 20 * size;
    assert_eq!(chosen(&paths, 1), 1);
    // Space in the window reduces the number of waiting packets.
    paths[0].bytes_in_flight = 0;
    assert_eq!(chosen(&paths, 1), 0);
}
