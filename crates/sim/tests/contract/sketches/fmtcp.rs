//! FMTCP: blocks of a fountain code that are complete with high probability, and symbols that go where
//! they are expected to arrive first, allocated virtually until it is the asking path's turn.

use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use anabranch_policy::redundancy::{BlockShape, RedundancyPolicy, RedundancyView};
use anabranch_policy::registry::Options;
use anabranch_policy::scheduler::{Pick, Pull, Scheduler, Work};
use anabranch_policy::view::{BlockId, BlockView, MAX_PATHS, PathView, SchedulerView};
use anabranch_types::{PathId, Time};
use core::time::Duration;

use super::coded::{Sent, blocks, listed, profile, random, transfer};
use crate::core::{CASE, Core};
use crate::rig::{Rig, Setting};
use crate::script::pick;

/// Source symbols in a block. Each packet carries one.
const BLOCK: u16 = 8;

/// Symbols are added until fewer than needed survive with a chance of at most `incomplete`, δ̂ (eq. 4).
#[derive(Debug)]
struct DeltaComplete {
    incomplete: f64,
}

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

impl DeltaComplete {
    /// Symbols to add to those on their way, on the path of least loss, as far as is known.
    fn more(&self, mut symbols: [u16; MAX_PATHS], needed: u16, paths: &[PathView]) -> u16 {
        let best = paths.iter().min_by(|a, b| a.loss.mean.total_cmp(&b.loss.mean));
        let Some(best) = best.map(|path| usize::from(path.slot)) else { return 0 };
        let before = symbols[best];
        while incomplete(&symbols, needed, paths) > self.incomplete && symbols[best] < 100 {
            symbols[best] += 1;
        }
        symbols[best] - before
    }
}

/// Symbols of a block on their way, by path.
fn under_way(block: &BlockView) -> [u16; MAX_PATHS] {
    core::array::from_fn(|slot| block.in_flight_on[slot] + block.queued_on[slot])
}

impl RedundancyPolicy for DeltaComplete {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        BlockShape { sources: BLOCK, symbol_size: view.max_symbol_size }
    }

    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        // The symbol that closes the block is not under way yet.
        let symbols = under_way(block);
        let unsent = block.deficit().saturating_sub(symbols.iter().sum());
        self.more(symbols, block.deficit(), view.paths).saturating_sub(unsent)
    }

    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        let mut symbols = under_way(block);
        for (all, more) in symbols.iter_mut().zip(hypothetical) {
            *all += more;
        }
        let due = block.due + block.proactive_left;
        self.more(symbols, block.deficit(), view.paths).saturating_sub(due)
    }
}

#[derive(Debug)]
struct Fmtcp;

/// Expected arrival of the next packet after those in flight, those queued and `more`, seconds (eqs 8
/// to 10).
fn arrival(path: &PathView, more: u64, now: Time) -> f64 {
    let (p, rto) = (path.loss.mean, path.rto.as_secs_f64());
    let rtt = path.rtt.smoothed.as_secs_f64();
    let direct = p * rto / (1.0 - p) + rtt / 2.0;
    let before = (path.bytes_in_flight + path.bytes_queued) / path.packet_size + more;
    let rounds = before / path.cwnd_packets();
    if rounds == 0 {
        return direct;
    }
    let cycle = (1.0 - p) * rtt + p * rto;
    let age = path.oldest_unacked.map_or(0.0, |sent| now.since(sent).as_secs_f64());
    direct + rounds as f64 * cycle - age
}

/// A symbol that a pending block needs.
#[derive(Clone, Copy, Debug)]
enum Needed {
    Fresh,
    Of(BlockId),
    /// A repair of a block that is not cut yet.
    Later,
}

/// The pending blocks in order, those to be cut from waiting data included, and what was given virtually.
struct Pending<'a, 'b> {
    view: &'a SchedulerView<'b>,
    fresh: u16,
    /// The block in question: its place among the blocks, then beyond them; sources that it lacks.
    place: usize,
    block: BlockView,
    lacks: u16,
    handed: [u16; MAX_PATHS],
}

impl<'a, 'b> Pending<'a, 'b> {
    fn new(view: &'a SchedulerView<'b>) -> Self {
        let fresh = view.fresh.symbols.min(1000) as u16;
        let block = BlockView::default();
        let mut pending =
            Pending { view, fresh, place: 0, block, lacks: 0, handed: [0; MAX_PATHS] };
        pending.turn_to(0);
        pending
    }

    fn turn_to(&mut self, place: usize) {
        let open = BlockView { planned: BLOCK, ..BlockView::default() };
        let shown = self.view.blocks.get(place).copied().unwrap_or(open);
        let room = if shown.closed { 0 } else { shown.planned.saturating_sub(shown.sources) };
        self.place = place;
        self.lacks = room.min(self.fresh);
        // What is due or planned is what is being allocated: the question is put without it.
        let sources = shown.sources + self.lacks;
        self.block = BlockView { sources, closed: true, due: 0, proactive_left: 0, ..shown };
        self.handed = [0; MAX_PATHS];
    }

    /// The next symbol to be given to some path.
    fn next(&mut self) -> Option<Needed> {
        loop {
            if self.lacks > 0 {
                return Some(Needed::Fresh);
            }
            let shown = self.view.blocks.get(self.place);
            if self.view.demand.still_needed(&self.block, &self.handed) > 0 {
                return Some(match shown {
                    Some(block) if block.has_work() => Needed::Of(block.id),
                    Some(block) if block.closed => {
                        self.turn_to(self.place + 1);
                        continue;
                    }
                    _ => Needed::Later,
                });
            }
            if shown.is_none() && self.fresh == 0 {
                return None;
            }
            self.turn_to(self.place + 1);
        }
    }

    fn give(&mut self, symbol: Needed, slot: usize) {
        self.handed[slot] += 1;
        if matches!(symbol, Needed::Fresh) {
            self.fresh -= 1;
            self.lacks -= 1;
        }
    }
}

impl Scheduler for Fmtcp {
    /// Algorithm 1. New symbols are cut in the order of their assignment: to send from a later block, those
    /// before it have to be assigned to the paths that get them virtually, and wait in their queues.
    fn pull(&mut self, asking: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let mut packets = [0_u64; MAX_PATHS];
        let mut pending = Pending::new(view);
        let usable = || view.paths.iter().filter(|path| path.usable());
        while let Some(symbol) = pending.next() {
            let at = |path: &PathView| arrival(path, packets[usize::from(path.slot)], view.now);
            let Some(first) = usable().min_by(|a, b| at(a).total_cmp(&at(b))) else {
                return Pull::Idle("no path");
            };
            let slot = usize::from(first.slot);
            match symbol {
                Needed::Fresh => picks.push(pick(Work::Fresh, 1, first.id.0)),
                Needed::Of(id) if first.id == asking => {
                    picks.push(pick(Work::Block(id), 1, asking.0));
                }
                _ => {}
            }
            if first.id == asking {
                return Pull::Send("earliest arrival");
            }
            pending.give(symbol, slot);
            packets[slot] += 1;
        }
        picks.clear();
        Pull::Idle("every block is complete with what better paths will carry")
    }
}

/// Its policies, the block complete but for a chance of `incomplete`; `changes` to other axes.
fn fmtcp(incomplete: f64, changes: &[(Axis, &str)]) -> Profile {
    let mut fmtcp = profile(&[
        (Axis::Code, "random-linear"),
        (Axis::Recovery, "fresh-repairs"),
        (Axis::LossEstimator, "windowed:half-life=20s"),
    ]);
    let complete = move |_: &Options<'_>| -> Result<Box<dyn RedundancyPolicy>, _> {
        Ok(Box::new(DeltaComplete { incomplete }))
    };
    fmtcp.register(&CASE, complete).expect("a new name");
    fmtcp.register::<dyn Scheduler>(&CASE, |_| Ok(Box::new(Fmtcp))).expect("a new name");
    for axis in [Axis::Redundancy, Axis::Scheduler] {
        fmtcp.set(axis, CASE.name).expect("registered");
    }
    for (axis, value) in changes {
        fmtcp.set(*axis, value).expect("it exists");
    }
    fmtcp
}

#[test]
fn blocks_are_provisioned_until_complete_with_high_probability() {
    /// Proactive repairs for each block, and the share of blocks that needed more. The code is ideal, as
    /// in the paper's analysis: any eight symbols rebuild a block.
    fn measure(incomplete: f64) -> [f64; 2] {
        let ideal = fmtcp(incomplete, &[(Axis::Code, "reed-solomon")]);
        let mut rig = Core::new(Setting::new(&[20], 40), &ideal);
        rig.lose(random(&[0.1]));
        transfer(&mut rig, 800);
        rig.observed();
        transfer(&mut rig, 1600);
        let blocks = blocks(&rig.observed());
        let planned: u16 = blocks.values().map(|block| block.planned).sum();
        let again = blocks.values().filter(|block| !block.due.is_empty()).count();
        [f64::from(planned), again as f64].map(|sum| sum / blocks.len() as f64)
    }
    // P(fewer than 8 of 11 arrive at 10 %) = .02, of 10: .07.
    let [planned, again] = measure(0.05);
    assert!((2.8..3.2).contains(&planned) && again < 0.05, "{planned} planned, {again} again");
    let [planned, again] = measure(0.999);
    assert!(planned == 0.0 && again > 0.4, "{planned} planned, {again} again, without provision");
}

/// One-way delays of a quick and a slow path.
const UNEQUAL: &[u64] = &[10, 80];

#[test]
fn symbols_of_a_block_arrive_together_whatever_the_path() {
    /// The median, over blocks that the slow path had a part in, of the time between the first and the last
    /// arrival of a symbol, milliseconds; and how many blocks there were, and their tails on the quick path.
    fn measure(changes: &[(Axis, &str)]) -> (u64, usize, usize) {
        let mut rig = Core::new(Setting::new(UNEQUAL, 10), &fmtcp(0.05, changes));
        rig.lose(random(&[0.02, 0.1]));
        transfer(&mut rig, 800);
        rig.observed();
        transfer(&mut rig, 400);
        let blocks = blocks(&rig.observed());
        let arrival = |sent: &Sent| sent.at + Duration::from_millis(UNEQUAL[sent.path as usize]);
        let mut spreads: Vec<u64> = Vec::new();
        let mut tails = 0;
        for block in blocks.values().filter(|block| block.sent.iter().any(|sent| sent.path == 1)) {
            let arrivals = || block.sent.iter().map(arrival);
            let (Some(first), Some(last)) = (arrivals().min(), arrivals().max()) else { continue };
            spreads.push(last.since(first).as_millis() as u64);
            tails += usize::from(block.sent.last().is_some_and(|sent| sent.path == 0));
        }
        spreads.sort_unstable();
        (spreads[spreads.len() / 2], spreads.len(), tails)
    }
    // No more than a round trip of the quick path.
    let (spread, blocks, tails) = measure(&[]);
    assert!(spread <= 20 && tails == blocks, "{spread} ms, {tails} tails of {blocks}");
    // Else what the slow path carries comes when everything else has arrived.
    let (spread, blocks, tails) = measure(&[(Axis::Scheduler, "blind")]);
    assert!(spread >= 70 && tails < blocks, "{spread} ms, {tails} tails of {blocks}, unallocated");
}

#[test]
fn losses_of_the_slow_path_are_repaired_on_the_quick_one() {
    /// The paths that carried repairs of blocks for which none was planned, since nothing had been lost yet.
    fn repairs(changes: &[(Axis, &str)]) -> Vec<u32> {
        let mut rig = Core::new(Setting::new(UNEQUAL, 10), &fmtcp(0.05, changes));
        transfer(&mut rig, 200);
        rig.lose(listed(&[(1, 0), (1, 1), (1, 2), (1, 3)]));
        rig.observed();
        transfer(&mut rig, 200);
        let blocks = blocks(&rig.observed());
        let unplanned = blocks.values().filter(|block| block.planned == 0);
        let sent = unplanned.flat_map(|block| &block.sent);
        sent.filter(|sent| sent.what == "repair").map(|sent| sent.path).collect()
    }
    // Lemma 1: EDT₂/EDT₁ is more than (3 − p₁)/(1 + p₁).
    let quick = repairs(&[]);
    assert!(quick.len() >= 4 && quick.iter().all(|path| *path == 0), "{quick:?}");
    let any = repairs(&[(Axis::Scheduler, "blind")]);
    assert!(any.contains(&1), "{any:?}, unallocated");
}

#[test]
fn nothing_is_sent_although_the_window_is_free() {
    /// How long a short transfer takes, milliseconds, and how many symbols the slow path carries.
    fn run(changes: &[(Axis, &str)]) -> (u64, usize) {
        let mut rig = Core::new(Setting::new(&[10, 200], 10), &fmtcp(0.05, changes));
        (transfer(&mut rig, 30), rig.on(1).len())
    }
    let (time, slow) = run(&[]);
    assert!(slow == 0 && time < 100, "{time} ms, {slow} on the slow path");
    let (time, slow) = run(&[(Axis::Scheduler, "blind")]);
    assert!(slow == 10 && time < 300, "{time} ms, {slow} on the slow path, unallocated");
}
