//! Messages beside a bulk transfer cost it only the bytes that they take: a path that leaves a
//! message to another path continues with the transfer.

mod support;

use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use anabranch_policy::view::TrafficClass;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_sim::traffic::Messages;
use anabranch_types::Rng;
use core::time::Duration;

use support::{Dice, flow, go, link, profile};

/// Bytes that a message in a symbol of its own takes in addition to its payload, including its
/// acknowledgement and a repair.
const PER_MESSAGE: u32 = 2 * 200;

/// The links, and the messages beside the transfer.
#[derive(Debug)]
struct Setting {
    links: Vec<LinkConfig>,
    messages: Messages,
}

impl Setting {
    fn any(dice: &mut Dice, loss: f64) -> Self {
        let paths = dice.within(2.0..5.0) as usize;
        let one = |dice: &mut Dice| {
            let (rate, delay) = (dice.spread(5.0..30.0), dice.spread(5.0..150.0));
            // One bandwidth-delay product, in packets.
            let buffer = (rate * 2.0 * delay / 10.0).max(20.0) as u64;
            let loss = dice.within(0.0..1.0) * loss;
            link(&format!("rate={rate:.2}mbit,delay={delay:.0}ms,buffer={buffer}p,loss={loss:.3}%"))
        };
        let links = (0..paths).map(|_| one(dice)).collect();
        let messages = Messages {
            interval: Duration::from_secs_f64(dice.spread(0.003..0.05)),
            size: dice.spread(50.0..900.0) as u32,
            count: u64::MAX,
            class: TrafficClass::Interactive,
        };
        Setting { links, messages }
    }

    fn run(&self, profile: &Profile, with: bool, seed: u64) -> RunReport {
        let one = FlowPlan::core(profile.clone()).until(Duration::from_secs(14));
        let mut plan = Plan::parallel(self.links.clone()).flow(one).after(Duration::from_secs(4));
        flow(&mut plan).messages = with.then_some(self.messages);
        go(&plan, seed)
    }

    /// Goodput with messages, divided by the difference of the goodput without messages and the
    /// rate that messages take.
    fn ratio(&self, profile: &Profile, seed: u64) -> f64 {
        let goodput = |with| {
            let report = self.run(profile, with, seed);
            report.scalar("flow", "goodput_mbps").expect("a flow has goodput")
        };
        let each = f64::from(self.messages.size + PER_MESSAGE) * 8e-6;
        let taken = each / self.messages.interval.as_secs_f64();
        goodput(true) / (goodput(false) - taken)
    }
}

fn check(profile: &Profile) {
    for seed in 1..=10 {
        let setting = Setting::any(&mut Dice(Rng::substream(seed, "messages")), 0.0);
        let ratio = setting.ratio(profile, seed);
        println!("== {ratio:.3} of {setting:?}");
        assert!(ratio >= 0.9, "{ratio:.3} of {setting:?}");
    }
    // With losses, windows are cut differently from run to run, so a mean is checked.
    let lossy = (11..=16).map(|seed| {
        let setting = Setting::any(&mut Dice(Rng::substream(seed, "messages")), 1.0);
        setting.ratio(profile, seed)
    });
    let mean = lossy.sum::<f64>() / 6.0;
    println!("== {mean:.3} with losses");
    assert!(mean >= 0.9, "{mean:.3} with losses");
}

#[test]
fn messages_do_not_stop_the_slower_paths_of_expected_arrival() {
    check(&profile("fmtcp"));
}

#[test]
fn messages_do_not_stop_the_slower_paths_of_earliest() {
    let mut profile = profile("fmtcp");
    profile.set(Axis::Scheduler, "earliest").expect("a scheduler");
    check(&profile);
}
