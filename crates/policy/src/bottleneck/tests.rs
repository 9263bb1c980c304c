//! The experiment on queues that are sums of what paths send; `sim/tests/shared_bottleneck.rs` tests whole transfers.

use super::*;
use crate::view::RttView;

/// One-way delays to the bottleneck and from it, ms.
type Way = (u64, u64);

/// Two paths that send all the time, and the components of their delays.
struct Road {
    ways: [Way; 2],
    /// Share of a path's swing that also reaches the other path's queue.
    common: f64,
    /// Standard deviation, ms, of each packet's delay, and of the change in each millisecond that
    /// both queues have in common.
    jitter: f64,
    drift: f64,
}

const STILL: Road = Road { ways: [(20, 20); 2], common: 1.0, jitter: 0.0, drift: 0.0 };

/// A nearly normal random number with mean 0 and deviation 1.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0
}

/// Runs for this many seconds, and returns the milliseconds in which the paths were taken to share
/// a bottleneck. `change` may alter the path as time passes.
fn run(seed: u64, seconds: u64, road: Road, change: impl Fn(u64, &mut Road)) -> Vec<u64> {
    let mut shared = Vec::new();
    drive(seed, seconds, road, change, |now, found| {
        if found.shares(1) == 1 {
            shared.push(now);
        }
    });
    shared
}

/// Runs for this many seconds, and shows the detector to `watch` in each millisecond.
fn drive(
    seed: u64,
    seconds: u64,
    mut road: Road,
    change: impl Fn(u64, &mut Road),
    mut watch: impl FnMut(u64, &Bottlenecks),
) {
    let (mut rng, mut found) = (Rng::new(seed), Bottlenecks::new(Rng::new(seed + 1000)));
    let mut views = [0, 1].map(|id| PathView {
        rate: anabranch_types::Bitrate::from_mbps(10.0),
        ..PathView::unknown(PathId(id))
    });
    // By millisecond: the swing of each path as it sends, and the delay in each queue.
    let (mut swings, mut queues) = (vec![[0.0; 2]], vec![[10.0_f64; 2]]);
    for now in 1..seconds * 1000 {
        change(now, &mut road);
        swings.push([0, 1].map(|slot| found.factor(slot) - 1.0));
        let arriving = [0, 1].map(|slot| {
            let sent = now.saturating_sub(road.ways[slot].0);
            swings[sent as usize][slot] / 2.0
        });
        let drift = road.drift * normal(&mut rng);
        let before = queues[now as usize - 1];
        queues.push([0, 1].map(|slot| {
            let grows = arriving[slot] + road.common * arriving[1 - slot] + drift;
            // Both queues tend towards 10 ms.
            before[slot] + grows - (before[slot] - 10.0) / 400.0
        }));
        for slot in 0..2 {
            let (there, rest) = road.ways[slot];
            let late = there + 2 * rest + 20;
            let Some(sent) = now.checked_sub(late).filter(|sent| *sent > 0) else { continue };
            let queue = queues[(sent + there) as usize][slot] + road.jitter * normal(&mut rng);
            let round = Duration::from_millis(2 * (there + rest));
            views[slot].rtt = RttView {
                smoothed: round + Duration::from_millis(10),
                min: round,
                queue: Duration::from_secs_f64(queue.max(0.0) / 1e3),
                forward: ((there + rest) * 1000) as i64,
                samples: now,
                ..RttView::default()
            };
            found.on_ack(Time::from_millis(now), Time::from_millis(sent), slot as u8, &views);
        }
        assert_eq!(found.shares(0) >> 1, found.shares(1));
        watch(now, &found);
    }
}

/// The first time at which the paths were taken to share a bottleneck, s.
fn found_after(road: Road) -> f64 {
    run(1, 30, road, |_, _| {}).first().map_or(f64::INFINITY, |first| *first as f64 / 1e3)
}

#[test]
fn a_common_queue_is_found_within_seconds() {
    assert!(found_after(STILL) < 6.0);
    assert!(found_after(Road { jitter: 2.0, drift: 0.1, ..STILL }) < 8.0);
    // Jitter of 10 ms in a round trip of 80 ms hides the effect of swings on a single packet.
    assert!(found_after(Road { jitter: 10.0, ..STILL }) < 30.0);
}

#[test]
fn a_common_queue_is_found_wherever_on_unequal_ways_it_is() {
    let near_sender = Road { ways: [(2, 10), (2, 60)], ..STILL };
    assert!(found_after(near_sender) < 8.0);
    let near_receiver = Road { ways: [(10, 2), (60, 2)], ..STILL };
    assert!(found_after(near_receiver) < 8.0);
}

#[test]
fn queues_that_go_up_and_down_together_are_not_common() {
    for seed in 0..20 {
        let apart = Road { common: 0.0, jitter: 1.0, drift: 0.5, ..STILL };
        assert_eq!(run(seed, 60, apart, |_, _| {}), [], "seed {seed}");
    }
}

#[test]
fn paths_that_part_are_told_apart_within_seconds() {
    let parts = |now: u64, road: &mut Road| road.common = if now < 15_000 { 1.0 } else { 0.0 };
    let shared = run(3, 40, Road { jitter: 1.0, ..STILL }, parts);
    let (first, last) = (shared[0], shared[shared.len() - 1]);
    assert!(first < 6_000 && (15_000..23_000).contains(&last), "{first} to {last}");
}

#[test]
fn another_path_in_the_slot_is_another_experiment() {
    let mut found = Bottlenecks::new(Rng::new(1));
    let mut views = [0, 1].map(|id| PathView::unknown(PathId(id)));
    for slot in 0..2 {
        found.on_ack(Time::from_millis(500), Time::from_millis(400), slot, &views);
    }
    found.tracks[0].shares = 2;
    found.tracks[1].shares = 1;
    views[1].id = PathId(2);
    found.on_ack(Time::from_millis(501), Time::from_millis(401), 1, &views);
    assert_eq!((found.shares(0), found.shares(1)), (0, 0));
}

#[test]
fn the_sending_goes_as_far_up_as_down() {
    let mut found = Bottlenecks::new(Rng::new(5));
    let views = [0, 1].map(|id| PathView::unknown(PathId(id)));
    let (mut sum, mut up) = (0.0, 0);
    for now in 1..=40_000 {
        found.on_ack(Time::from_millis(now), Time::from_millis(now.saturating_sub(100)), 0, &views);
        sum += found.factor(1) - 1.0;
        up += u32::from(found.factor(1) > 1.0);
    }
    assert!((sum / 40_000.0).abs() < 0.001 && (5_000..25_000).contains(&up), "{sum} {up}");
}

#[test]
fn paths_that_share_nothing_swing_a_part_of_the_time() {
    let mut swung = 0;
    let apart = Road { common: 0.0, jitter: 1.0, ..STILL };
    let mut found = None;
    drive(
        7,
        60,
        apart,
        |_, _| {},
        |now, bottlenecks| {
            if now > 15_000 {
                swung += u32::from(bottlenecks.factor(0) != 1.0);
            }
            found = Some(bottlenecks.shares(0));
        },
    );
    assert!(found == Some(0) && swung < 25_000, "{} of 45000 ms", swung);
}
