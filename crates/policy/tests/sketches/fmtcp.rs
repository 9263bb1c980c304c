//! FMTCP's algorithm 1: allocate virtually to the path of earliest arrival until the asking path is
//! reached, each block until it is complete with high probability.

use std::collections::BTreeMap;

use anabranch_policy::redundancy::{RedundancyPolicy, RedundancyView, WindowShape};
use anabranch_policy::scheduler::{Pick, Pull, Scheduler, Work};
use anabranch_policy::view::{MAX_PATHS, PathView, SchedulerView, WindowId, WindowView};
use anabranch_types::{PathId, Time};

use crate::executor::{World, path};

/// Chance that a block is still incomplete, δ̂.
const INCOMPLETE: f64 = 0.05;
/// Symbols in a packet.
const PER_PACKET: u16 = 4;

/// Symbols are added until fewer than needed survive with a chance of at most δ̂.
#[derive(Debug)]
struct DeltaComplete;

/// P(fewer than `needed` of the symbols survive), by convolution over paths.
fn incomplete(symbols: &[u16; MAX_PATHS], needed: u16, paths: &[PathView]) -> f64 {
    let mut chance = vec![1.0];
    for path in paths {
        for _ in 0..symbols[usize::from(path.slot)] {
            let p = path.loss.mean;
            let at = |i: usize| chance.get(i).copied().unwrap_or(0.0);
            chance = (0..=chance.len())
                .map(|i| at(i) * p + if i > 0 { at(i - 1) * (1.0 - p) } else { 0.0 })
                .collect();
        }
    }
    chance.iter().take(usize::from(needed)).sum()
}

impl RedundancyPolicy for DeltaComplete {
    fn next_window(&mut self, view: &RedundancyView<'_>) -> WindowShape {
        WindowShape { sources: 8, repairs: 0, symbol_size: view.max_symbol_size }
    }

    fn proactive(&mut self, _: &WindowView, _: &RedundancyView<'_>) -> u16 {
        0
    }

    fn still_needed(
        &self,
        window: &WindowView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        let mut symbols = window.in_flight_on;
        for (all, more) in symbols.iter_mut().zip(hypothetical) {
            *all += more;
        }
        // What is due or still to come goes to the best path, as far as is known.
        let best = view.paths.iter().min_by(|a, b| a.loss.mean.total_cmp(&b.loss.mean)).unwrap();
        symbols[usize::from(best.slot)] += window.due;
        let mut more = 0;
        while incomplete(&symbols, window.deficit(), view.paths) > INCOMPLETE && more < 100 {
            symbols[usize::from(best.slot)] += 1;
            more += 1;
        }
        more
    }
}

#[derive(Debug)]
struct Fmtcp;

/// Expected arrival of the next packet after `n` virtual ones (eqs 8 to 10), seconds.
fn arrival(path: &PathView, n: u64, now: Time) -> f64 {
    let (p, rto) = (path.loss.mean, path.rto.as_secs_f64());
    let rtt = path.rtt.smoothed.as_secs_f64();
    let direct = p * rto / (1.0 - p) + rtt / 2.0;
    let free = path.free_packets();
    if n < free {
        return direct;
    }
    let cycle = (1.0 - p) * rtt + p * rto;
    let age = path.oldest_unacked.map_or(0.0, |sent| now.since(sent).as_secs_f64());
    direct + cycle - age + ((n - free) / path.cwnd_packets()) as f64 * cycle
}

impl Scheduler for Fmtcp {
    fn pull(&mut self, asking: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let mut handed: BTreeMap<WindowId, [u16; MAX_PATHS]> = BTreeMap::new();
        let mut packets = [0_u64; MAX_PATHS];
        loop {
            let next = view.paths.iter().min_by(|a, b| {
                let at = |path: &PathView| arrival(path, packets[usize::from(path.slot)], view.now);
                at(a).total_cmp(&at(b))
            });
            let Some(next) = next else { return Pull::Idle("no path") };
            let slot = usize::from(next.slot);
            let mut room = PER_PACKET;
            for window in view.windows {
                // Due symbols are what is being allocated, so the question is put without them.
                let bare = WindowView { due: 0, ..*window };
                let hypothetical = handed.entry(window.id).or_default();
                let mut count = 0;
                while room > 0 && view.demand.still_needed(&bare, hypothetical) > 0 {
                    hypothetical[slot] += 1;
                    count += 1;
                    room -= 1;
                }
                if count > 0 && next.id == asking {
                    let work = Work::Window(window.id);
                    picks.push(Pick { work, count, path: asking, not_before: Time::ZERO });
                }
            }
            if room == PER_PACKET {
                return Pull::Idle("every block is complete with what better paths will carry");
            }
            if next.id == asking {
                return Pull::Send("earliest arrival");
            }
            packets[slot] += 1;
        }
    }
}

/// Two blocks of eight symbols, provisioned as the core does when a block closes.
fn world(slow_rtt: u64, fast_packets: u64) -> World {
    let mut paths = vec![path(0, fast_packets, 40), path(1, 8, slow_rtt)];
    paths[0].loss.mean = 0.02;
    paths[1].loss.mean = 0.2;
    let mut world = World::new(paths, Box::new(Fmtcp), Box::new(DeltaComplete));
    for id in 0..2 {
        let window =
            WindowView { id: WindowId(id), sources: 8, closed: true, ..Default::default() };
        world.windows.push(window);
        world.resolve(0, id, 0, true);
    }
    world
}

fn pull(world: &mut World, path: u32) -> (Pull, Vec<(u64, u16)>) {
    let mut picks = Vec::new();
    let answer = world.pull(PathId(path), &mut picks);
    let vector = picks
        .iter()
        .map(|pick| match pick.work {
            Work::Window(id) => (id.0, pick.count),
            other => panic!("{other:?}"),
        })
        .collect();
    (answer, vector)
}

#[test]
fn blocks_are_provisioned_beyond_their_sources() {
    // P(fewer than 8 of 9 arrive at 2 %) = .013, of 8: .15.
    assert_eq!(world(40, 20).windows[0].due, 9);
}

#[test]
fn a_packet_is_filled_from_several_blocks() {
    let mut world = world(40, 2);
    let (_, first) = pull(&mut world, 0);
    assert_eq!(first, [(0, 4)]);
    // With six symbols on their way three more complete the first block; the rest of the packet is
    // the next block's.
    world.windows[0].in_flight = 6;
    world.windows[0].in_flight_on[0] = 6;
    let (_, vector) = pull(&mut world, 0);
    assert_eq!(vector, [(0, 3), (1, 1)]);
}

#[test]
fn a_slow_path_gets_what_the_fast_one_will_not_reach() {
    // Four packets of the fast path arrive before the slow path's EDT of 150 ms (at 22, 62, 103 and
    // 144 ms): nine symbols complete the first block, seven are the second's, which three of the
    // lossier path complete: of seven and two, eight arrive with .913 only.
    let mut world = world(150, 1);
    let (answer, vector) = pull(&mut world, 1);
    assert_eq!(answer, Pull::Send("earliest arrival"));
    assert_eq!(vector, [(1, 3)]);
}

#[test]
fn nothing_is_sent_although_the_window_is_free() {
    let mut world = world(800, 20);
    let (answer, vector) = pull(&mut world, 1);
    assert!(matches!(answer, Pull::Idle(_)) && vector.is_empty(), "{answer:?} {vector:?}");
    world.run();
    assert!(world.departures.iter().all(|sent| sent.path == 0));
    assert!(!world.departures.is_empty());
}
