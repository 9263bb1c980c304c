//! A sliding-window code: a repair after every few sources, over the newest of them.

use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use anabranch_policy::redundancy::{self, BlockShape, RedundancyPolicy, RedundancyView};
use anabranch_policy::registry::Options;
use anabranch_policy::view::{BlockView, MAX_PATHS};

use super::coded::{departures, listed, profile, transfer};
use crate::core::{CASE, Core};
use crate::rig::Setting;

const SLIDING: &str = "sliding:every=4,reach=8,sources=10";

fn sliding() -> Profile {
    profile(&[
        (Axis::Code, "sliding-window"),
        (Axis::Redundancy, SLIDING),
        (Axis::Recovery, "fresh-repairs"),
    ])
}

/// A policy whose repairs are those of the wrapped one, but cover no symbols before the block to
/// which they belong.
#[derive(Debug)]
struct Within(Box<dyn RedundancyPolicy>);

impl RedundancyPolicy for Within {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        self.0.next_block(view)
    }

    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        self.0.proactive(block, view)
    }

    fn after_source(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        self.0.after_source(block, view)
    }

    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        self.0.still_needed(block, hypothetical, view)
    }
}

/// Sends 24 symbols over one path of 50 ms each way, on which the listed packets are lost. Returns
/// the kinds of packets in the order of sending (s: source, R: repair), the first symbols that the
/// repairs cover, and the time until all data had arrived, ms.
fn stream(profile: &Profile, lost: &'static [(u32, u64)]) -> (String, Vec<u64>, u64) {
    let mut rig = Core::new(Setting::new(&[50], 200), profile);
    rig.lose(listed(lost));
    let time = transfer(&mut rig, 24);
    let sent = departures(&rig.observed());
    let letter = |what| if what == "repair" { 'R' } else { 's' };
    let repairs = sent.iter().filter(|sent| sent.what == "repair").map(|sent| sent.first);
    (sent.iter().map(|sent| letter(sent.what)).collect(), repairs.collect(), time)
}

/// Longest time until the last symbol has arrived if none waits for loss detection, milliseconds.
const ONE_WAY: u64 = 52;
/// No retransmission arrives before this time, since the sender must first learn of the loss;
/// milliseconds.
const WITH_RETRANSMISSION: u64 = 150;

#[test]
fn a_loss_is_recovered_before_a_retransmission_could_come() {
    // The third symbol is lost. The repair after the fourth replaces it while the block is still
    // open.
    let lost: &[(u32, u64)] = &[(0, 2)];
    let (order, covered, time) = stream(&sliding(), lost);
    assert!(order.starts_with("ssssRssssRss"), "{order}");
    assert_eq!(covered[..3], [0, 0, 4], "the newest eight of what had been sent");
    assert!(time <= ONE_WAY, "{time} ms");
    let (order, _, time) = stream(&profile(&[]), lost);
    assert!(!order.contains('R') && time >= WITH_RETRANSMISSION, "{order}: {time} ms");
}

#[test]
fn a_repair_reaches_back_across_stretches() {
    // The last symbol of the first block of ten is lost, and no repair of that block follows it.
    let lost: &[(u32, u64)] = &[(0, 11)];
    let (_, covered, time) = stream(&sliding(), lost);
    assert!(covered.contains(&4) && time <= ONE_WAY, "{covered:?}: {time} ms");
    let mut within = sliding();
    let make = |_: &Options<'_>| -> Result<Box<dyn RedundancyPolicy>, _> {
        Ok(Box::new(Within(redundancy::build(&SLIDING.parse()?)?)))
    };
    within.register(&CASE, make).expect("a new name");
    within.set(Axis::Redundancy, CASE.name).expect("registered");
    let (_, covered, time) = stream(&within, lost);
    assert!(!covered.contains(&4) && time >= WITH_RETRANSMISSION, "{covered:?}: {time} ms");
}
