//! Paths that hold much data: the receiver's credit must cover the data in flight and the data that
//! waits until losses are repaired.

mod support;

use anabranch_sim::scenario::Plan;

use support::{bulk, links, median};

const SECONDS: u64 = 12;

/// Goodput after the first 4 s, as a share of the rate that the links' losses leave; the median of
/// three seeds. In about one run of 25, congestion control mistakes random losses for congestion.
/// Such a run carries less, for which the receiver's credit is not the cause.
fn carried(texts: &[&str]) -> f64 {
    let plan = Plan::parallel(links(texts)).flow(bulk("anabranch", SECONDS));
    let plan = plan.after(core::time::Duration::from_secs(4));
    let share = median([1, 2, 3], |seed| support::go(&plan, seed).efficiency());
    println!("== {texts:?}: {share:.3}");
    share
}

#[test]
fn losses_of_a_long_fast_path_do_not_stop_it() {
    let share = carried(&["rate=300mbit,delay=50ms,loss=2%,buffer=2500p"]);
    assert!(share > 0.8, "{share}");
}

#[test]
fn a_long_path_beside_a_fast_one_does_not_stop_it() {
    let fast = "rate=200mbit,delay=20ms,loss=1%,buffer=1000p";
    let share = carried(&[fast, "rate=50mbit,delay=150ms,loss=2%,buffer=1000p"]);
    assert!(share > 0.8, "{share}");
}
