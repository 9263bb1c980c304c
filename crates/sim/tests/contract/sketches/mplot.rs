//! MPLOT: blocks have repairs for the expected loss. Fresh repairs of old blocks go on the better
//! half of the paths, while the next blocks use the other half.

use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;

use super::coded::{blocks, departures, listed, random, transfer};
use crate::core::Core;
use crate::rig::Setting;

/// The profile `mplot` with other policies on some axes.
fn mplot(changes: &[(Axis, &str)]) -> Profile {
    let mut profile = Profile::named("mplot").expect("built in");
    for (axis, value) in changes {
        profile.set(*axis, value).expect("it exists");
    }
    profile
}

/// Four paths whose bandwidths without loss are 500, 450, 125 and 100 packets per second.
const FOUR: Setting = Setting::new(&[10, 11, 40, 50], 10);

#[test]
fn old_blocks_are_repaired_on_the_better_half() {
    /// The better half's share of repairs, and its share of new data.
    fn shares(changes: &[(Axis, &str)]) -> [f64; 2] {
        let mut rig = Core::new(FOUR, &mplot(changes));
        rig.lose(random(&[0.1; 4]));
        transfer(&mut rig, 200);
        rig.observed();
        transfer(&mut rig, 6000);
        let sent = departures(&rig.observed());
        ["repair", "source"].map(|what| {
            let all = sent.iter().filter(|sent| sent.what == what);
            all.clone().filter(|sent| sent.path < 2).count() as f64 / all.count() as f64
        })
    }
    let [repairs, fresh] = shares(&[]);
    assert!(repairs > fresh + 0.15, "{repairs} of repairs, {fresh} of new data");
    let [repairs, fresh] = shares(&[(Axis::Scheduler, "blind")]);
    assert!((repairs - fresh).abs() < 0.05, "{repairs} of repairs, {fresh} of new data, unranked");
}

#[test]
fn proactive_repairs_spare_a_second_round() {
    /// The number of proactive repairs per source, and the share of blocks that needed more
    /// repairs.
    fn measure(changes: &[(Axis, &str)]) -> [f64; 2] {
        let mut rig = Core::new(Setting::new(&[20, 20], 30), &mplot(changes));
        rig.lose(random(&[0.1; 2]));
        transfer(&mut rig, 1000);
        rig.observed();
        transfer(&mut rig, 2000);
        let blocks = blocks(&rig.observed());
        let planned: u16 = blocks.values().map(|block| block.planned).sum();
        let sources: u16 = blocks.values().map(|block| block.sources).sum();
        let again = blocks.values().filter(|block| !block.due.is_empty()).count();
        [f64::from(planned) / f64::from(sources), again as f64 / blocks.len() as f64]
    }
    // Eq. 9 with q above the mean loss of a tenth plans more than 1/9 repair per source, which
    // suffices for at least half of the blocks.
    let [planned, again] = measure(&[]);
    assert!((0.11..0.3).contains(&planned) && again < 0.35, "{planned} planned, {again} again");
    let [planned, again] = measure(&[(Axis::Redundancy, "fixed:share=0,sources=12")]);
    assert!(planned == 0.0 && again > 0.6, "{planned} planned, {again} again, without provision");
}

#[test]
fn what_is_lost_is_replaced_by_fresh_repairs() {
    /// The kinds of packets sent for the first block after its sources, and the repairs that became
    /// due for the block.
    fn run(changes: &[(Axis, &str)]) -> (Vec<&'static str>, Vec<u16>) {
        let mut rig = Core::new(Setting::new(&[20], 40), &mplot(changes));
        rig.lose(listed(&[(0, 1), (0, 3), (0, 4), (0, 6)]));
        transfer(&mut rig, 30);
        let block = blocks(&rig.observed()).remove(&0).expect("the first block");
        let later = block.sent.iter().skip(block.sources.into()).map(|sent| sent.what);
        (later.collect(), block.due)
    }
    // Four of nineteen are lost. The first sample sets the estimate q = 4/19, so ⌈4/(1 − q)⌉ = 6
    // repairs are due.
    let (later, due) = run(&[]);
    assert_eq!((due, later), (vec![6], vec!["repair"; 6]));
    let (later, due) = run(&[(Axis::Recovery, "resend")]);
    assert_eq!((due, later), (vec![], vec!["resend"; 4]));
}
