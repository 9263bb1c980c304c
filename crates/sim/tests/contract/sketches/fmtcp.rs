//! FMTCP: blocks of a fountain code that are complete with high probability, and symbols allocated by expected arrival.

use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use core::cell::RefCell;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::coded::{Sent, blocks, departures, listed, profile, random, transfer};
use crate::core::{Core, SYMBOL};
use crate::rig::{Rig, Setting};

/// Source symbols in a block.
const BLOCK: u64 = 8;

/// FMTCP's policies with an ideal code and blocks that fail with the probability `failure`.
/// `changes` replaces policies.
fn fmtcp(failure: f64, changes: &[(Axis, &str)]) -> Profile {
    let complete = format!("delta-complete:failure={failure},block={}", BLOCK * SYMBOL);
    let mut fmtcp = profile(&[
        (Axis::Code, "reed-solomon"),
        (Axis::Recovery, "fresh-repairs"),
        (Axis::LossEstimator, "windowed:half-life=20s"),
        (Axis::Redundancy, &complete),
        (Axis::Scheduler, "expected-arrival"),
    ]);
    for (axis, value) in changes {
        fmtcp.set(*axis, value).expect("it exists");
    }
    fmtcp
}

#[test]
fn blocks_are_provisioned_until_complete_with_high_probability() {
    /// The mean number of proactive repairs per block, and the share of blocks whose first
    /// transmission lost more symbols than it had repairs. The code is ideal, as in the paper's
    /// analysis: any eight symbols rebuild a block.
    fn measure(failure: f64) -> [f64; 2] {
        let mut rig = Core::new(Setting::new(&[20], 40), &fmtcp(failure, &[]));
        let mut dice = random(&[0.1]);
        let fates = Rc::new(RefCell::new(VecDeque::new()));
        let seen = Rc::clone(&fates);
        rig.lose(move |path| {
            let lost = dice(path);
            seen.borrow_mut().push_back(lost);
            lost
        });
        transfer(&mut rig, 4800);
        let observed = rig.observed();
        // Departures and fates are in the same order.
        let mut fate = BTreeMap::<u64, Vec<bool>>::new();
        let mut blocks = blocks(&observed);
        for sent in departures(&observed) {
            // The last packets may still be on their way.
            let Some(lost) = fates.borrow_mut().pop_front() else { break };
            if let Some((first, _)) = blocks.range(..=sent.first).next_back() {
                fate.entry(*first).or_default().push(lost);
            }
        }
        // The loss estimate has not settled during the first 800 symbols.
        blocks.retain(|first, _| *first >= 800);
        let failed = blocks.iter().filter(|(first, block)| {
            let first_sent = usize::from(block.sources + block.planned);
            let fates = fate.get(first).map_or(&[][..], Vec::as_slice);
            let lost = fates.iter().take(first_sent).filter(|lost| **lost).count();
            lost > usize::from(block.planned)
        });
        let planned: u16 = blocks.values().map(|block| block.planned).sum();
        [f64::from(planned), failed.count() as f64].map(|sum| sum / blocks.len() as f64)
    }
    // At 10 % loss, P(fewer than 8 of 11 arrive) = .02, and P(fewer than 8 of 10 arrive) = .07.
    let [planned, failed] = measure(0.05);
    assert!((2.8..3.2).contains(&planned) && failed < 0.05, "{planned} planned, {failed} failed");
    // P(fewer than 8 of 8 arrive) = .57.
    let [planned, failed] = measure(0.999);
    assert!(planned == 0.0 && (0.5..0.65).contains(&failed), "{planned} planned, {failed} failed");
}

/// One-way delays of a quick and a slow path.
const UNEQUAL: &[u64] = &[10, 80];

#[test]
fn symbols_of_a_block_arrive_together_whatever_the_path() {
    /// Three values over the blocks of which the slow path carried a part: the median time between
    /// the first and the last arrival of a symbol, milliseconds; the number of these blocks; and
    /// how many of them had their last symbol on the quick path.
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
    // The spread is at most a round trip of the quick path.
    let (spread, blocks, tails) = measure(&[]);
    assert!(spread <= 20 && tails == blocks, "{spread} ms, {tails} tails of {blocks}");
    // Without allocation, symbols on the slow path arrive after all others.
    let (spread, blocks, tails) = measure(&[(Axis::Scheduler, "blind")]);
    assert!(spread >= 70 && tails < blocks, "{spread} ms, {tails} tails of {blocks}, unallocated");
}

#[test]
fn losses_of_the_slow_path_are_repaired_on_the_quick_one() {
    /// The paths that carried repairs of blocks for which no repair was planned, since nothing had
    /// been lost before.
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
    // Lemma 1 applies, since EDT₂/EDT₁ is more than (3 − p₁)/(1 + p₁).
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
