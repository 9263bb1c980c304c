//! Theorem 2: which path carries the symbols that replace lost ones.

use anabranch_policy::redundancy::{self, RedundancyView};
use anabranch_policy::scheduler::expected_arrival::delivery;
use anabranch_policy::scheduler::{self, Pull};
use anabranch_policy::view::{
    BlockView, Demand, FreshView, LossView, PathView, SchedulerView, SymbolId, TrafficClass,
};
use anabranch_sim::stats::Estimate;
use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

use crate::outcome::Outcome;

/// Number of states drawn of each kind.
const STATES: usize = 20_000;
/// The time at which the paths are asked.
const NOW: Time = Time::from_millis(60_000);

/// `fmtcp-thm2`: in random states, a block has lost symbols on the first path, and each worse path
/// is asked what it sends.
pub fn destinations() -> Outcome {
    let mut outcome = Outcome::new();
    let mut random = Rng::substream(1, "fmtcp-thm2");
    let [mut asked, mut moved] = [[0_u32; 2]; 2];
    for _ in 0..STATES {
        for (kind, has_window) in [(0, true), (1, false)] {
            let paths = paths(has_window, &mut random);
            let better = delivery(&paths[0]);
            for worse in paths.iter().filter(|path| delivery(path) > better) {
                asked[kind] += 1;
                moved[kind] += u32::from(takes_the_loss(&paths, worse.id, &mut random));
            }
        }
    }
    outcome.exact("worse paths asked while the better has window", f64::from(asked[0]));
    let counterexamples = Estimate::exact(f64::from(moved[0]));
    outcome.bounded("lost symbols that moved to one", counterexamples, 0.0, 0.0);
    let share = f64::from(moved[1]) / f64::from(asked[1].max(1));
    outcome.exact("share that moved where the better path's window is full", share);
    outcome.remark(
        "The proof has the loss found while path i asks to send, so that i has window. Where its window is full, \
         EAT of i is beyond its EDT, and a worse path that can send at once may be the earlier one.",
    );
    outcome.remark(
        "Theorem 3 says that EDT orders the mean delivery times with losses made good on the best path, too. That holds for the best \
         path and any other. It does not for two others: with EDT₁ = 10 ms, p₂ = 0, RTT₂ = RTO₂ = 1 s, p₃ = .9 and RTT₃ = RTO₃ = 0.1 s, \
         EDT is .5 and .95 s, but what is first sent on path 3 takes .104 s in the mean. The induction leaves path 1 out.",
    );
    outcome
}

/// Two to eight random paths. The window of the first has room for all symbols that the block
/// needs, or for none; the others have some room.
fn paths(has_window: bool, random: &mut Rng) -> Vec<PathView> {
    let path = |id: u32, random: &mut Rng| {
        let mut path = PathView::unknown(PathId(id));
        let (window, rtt) = (1 + random.below(50), 5 + random.below(500));
        path.cwnd = window * path.packet_size;
        let flying = match (id, has_window) {
            (0, false) => window,
            _ => random.below(window),
        };
        path.bytes_in_flight = flying * path.packet_size;
        if id == 0 && has_window {
            path.cwnd = path.bytes_in_flight + 200 * path.packet_size;
        }
        path.rtt.smoothed = Duration::from_millis(rtt);
        path.rto = Duration::from_millis(rtt + random.below(500));
        path.loss.mean = random.uniform() * random.uniform();
        let age = Duration::from_millis(random.below(2 * rtt));
        path.oldest_unacked = (flying > 0).then(|| NOW - age);
        path
    };
    (0..2 + random.below(7) as u32).map(|id| path(id, random)).collect()
}

/// Whether the path `asking` is given symbols that replace those lost from the oldest block.
fn takes_the_loss(paths: &[PathView], asking: PathId, random: &mut Rng) -> bool {
    let lost = 1 + random.below(5) as u16;
    let sources = 10 + random.below(20) as u16;
    let block = BlockView {
        sources,
        planned: sources,
        received: sources - lost,
        closed: true,
        due: lost,
        ..BlockView::default()
    };
    let surroundings = RedundancyView {
        now: NOW,
        paths,
        loss: LossView::default(),
        max_symbols: 1000,
        max_symbol_size: 1400,
        flushing: false,
        class: TrafficClass::Bulk,
        slides: false,
        sources_sent: 0,
        repairs_unneeded: 0,
    };
    let symbols = 1000;
    let fresh = FreshView {
        symbols,
        beyond: 0,
        next: SymbolId(sources.into()),
        more: true,
        class: TrafficClass::Bulk,
        symbol_size: 1400,
        blocked: None,
        credit: symbols,
        window: symbols,
    };
    let (Ok(redundancy), Ok(mut scheduler)) = (
        redundancy::build(&anabranch_policy::PolicySpec::new("delta-complete")),
        scheduler::build(&anabranch_policy::PolicySpec::new("expected-arrival")),
    ) else {
        return true;
    };
    let demand = Demand::of(redundancy.as_ref(), &surroundings);
    let view = SchedulerView { now: NOW, paths, blocks: &[block], fresh, demand };
    let mut picks = Vec::new();
    let answer = scheduler.pull(asking, &view, &mut picks);
    let new = |pick: &scheduler::Pick| {
        matches!(pick.work, scheduler::Work::Fresh | scheduler::Work::Ahead)
    };
    matches!(answer, Pull::Send(_)) && !picks.iter().all(new)
}
